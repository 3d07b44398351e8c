package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Store is the keys and grants in the state database.
type Store struct {
	db    *sql.DB
	audit *audit.Log
	now   func() time.Time
}

// Open prepares the tables. The database stays the caller's to close.
func Open(ctx context.Context, d *sql.DB, log *audit.Log, now func() time.Time) (*Store, error) {
	err := db.Migrate(ctx, d, "access", []string{
		`CREATE TABLE keys (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, blob BLOB NOT NULL, type TEXT NOT NULL, comment TEXT NOT NULL,
			admin INTEGER NOT NULL, added INTEGER NOT NULL, added_by TEXT NOT NULL, last_used INTEGER NOT NULL DEFAULT 0)`,
		`CREATE TABLE grants (project TEXT NOT NULL, key TEXT NOT NULL REFERENCES keys(name) ON DELETE CASCADE, right TEXT NOT NULL,
			added INTEGER NOT NULL, added_by TEXT NOT NULL, PRIMARY KEY (project, key, right))`,
		`CREATE INDEX grants_key ON grants(key)`,
	})
	if err != nil {
		return nil, err
	}
	return &Store{db: d, audit: log, now: now}, nil
}

// record writes an audit entry for a change, or an attempted one, and returns err, joined with the log's own error.
func (s *Store) record(ctx context.Context, by Identity, action, project, object string, err error) error {
	e := audit.Entry{Actor: by.Name, Fingerprint: by.Fingerprint, From: by.From, Action: action, Project: project, Object: object, Outcome: "ok"}
	if err != nil {
		e.Outcome, e.Detail = "failed", err.Error()
		if k := fault.KindOf(err); k == fault.Refused || k == fault.Usage {
			e.Outcome = "refused"
		}
	}
	if lerr := s.audit.Record(context.WithoutCancel(ctx), e); lerr != nil {
		return errors.Join(err, fmt.Errorf("audit: %w", lerr))
	}
	return err
}

// AddKey lets the holder of a public key log in under a name; text is what ParsePublicKey reads. A name or a key that is
// there already is fault.Refused. It gives no right on any project, but to an admin key every right on all of them.
func (s *Store) AddKey(ctx context.Context, by Identity, name string, text []byte, admin bool) (Key, error) {
	k, err := s.addKey(ctx, by, name, text, admin)
	object := printable.Clip(name, 200)
	if k.Fingerprint != "" {
		object += " " + k.Fingerprint
	}
	if admin {
		object += " admin"
	}
	return k, s.record(ctx, by, "key add", "", object, err)
}

func (s *Store) addKey(ctx context.Context, by Identity, name string, text []byte, admin bool) (Key, error) {
	if _, err := ParseName(name); err != nil {
		return Key{}, err
	}
	pub, comment, err := ParsePublicKey(text)
	if err != nil {
		return Key{}, err
	}
	k := Key{Name: name, Fingerprint: Fingerprint(pub), Type: pub.Type(), Comment: comment, Admin: admin, Added: s.now(), AddedBy: by.Name}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return k, err
	}
	defer func() { _ = tx.Rollback() }()
	var other string
	switch err := tx.QueryRowContext(ctx, `SELECT name FROM keys WHERE name = ? OR fingerprint = ? ORDER BY fingerprint = ? DESC`, name, k.Fingerprint, k.Fingerprint).Scan(&other); {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return k, err
	case other == name:
		return k, fault.New(fault.Refused, "key add", "there is a key named %s already", name).WithHint("choose another name, or remove it first:  corpus-git key remove %s", name)
	default:
		return k, fault.New(fault.Refused, "key add", "this key is known already, as %s", other)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO keys(name, fingerprint, blob, type, comment, admin, added, added_by) VALUES (?,?,?,?,?,?,?,?)`,
		k.Name, k.Fingerprint, pub.Marshal(), k.Type, k.Comment, k.Admin, k.Added.UnixNano(), k.AddedBy); err != nil {
		return k, err
	}
	return k, tx.Commit()
}

// RemoveKey ends a key's access and takes its grants away. Sessions that run go on; their next request is refused.
// An unknown name is fault.Refused.
func (s *Store) RemoveKey(ctx context.Context, by Identity, name string) error {
	res, err := s.db.ExecContext(ctx, `DELETE FROM keys WHERE name = ?`, name)
	if err == nil {
		var n int64
		if n, err = res.RowsAffected(); err == nil && n == 0 {
			err = noKey(name)
		}
	}
	return s.record(ctx, by, "key remove", "", printable.Clip(name, 200), err)
}

func noKey(name string) error {
	return fault.New(fault.Refused, "key", "there is no key named \"%s\"", printable.Clip(name, 200)).WithHint("see them with  corpus-git key list")
}

const keyColumns = `name, fingerprint, type, comment, admin, added, added_by, last_used`

func scanKey(row interface{ Scan(...any) error }) (k Key, err error) {
	var added, used int64
	if err = row.Scan(&k.Name, &k.Fingerprint, &k.Type, &k.Comment, &k.Admin, &added, &k.AddedBy, &used); err != nil {
		return Key{}, err
	}
	k.Added = time.Unix(0, added)
	if used != 0 {
		k.LastUsed = time.Unix(0, used)
	}
	return k, nil
}

// ListKeys gives all keys by name.
func (s *Store) ListKeys(ctx context.Context) ([]Key, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT `+keyColumns+` FROM keys ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Key
	for rows.Next() {
		k, err := scanKey(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, rows.Err()
}

// FindByName gives one key; an unknown name is fault.Refused.
func (s *Store) FindByName(ctx context.Context, name string) (Key, error) {
	k, err := scanKey(s.db.QueryRowContext(ctx, `SELECT `+keyColumns+` FROM keys WHERE name = ?`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return Key{}, noKey(name)
	}
	return k, err
}

// FindByKey looks a public key up, by its whole content. ok is false for a key that may not log in.
func (s *Store) FindByKey(ctx context.Context, pub ssh.PublicKey) (k Key, ok bool, err error) {
	if checkKey(pub) != nil {
		return Key{}, false, nil
	}
	k, err = scanKey(s.db.QueryRowContext(ctx, `SELECT `+keyColumns+` FROM keys WHERE fingerprint = ? AND blob = ?`, Fingerprint(pub), pub.Marshal()))
	if errors.Is(err, sql.ErrNoRows) {
		return Key{}, false, nil
	}
	return k, err == nil, err
}

// Used notes that a key logged in, at most once a minute.
func (s *Store) Used(ctx context.Context, fingerprint string) error {
	now := s.now()
	var last int64
	err := s.db.QueryRowContext(ctx, `SELECT last_used FROM keys WHERE fingerprint = ?`, fingerprint).Scan(&last)
	if errors.Is(err, sql.ErrNoRows) || err == nil && now.Sub(time.Unix(0, last)).Abs() < time.Minute {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `UPDATE keys SET last_used = ? WHERE fingerprint = ?`, now.UnixNano(), fingerprint)
	return err
}
