package kv

import (
	"context"
	"database/sql"
	"regexp"
	"strings"
	"sync"
	"time"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
)

// Limits.
const (
	MaxKey   = 512
	MaxValue = 64 << 10
	maxKeys  = 100_000
	// kept is how many deleted keys are remembered, so that a watcher that was disconnected is notified of them.
	kept = 10_000
	// MinLease and MaxLease limit leases.
	MinLease = time.Second
	MaxLease = 30 * 24 * time.Hour
)

var validKey = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@:-]*(/[A-Za-z0-9_][A-Za-z0-9._@:-]*)+$`)

// CheckKey refuses anything but the name of a key: segments of letters, digits and . _ @ : - , with slashes between, at least two.
func CheckKey(key string) error {
	if len(key) > MaxKey || !validKey.MatchString(key) {
		return fault.New(fault.Usage, "kv", "%q is not the name of a key", key).
			WithHint("names have two parts or more, of letters, digits and . _ @ : -, with / between:  projects/app/colour  or  shared/colour")
	}
	return nil
}

// Entry is a key.
type Entry struct {
	Key      string `json:"key"`
	Value    string `json:"value"`
	Revision int64  `json:"revision"`
	// Deleted reports, in a watch, that the key was deleted.
	Deleted bool      `json:"deleted,omitempty"`
	Changed time.Time `json:"changed"`
	// Expires is when its lease ends; zero if it has none.
	Expires time.Time `json:"expires,omitzero"`
	By      string    `json:"by,omitempty"`
}

// Store is the table. Its methods are safe for concurrent use.
type Store struct {
	db  *sql.DB
	now func() time.Time

	mu sync.Mutex
	// changed is closed, and created again, at each change.
	changed chan struct{}

	// reading is held with known, the facts of all nodes as they were when they were last read.
	reading sync.Mutex
	known   knownFacts
}

// Open prepares the table.
func Open(ctx context.Context, d *sql.DB, now func() time.Time) (*Store, error) {
	return &Store{db: d, now: now, changed: make(chan struct{})}, db.Migrate(ctx, d, "kv", []string{
		`CREATE TABLE kv (key TEXT PRIMARY KEY, value TEXT NOT NULL, revision INTEGER NOT NULL UNIQUE, deleted INTEGER NOT NULL, changed INTEGER NOT NULL, expires INTEGER NOT NULL,
			by TEXT NOT NULL) WITHOUT ROWID`,
		`CREATE TABLE kv_revision (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL)`,
		`INSERT INTO kv_revision (id, revision) VALUES (1, 0)`,
	})
}

// Put is a change.
type Put struct {
	Key, Value string
	// If is the revision that the key must have, 0 if it must not exist; nil accepts any.
	If *int64
	// Lease is how long the key stays without being set again; 0 means for ever.
	Lease time.Duration
	By    string
}

// Set sets a key and returns its revision: the old one if it already has that value. A revision other than Put.If is fault.Refused, an instance of a service that is no JSON object
// fault.Usage. Durable on return.
func (s *Store) Set(ctx context.Context, p Put) (revision int64, err error) {
	if err := CheckKey(p.Key); err != nil {
		return 0, err
	}
	if len(p.Value) > MaxValue {
		return 0, fault.New(fault.Usage, "kv set", "the value of %s is longer than %d bytes", p.Key, MaxValue)
	}
	if err := checkService(p.Key, p.Value); err != nil {
		return 0, err
	}
	if p.Lease != 0 && (p.Lease < MinLease || p.Lease > MaxLease) {
		return 0, fault.New(fault.Usage, "kv set", "a lease lasts from %s to %s", MinLease, MaxLease)
	}
	now, until := s.now(), int64(0)
	if p.Lease > 0 {
		until = now.Add(p.Lease).UnixNano()
	}
	same := false
	err = s.change(ctx, func(tx *sql.Tx) error {
		old, there, err := get(ctx, tx, p.Key, now)
		if err == nil {
			err = expects("kv set", p.Key, p.If, old, there)
		}
		if err != nil {
			return err
		}
		if there && old.Value == p.Value && p.If == nil {
			same, revision = true, old.Revision
			_, err := tx.ExecContext(ctx, `UPDATE kv SET expires = ? WHERE key = ?`, until, p.Key)
			return err
		}
		if !there {
			n := 0
			if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM kv WHERE deleted = 0 AND (key < ? OR key >= ?)`, Nodes, Nodes+"\x7f").Scan(&n); err != nil {
				return err
			}
			if n >= maxKeys {
				return fault.New(fault.Refused, "kv set", "there are %d keys already", n)
			}
		}
		revision, err = s.put(ctx, tx, p, until)
		return err
	})
	if err == nil && !same {
		s.wakeWaiters()
	}
	return revision, err
}

