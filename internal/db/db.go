package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"modernc.org/sqlite" // the driver, pure Go
)

// connections is the number of open connections. SQLite allows one write at a time, and lets others poll, in no order, with pauses of up to
// 100 ms until they time out: a hundred deployments that end together would wait needlessly, and one of them might fail. With one
// connection callers queue for it (database/sql, DB.SetMaxOpenConns), and there is a single page cache.
const connections = 1

// Open opens or creates the SQLite database at path, readable by its owner only. One process may have it open. Source of the settings:
// SQLite documentation, "PRAGMA Statements". There is one connection: a caller that holds a transaction, or the rows of a query, must not
// start another query outside of that transaction.
func Open(ctx context.Context, path string) (*sql.DB, error) { return OpenWith(ctx, path, Options{}) }

// Options say how a database is opened.
type Options struct {
	// Replicated leaves committed transactions in the WAL until the caller checkpoints, which it must do: it sends them elsewhere first (cluster/wal). Source: SQLite documentation,
	// "PRAGMA wal_autocheckpoint". Closing the database checkpoints, too.
	Replicated bool
}

// OpenWith is Open with options.
func OpenWith(ctx context.Context, path string, o Options) (*sql.DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	q := url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"}, "_txlock": {"immediate"}}
	if o.Replicated {
		q.Add("_pragma", "wal_autocheckpoint(0)")
	}
	c, err := sqlite.NewConnector("file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode())
	if err != nil {
		return nil, err
	}
	d := sql.OpenDB(keeping{c})
	d.SetMaxOpenConns(connections)
	if err := d.PingContext(ctx); err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	return d, nil
}

// Execer is a database, or one connection to it.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// WithoutSync runs write, whose transactions are not durable when they return: a power cut may lose them, as a whole, and those after them. The
// next transaction of another caller makes them durable with its own. Source: SQLite documentation, "PRAGMA synchronous" (NORMAL, in WAL mode).
func WithoutSync(ctx context.Context, d *sql.DB, write func(*sql.Conn) error) error {
	c, err := d.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx = context.WithoutCancel(ctx) // for a context that can end, the driver starts a goroutine
	if _, err := c.ExecContext(ctx, `PRAGMA synchronous = NORMAL`); err != nil {
		return err
	}
	err = write(c)
	if _, back := c.ExecContext(ctx, `PRAGMA synchronous = FULL`); back != nil {
		// This connection must not be reused.
		_ = c.Raw(func(any) error { return driver.ErrBadConn })
		err = errors.Join(err, back)
	}
	return err
}

// Flush makes durable what WithoutSync wrote.
func Flush(ctx context.Context, d *sql.DB) error {
	// Any transaction that writes does this.
	_, err := d.ExecContext(ctx, `UPDATE migrations SET applied = applied WHERE room = (SELECT min(room) FROM migrations)`)
	return err
}

// Copy writes a consistent copy of a database to a new file that only its owner can read. The copy has no WAL beside it. It is not durable
// when Copy returns. Source: SQLite documentation, "VACUUM", INTO clause.
func Copy(ctx context.Context, d *sql.DB, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	_, err = d.ExecContext(ctx, `VACUUM INTO ?`, path)
	return err
}

// Check reports damage of a database, as an error.
func Check(ctx context.Context, d *sql.DB) error {
	var answer string
	if err := d.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&answer); err != nil {
		return err
	}
	if answer != "ok" {
		return errors.New(answer)
	}
	return nil
}

// NewerError reports that a database has tables that this version does not know.
type NewerError struct {
	Room          string
	Schema, Known int
	Writer        string // release that last opened it, "" if unknown
}

// Error names the versions.
func (e *NewerError) Error() string {
	by := "a newer corpus-git"
	if e.Writer != "" {
		by = "corpus-git " + e.Writer + ", which is newer"
	}
	return fmt.Sprintf("the database was written by %s (%s: schema %d, this version knows %d)", by, e.Room, e.Schema, e.Known)
}

// SetWriter records the release that opened the database, after all rooms have migrated it.
func SetWriter(ctx context.Context, d *sql.DB, release string) error {
	if err := Migrate(ctx, d, "writer", []string{`CREATE TABLE writer (one INTEGER PRIMARY KEY CHECK (one = 1), release TEXT NOT NULL)`}); err != nil {
		return err
	}
	_, err := d.ExecContext(ctx, `INSERT INTO writer(one, release) VALUES (1, ?) ON CONFLICT(one) DO UPDATE SET release = excluded.release WHERE release <> excluded.release`, release)
	return err
}

// Schemas returns how many statements of each room the database has, and the release that SetWriter recorded, "" if that is unknown.
func Schemas(ctx context.Context, d *sql.DB) (rooms map[string]int, release string, err error) {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = tx.Rollback() }()
	rows, err := tx.QueryContext(ctx, `SELECT room, applied FROM migrations`)
	if err != nil {
		return nil, "", err
	}
	defer rows.Close()
	rooms = map[string]int{}
	for rows.Next() {
		var room string
		var applied int
		if err := rows.Scan(&room, &applied); err != nil {
			return nil, "", err
		}
		rooms[room] = applied
	}
	return rooms, writer(ctx, tx), rows.Err()
}

// Known returns a NewerError if a database has more statements of a room than this version, whose are known, as Migrate would. Rooms that this version does not have do no harm.
func Known(ctx context.Context, d *sql.DB, known map[string]int) error {
	rooms, release, err := Schemas(ctx, d)
	if err != nil {
		return err
	}
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		if n, ok := known[room]; ok && rooms[room] > n {
			return &NewerError{Room: room, Schema: rooms[room], Known: n, Writer: release}
		}
	}
	return nil
}

// writer returns what SetWriter recorded.
func writer(ctx context.Context, tx *sql.Tx) (release string) {
	_ = tx.QueryRowContext(ctx, `SELECT release FROM writer`).Scan(&release) // from before that table existed: unknown
	return release
}

// Migrate brings the tables of one room up to date: statements are applied once each, in order, in one transaction, and recorded under the
// room's name. A database with more statements recorded was written by a newer version, and is refused.
func Migrate(ctx context.Context, d *sql.DB, room string, statements []string) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS migrations (room TEXT PRIMARY KEY, applied INTEGER NOT NULL)`); err != nil {
		return err
	}
	applied := 0
	err = tx.QueryRowContext(ctx, `SELECT applied FROM migrations WHERE room = ?`, room).Scan(&applied)
	if err != nil && err != sql.ErrNoRows {
		return err
	}
	if applied > len(statements) {
		return &NewerError{Room: room, Schema: applied, Known: len(statements), Writer: writer(ctx, tx)}
	}
	for i, s := range statements[applied:] {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("schema %s, statement %d: %w", room, applied+i+1, err)
		}
	}
	if applied < len(statements) {
		if _, err := tx.ExecContext(ctx, `INSERT INTO migrations(room, applied) VALUES(?, ?) ON CONFLICT(room) DO UPDATE SET applied = excluded.applied`, room, len(statements)); err != nil {
			return err
		}
	}
	return tx.Commit()
}
