package access

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// NewKey is a key to add.
type NewKey struct {
	Name string
	// Principal is the principal that it is added to; "" creates a principal with the key's name, which is removed with the key (Implied).
	Principal string
	// Text is the input of ParsePublicKey.
	Text []byte
	// Admin makes the new principal an administrator; it is valid with Principal "" only.
	Admin bool
	// Expires is when it stops being valid; zero means never.
	Expires time.Time
}

// AddKey is AddKeyTo for a new principal.
func (s *Store) AddKey(ctx context.Context, by Identity, name string, text []byte, admin bool) (Key, error) {
	return s.AddKeyTo(ctx, by, NewKey{Name: name, Text: text, Admin: admin})
}

// AddKeyTo adds a public key for a principal. A name or a key that exists already is fault.Refused. It grants no permission on any project,
// except that a new administrator has all.
func (s *Store) AddKeyTo(ctx context.Context, by Identity, n NewKey) (Key, error) {
	k, err := s.addKey(ctx, by, n)
	object := printable.Clip(n.Name, 200)
	if n.Principal != "" {
		object += " of " + printable.Clip(n.Principal, 200)
	}
	if k.Fingerprint != "" {
		object += " " + k.Fingerprint
	}
	if n.Admin {
		object += " admin"
	}
	return k, s.record(ctx, by, "key add", "", object, err)
}

