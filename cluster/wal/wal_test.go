package wal_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/cluster/wal"
	"corpus-git/internal/db"
	"corpus-git/internal/vfs"
)

// pair is a database with a copy.
type pair struct {
	t            *testing.T
	source, copy string
	d            *sql.DB
	mu           sync.Mutex
	r            *wal.Reader
	changes      int
}

func newPair(t *testing.T) *pair {
	p := &pair{t: t, source: filepath.Join(t.TempDir(), "a.db"), copy: filepath.Join(t.TempDir(), "b.db")}
	d, err := db.Open(t.Context(), p.source)
	require.NoError(t, err)
	_, err = d.Exec(`CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)`)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	p.d, err = db.OpenWith(t.Context(), p.source, db.Options{Replicated: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.d.Close() })
	content, err := os.ReadFile(p.source)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(p.copy, content, 0o600))
	p.r = wal.NewReader(p.source)
	return p
}

// step applies what was committed.
func (p *pair) step() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.r.Next()
	if err != nil || c == nil {
		return err
	}
	w, err := wal.OpenCopy(vfs.OS{}, p.copy, c.PageSize)
	if err != nil {
		return err
	}
	if err := c.Each(w.Page); err != nil {
		w.Abandon()
		return err
	}
	p.r.Taken(c)
	p.changes++
	return w.Close(c.Pages)
}

// dump returns the contents of a database.
func dump(t *testing.T, q interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}) string {
	t.Helper()
	var out strings.Builder
	for _, query := range []string{`PRAGMA integrity_check`, `SELECT name || coalesce(sql, '') FROM sqlite_schema ORDER BY name`, `SELECT k || ' ' || hex(v) FROM t ORDER BY k`} {
		rows, err := q.QueryContext(t.Context(), query)
		require.NoError(t, err)
		for rows.Next() {
			var s string
			require.NoError(t, rows.Scan(&s))
			fmt.Fprintln(&out, s)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
	return out.String()
}

// same compares the copy with the database. Nothing is committed meanwhile.
func (p *pair) same(message string) {
	p.t.Helper()
	require.NoError(p.t, p.step())
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := sql.Open("sqlite", "file:"+p.copy+"?immutable=1")
	require.NoError(p.t, err)
	defer c.Close()
	require.Equal(p.t, dump(p.t, p.d), dump(p.t, c), message)
}

// transaction commits some random changes, or rolls them back; sometimes so many that pages are written to the log before.
func (p *pair) transaction(r *rand.Rand) string {
	p.t.Helper()
	tx, err := p.d.BeginTx(p.t.Context(), nil)
	require.NoError(p.t, err)
	n := 1 + r.IntN(8)
	if r.IntN(8) == 0 {
		n = 300
	}
	for range n {
		switch r.IntN(5) {
		case 0:
			_, err = tx.Exec(`DELETE FROM t WHERE k BETWEEN ? AND ?`, r.IntN(400), r.IntN(400))
		default:
			_, err = tx.Exec(`INSERT OR REPLACE INTO t VALUES (?, randomblob(?))`, r.IntN(400), r.IntN(6000))
		}
		require.NoError(p.t, err)
	}
	if r.IntN(4) == 0 {
		require.NoError(p.t, tx.Rollback())
		return "rolled back"
	}
	require.NoError(p.t, tx.Commit())
	return "committed"
}

// A copy is the same as the database after each transaction, whatever they were, while another goroutine reads all the time, over checkpoints and a VACUUM.
func TestCopyIsTheSame(t *testing.T) {
	p := newPair(t)
	_, err := p.d.Exec(`PRAGMA cache_size = 5`)
	require.NoError(t, err)
	stop, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				failed <- nil
				return
			case <-time.After(100 * time.Microsecond):
				if err := p.step(); err != nil {
					failed <- err
					return
				}
			}
		}
	}()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 80 {
		what := p.transaction(r)
		switch i % 40 {
		case 20:
			_, err := p.d.Exec(`VACUUM`)
			require.NoError(t, err)
			what = "VACUUM"
		case 30:
			_, err := p.d.Exec(fmt.Sprintf(`CREATE INDEX i%d ON t (v)`, i))
			require.NoError(t, err)
		case 39:
			c, err := p.d.Conn(t.Context())
			require.NoError(t, err)
			require.NoError(t, p.step())
			p.mu.Lock()
			require.NoError(t, p.r.Checkpoint(t.Context(), c))
			require.Zero(t, p.r.Size())
			p.mu.Unlock()
			require.NoError(t, c.Close())
			what = "checkpoint"
		}
		p.same(fmt.Sprint(i, " ", what))
	}
	close(stop)
	require.NoError(t, <-failed)
	require.Greater(t, p.changes, 40)
}

// What is cut off or damaged at the end of a log is not read, and a log is not checkpointed before it was read.
func TestIncompleteIsIgnored(t *testing.T) {
	p := newPair(t)
	_, err := p.d.Exec(`INSERT INTO t VALUES (1, x'01')`)
	require.NoError(t, err)
	first, err := os.ReadFile(p.source + wal.Suffix)
	require.NoError(t, err)
	_, err = p.d.Exec(`INSERT INTO t VALUES (2, randomblob(20000))`)
	require.NoError(t, err)
	both, err := os.ReadFile(p.source + wal.Suffix)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "c.db")
	ends := func(content []byte) (last uint32) {
		t.Helper()
		require.NoError(t, os.WriteFile(path+wal.Suffix, content, 0o600))
		c, err := wal.NewReader(path).Next()
		require.NoError(t, err)
		if c == nil {
			return 0
		}
		return c.Pages
	}
	one, two := ends(first), ends(both)
	require.NotZero(t, one)
	require.Greater(t, two, one)
	for n := range both {
		want := one
		if n < len(first) {
			want = 0
		}
		if n%97 == 0 || n < 100 {
			require.Equal(t, want, ends(both[:n]), n)
		}
	}
	for n := len(first); n < len(both); n += 1013 {
		damaged := append([]byte(nil), both...)
		damaged[n] ^= 1
		require.Equal(t, one, ends(damaged), n)
	}
	c, err := p.d.Conn(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, p.r.Checkpoint(t.Context(), c), "has not been read to its end")
	require.NoError(t, c.Close())
	require.NoError(t, os.WriteFile(path+wal.Suffix, append([]byte("not a log"), both...), 0o600))
	_, err = wal.NewReader(path).Next()
	require.ErrorContains(t, err, "no write-ahead log")
}

// A log that others have started again is reported.
func TestRestartedLog(t *testing.T) {
	p := newPair(t)
	_, err := p.d.Exec(`INSERT INTO t VALUES (1, x'01')`)
	require.NoError(t, err)
	p.same("one")
	_, err = p.d.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	require.NoError(t, err)
	require.ErrorIs(t, p.step(), wal.ErrRestarted)
	_, err = p.d.Exec(`INSERT INTO t VALUES (2, x'01')`)
	require.NoError(t, err)
	require.ErrorIs(t, p.step(), wal.ErrRestarted)
	require.NoError(t, p.d.Close())
	require.ErrorIs(t, p.step(), wal.ErrRestarted)
	require.NoError(t, wal.RemoveLog(vfs.OS{}, p.source))
}