// put stores a key with a new revision.
func (s *Store) put(ctx context.Context, tx *sql.Tx, p Put, until int64) (revision int64, err error) {
	if revision, err = next(ctx, tx); err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO kv (key, value, revision, deleted, changed, expires, by) VALUES (?, ?, ?, 0, ?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value, revision = excluded.revision, deleted = 0, changed = excluded.changed, expires = excluded.expires, by = excluded.by`,
		p.Key, p.Value, revision, s.now().UnixNano(), until, p.By)
	return revision, err
}

// Delete deletes a key; a key that does not exist is fault.Refused, and so is a revision other than want. Durable on return.
func (s *Store) Delete(ctx context.Context, key string, want *int64) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	err := s.change(ctx, func(tx *sql.Tx) error {
		old, there, err := get(ctx, tx, key, s.now())
		if err == nil {
			err = expects("kv delete", key, want, old, there)
		}
		if err == nil && !there {
			err = missing(key)
		}
		if err != nil {
			return err
		}
		return s.remove(ctx, tx, key)
	})
	if err == nil {
		s.wakeWaiters()
	}
	return err
}

func missing(key string) error {
	return fault.New(fault.Refused, "kv", "no key %s", key).WithHint("corpus-git kv list")
}

func expects(verb, key string, want *int64, old Entry, there bool) error {
	switch {
	case want == nil:
		return nil
	case *want == 0 && there:
		return fault.New(fault.Refused, verb, "%s is there already, with revision %d", key, old.Revision)
	case *want != 0 && !there:
		return fault.New(fault.Refused, verb, "%s is not there, and revision %d was expected", key, *want)
	case *want != 0 && old.Revision != *want:
		return fault.New(fault.Refused, verb, "%s has revision %d, and %d was expected", key, old.Revision, *want)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, tx *sql.Tx, key string) error {
	revision, err := next(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE kv SET value = '', deleted = 1, revision = ?, changed = ?, expires = 0 WHERE key = ?`, revision, s.now().UnixNano(), key); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM kv WHERE deleted = 1 AND revision <= (SELECT revision FROM kv WHERE deleted = 1 ORDER BY revision DESC LIMIT 1 OFFSET ?)`, kept)
	return err
}

func next(ctx context.Context, tx *sql.Tx) (revision int64, err error) {
	err = tx.QueryRowContext(ctx, `UPDATE kv_revision SET revision = revision + 1 RETURNING revision`).Scan(&revision)
	return revision, err
}

// change runs f in a transaction.
func (s *Store) change(ctx context.Context, f func(tx *sql.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// wakeWaiters wakes all callers that wait for a change.
func (s *Store) wakeWaiters() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next change. Call it before reading.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

const columns = `key, value, revision, deleted, changed, expires, by`

func scan(rows *sql.Rows) (out []Entry, err error) {
	defer rows.Close()
	for rows.Next() {
		var e Entry
		var changed, expires int64
		if err := rows.Scan(&e.Key, &e.Value, &e.Revision, &e.Deleted, &changed, &expires, &e.By); err != nil {
			return nil, err
		}
		if e.Changed = time.Unix(0, changed).UTC(); expires > 0 {
			e.Expires = time.Unix(0, expires).UTC()
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

func get(ctx context.Context, q querier, key string, now time.Time) (e Entry, there bool, err error) {
	rows, err := q.QueryContext(ctx, `SELECT `+columns+` FROM kv WHERE key = ? AND deleted = 0 AND (expires = 0 OR expires > ?)`, key, now.UnixNano())
	if err != nil {
		return e, false, err
	}
	list, err := scan(rows)
	if err != nil || len(list) == 0 {
		return e, false, err
	}
	return list[0], true, nil
}

// Get finds a key; ok is false if it does not exist.
func (s *Store) Get(ctx context.Context, key string) (e Entry, ok bool, err error) {
	if err := CheckKey(key); err != nil {
		return e, false, err
	}
	return get(ctx, s.db, key, s.now())
}

// List returns the keys that begin with a prefix, in byte order.
func (s *Store) List(ctx context.Context, prefix string) ([]Entry, error) {
	return s.list(ctx, s.db, prefix)
}

// list is List for keys that begin with any of some prefixes, of which none is the beginning of another.
func (s *Store) list(ctx context.Context, q querier, prefixes ...string) ([]Entry, error) {
	now, each := s.now().UnixNano(), make([]string, len(prefixes))
	var args []any
	for i, prefix := range prefixes { // with OR, SQLite would read the whole table
		each[i] = `SELECT ` + columns + ` FROM kv WHERE deleted = 0 AND (expires = 0 OR expires > ?) AND key >= ? AND key < ?`
		args = append(args, now, prefix, prefix+"\x7f") // keys are ASCII
	}
	rows, err := q.QueryContext(ctx, strings.Join(each, ` UNION ALL `)+` ORDER BY key`, args...)
	if err != nil {
		return nil, err
	}
	return scan(rows)
}

// Since returns what changed after a revision, in the order of the changes, and the newest revision; for a key that changed several times, the last change.
func (s *Store) Since(ctx context.Context, after int64) (out []Entry, newest int64, err error) {
	if newest, err = s.Revision(ctx); err != nil {
		return nil, 0, err
	}
	rows, err := s.db.QueryContext(ctx, `SELECT `+columns+` FROM kv WHERE revision > ? AND revision <= ? ORDER BY revision`, after, newest)
	if err != nil {
		return nil, 0, err
	}
	out, err = scan(rows)
	return out, newest, err
}

// Revision returns the revision of the newest change, 0 before the first.
func (s *Store) Revision(ctx context.Context) (revision int64, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT revision FROM kv_revision`).Scan(&revision)
	return revision, err
}