func (s *Store) addKey(ctx context.Context, by Identity, n NewKey) (Key, error) {
	if _, err := ParseName(n.Name); err != nil {
		return Key{}, err
	}
	pub, comment, err := ParsePublicKey(n.Text)
	if err != nil {
		return Key{}, err
	}
	k := Key{Name: n.Name, Principal: n.Principal, Fingerprint: Fingerprint(pub), Type: pub.Type(), Comment: comment, Admin: n.Admin, Expires: n.Expires, Added: s.now(), AddedBy: by.Name}
	if !n.Expires.IsZero() && !n.Expires.After(k.Added) {
		return k, fault.New(fault.Usage, "key add", "it would already be expired").WithHint("such as  --expires 90d")
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return k, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := unknownKey(ctx, tx, k); err != nil {
		return k, err
	}
	if err := ownerOf(ctx, tx, &k); err != nil {
		return k, err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO keys(name, principal, fingerprint, blob, type, comment, expires, added, added_by) VALUES (?,?,?,?,?,?,?,?,?)`,
		k.Name, k.Principal, k.Fingerprint, pub.Marshal(), k.Type, k.Comment, nanos(k.Expires), k.Added.UnixNano(), k.AddedBy); err != nil {
		return k, err
	}
	return k, tx.Commit()
}

// unknownKey refuses a name or a key that exists already.
func unknownKey(ctx context.Context, tx *sql.Tx, k Key) error {
	var other string
	switch err := tx.QueryRowContext(ctx, `SELECT name FROM keys WHERE name = ? OR fingerprint = ? ORDER BY fingerprint = ? DESC`, k.Name, k.Fingerprint, k.Fingerprint).Scan(&other); {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case other == k.Name:
		return fault.New(fault.Refused, "key add", "a key named %s already exists", k.Name).WithHint("choose another name, or remove it first:  corpus-git key remove %s", k.Name)
	}
	return fault.New(fault.Refused, "key add", "this key already exists as %s", other)
}

// ownerOf looks up the principal of a new key, or creates one with the key's name.
func ownerOf(ctx context.Context, tx *sql.Tx, k *Key) error {
	if k.Principal != "" {
		if k.Admin {
			return fault.New(fault.Usage, "key add", "administrators are set for users, not keys").WithHint("corpus-git user set %s --admin", k.Principal)
		}
		err := tx.QueryRowContext(ctx, `SELECT admin FROM principals WHERE name = ?`, k.Principal).Scan(&k.Admin)
		if errors.Is(err, sql.ErrNoRows) {
			return noPrincipal(k.Principal)
		}
		return err
	}
	k.Principal = k.Name
	res, err := tx.ExecContext(ctx, `INSERT INTO principals(`+principalColumns+`) VALUES (?,?,'',?,0,1,?,?) ON CONFLICT(name) DO NOTHING`,
		k.Name, string(Person), k.Admin, k.Added.UnixNano(), k.AddedBy)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return fault.New(fault.Refused, "key add", "a user named %s already exists", k.Name).WithHint("to add the key to that user:  corpus-git key add NAME --user %s", k.Name)
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// RemoveKey removes a key. A principal that was created for its first key (Implied) is removed with its last one, with its tokens and grants.
// Running sessions continue; their next request is refused. An unknown name is fault.Refused.
func (s *Store) RemoveKey(ctx context.Context, by Identity, name string) error {
	return s.record(ctx, by, "key remove", "", printable.Clip(name, 200), s.removeKey(ctx, name))
}

func (s *Store) removeKey(ctx context.Context, name string) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var owner string
	err = tx.QueryRowContext(ctx, `DELETE FROM keys WHERE name = ? RETURNING principal`, name).Scan(&owner)
	if errors.Is(err, sql.ErrNoRows) {
		return noKey(name)
	}
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM principals WHERE name = ? AND implied AND NOT EXISTS (SELECT 1 FROM keys WHERE principal = ?)`, owner, owner); err != nil {
		return err
	}
	return tx.Commit()
}

func noKey(name string) error {
	return fault.New(fault.Refused, "key", "no key named \"%s\"", printable.Clip(name, 200)).WithHint("see them with  corpus-git key list")
}

const keyColumns = `k.name, k.principal, k.fingerprint, k.type, k.comment, p.admin, k.expires, k.added, k.added_by, k.last_used`

const keyTables = ` FROM keys k JOIN principals p ON p.name = k.principal `

func scanKey(row interface{ Scan(...any) error }) (k Key, err error) {
	var added, used, expires int64
	if err = row.Scan(&k.Name, &k.Principal, &k.Fingerprint, &k.Type, &k.Comment, &k.Admin, &expires, &added, &k.AddedBy, &used); err != nil {
		return Key{}, err
	}
	k.Added = time.Unix(0, added)
	if expires != 0 {
		k.Expires = time.Unix(0, expires)
	}
	if used != 0 {
		k.LastUsed = time.Unix(0, used)
	}
	return k, nil
}

// ListKeys returns all keys, ordered by name.
func (s *Store) ListKeys(ctx context.Context) ([]Key, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT `+keyColumns+keyTables+`ORDER BY k.name`)
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

// FindByName returns one key; an unknown name is fault.Refused.
func (s *Store) FindByName(ctx context.Context, name string) (Key, error) {
	k, err := scanKey(s.db.QueryRowContext(ctx, `SELECT `+keyColumns+keyTables+`WHERE k.name = ?`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return Key{}, noKey(name)
	}
	return k, err
}

// FindByKey looks up a public key, by its whole content. ok is false for a key that may not log in: an unknown one, one that has expired or is revoked, or that of a disabled
// principal.
func (s *Store) FindByKey(ctx context.Context, pub ssh.PublicKey) (k Key, ok bool, err error) {
	if checkKey(pub) != nil {
		return Key{}, false, nil
	}
	k, err = scanKey(s.db.QueryRowContext(ctx, `SELECT `+keyColumns+keyTables+`WHERE k.fingerprint = ? AND k.blob = ? AND NOT p.disabled AND (k.expires = 0 OR k.expires > ?)`, Fingerprint(pub), pub.Marshal(), s.now().UnixNano()))
	if errors.Is(err, sql.ErrNoRows) {
		return Key{}, false, nil
	}
	if err != nil {
		return Key{}, false, err
	}
	if revoked, err := s.isRevoked(pub); err != nil || revoked {
		return Key{}, false, err
	}
	return k, true, nil
}
