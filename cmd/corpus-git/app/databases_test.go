package app

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
	"corpus-git/project/config"
)

// schemaOf are the statements that make the tables of a database, without what keeps count of them.
func schemaOf(t *testing.T, d *sql.DB) map[string]string {
	t.Helper()
	rows, err := d.QueryContext(t.Context(), `SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_master`)
	require.NoError(t, err)
	defer rows.Close()
	out := map[string]string{}
	for rows.Next() {
		var name, text string
		require.NoError(t, rows.Scan(&name, &text))
		out[name] = strings.Join(strings.Fields(text), " ")
	}
	require.NoError(t, rows.Err())
	return out
}

// What a hub finds out about its program's tables before it leads are those that a server makes.
func TestSchemas(t *testing.T) {
	cfg := newRoot(t)
	known, err := schemas(cfg)(t.Context())
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(cfg.StateDir, "corpus-git.db"))
	c, err := openCore(t.Context(), options{cfg: cfg, log: zerolog.Nop(), who: "test"})
	require.NoError(t, err)
	rooms, _, err := db.Schemas(t.Context(), c.db)
	require.NoError(t, err)
	require.NoError(t, db.Known(t.Context(), c.db, known))
	require.NoError(t, c.close())
	require.Greater(t, len(rooms), 10)
	for room, n := range rooms {
		require.Equal(t, n, known[room], room)
	}
	require.NotZero(t, known["web"])
}

// A database that an earlier version wrote (testdata/databases, each made by that version: a project, a key with a right, a deployment) gets the tables of one
// that is new, and keeps what is in it.
func TestEarlierDatabases(t *testing.T) {
	dumps, err := filepath.Glob("testdata/databases/*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, dumps)
	fresh, err := openCore(t.Context(), options{cfg: newRoot(t), log: zerolog.Nop(), who: "test"})
	require.NoError(t, err)
	want := schemaOf(t, fresh.db)
	require.NoError(t, fresh.close())
	for _, dump := range dumps {
		t.Run(strings.TrimSuffix(filepath.Base(dump), ".sql"), func(t *testing.T) {
			text, err := os.ReadFile(dump)
			require.NoError(t, err)
			cfg := newRoot(t)
			d, err := db.Open(t.Context(), filepath.Join(cfg.StateDir, "corpus-git.db"))
			require.NoError(t, err)
			_, err = d.ExecContext(t.Context(), string(text))
			require.NoError(t, err)
			require.NoError(t, d.Close())
			require.NoError(t, os.MkdirAll(filepath.Join(cfg.Root, "projects/app/project"), 0o755))

			c, err := openCore(t.Context(), options{cfg: cfg, log: zerolog.Nop(), who: "test"})
			require.NoError(t, err)
			require.NoError(t, db.Check(t.Context(), c.db))
			have := schemaOf(t, c.db)
			require.NoError(t, c.close())
			require.Equal(t, want, have, "statements of migrations are added, and never changed")

			for command, want := range map[string]string{"project list": "app", "key list": "marie", "access list app": `marie\s.*deploy`, "deployments app": "live", "audit": "project create"} {
				code, out, errs := program(t, env(cfg.Root), "", strings.Fields(command)...)
				require.Zero(t, code, "%s: %s", command, errs)
				require.Regexp(t, want, out, command)
			}
		})
	}
}

func newRoot(t *testing.T) *config.Config {
	root := t.TempDir()
	return &config.Config{Root: root, StateDir: filepath.Join(root, ".corpus-git")}
}