// Expire deletes keys whose lease has ended, and returns when the next lease ends: zero if there is none.
func (s *Store) Expire(ctx context.Context) (due time.Time, err error) {
	gone := 0
	err = s.change(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+columns+` FROM kv WHERE deleted = 0 AND expires > 0 AND expires <= ?`, s.now().UnixNano())
		if err != nil {
			return err
		}
		list, err := scan(rows)
		if err != nil {
			return err
		}
		for _, e := range list {
			if err := s.remove(ctx, tx, e.Key); err != nil {
				return err
			}
		}
		gone = len(list)
		return nil
	})
	if err != nil {
		return due, err
	}
	if gone > 0 {
		s.wakeWaiters()
	}
	var at sql.NullInt64
	err = s.db.QueryRowContext(ctx, `SELECT min(expires) FROM kv WHERE deleted = 0 AND expires > 0`).Scan(&at)
	if err != nil || !at.Valid {
		return due, err
	}
	return time.Unix(0, at.Int64), nil
}

// Match reports whether a pattern matches a key: * matches any text, including slashes.
func Match(pattern, key string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == key
	}
	rest, ok := strings.CutPrefix(key, parts[0])
	if !ok {
		return false
	}
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// RevisionAt returns a revision that was the newest at a time, or an older one: changes after it may be from before that time, never the other way round.
func (s *Store) RevisionAt(ctx context.Context, at time.Time) (revision int64, err error) {
	var newest, first sql.NullInt64
	err = s.db.QueryRowContext(ctx, `SELECT (SELECT max(revision) FROM kv WHERE changed <= ?), (SELECT min(revision) FROM kv WHERE changed > ?)`, at.UnixNano(), at.UnixNano()).Scan(&newest, &first)
	if first.Valid && newest.Int64 >= first.Int64 { // the clock was set back
		return first.Int64 - 1, err
	}
	return newest.Int64, err
}
