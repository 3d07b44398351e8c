package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// TokenPrefix is the prefix of every token, so that people and secret scanners recognise one.
const TokenPrefix = "cgt_"

// MaxTokenLife is the longest validity of a token.
const MaxTokenLife = 366 * 24 * time.Hour

// Scope limits a credential to a part of its principal's permissions. The zero Scope sets no limit.
type Scope struct {
	// Projects are the projects that it may be used for; none means all.
	Projects []project.Name `json:"projects,omitempty"`
	// Rights are the permissions that it may use; none means all.
	Rights []project.Right `json:"rights,omitempty"`
	// ReadOnly credentials cannot change anything.
	ReadOnly bool `json:"read_only"`
}

// Allows reports whether the scope includes a permission on a project.
func (s Scope) Allows(name project.Name, want project.Right) bool {
	if len(s.Projects) > 0 && !slices.Contains(s.Projects, name) || s.ReadOnly && want != project.Read && want != project.Configure {
		return false
	}
	return len(s.Rights) == 0 || slices.ContainsFunc(s.Rights, func(has project.Right) bool { return has.Grants(want) })
}

// allowsAll reports whether the scope includes what does not belong to a project: users, keys, the machine.
func (s Scope) allowsAll() bool {
	return len(s.Projects) == 0 && !s.ReadOnly && (len(s.Rights) == 0 || slices.Contains(s.Rights, project.Admin))
}

// Token is a secret that a program sends instead of a key. Only its holder knows the secret itself.
type Token struct {
	// ID names the token in messages and in the audit log; it is not a secret.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Principal is the principal whose permissions it has, within the Scope.
	Principal string `json:"principal"`
	Scope
	Expires  time.Time `json:"expires"`
	Added    time.Time `json:"added"`
	AddedBy  string    `json:"added_by"`
	LastUsed time.Time `json:"last_used,omitzero"`
}

// AddToken creates a token and returns its secret, which is not stored: 256 random bits, of which the database holds the SHA-256. ID,
// Added, AddedBy and LastUsed of t are ignored. A name that one of the principal's tokens already has, and a validity longer than
// MaxTokenLife, are refused.
func (s *Store) AddToken(ctx context.Context, by Identity, t Token) (Token, string, error) {
	t, secret, err := s.addToken(ctx, by, t)
	object := printable.Clip(t.Principal, 200) + " " + printable.Clip(t.Name, 200)
	if t.ID != "" {
		object += " " + t.ID
	}
	return t, secret, s.record(ctx, by, "token create", "", object, err)
}

func (s *Store) addToken(ctx context.Context, by Identity, t Token) (Token, string, error) {
	if _, err := ParseName(t.Name); err != nil {
		return t, "", err
	}
	if err := noToken(by, "token create"); err != nil {
		return t, "", err
	}
	if _, err := s.FindPrincipal(ctx, t.Principal); err != nil {
		return t, "", err
	}
	now := s.now()
	if !t.Expires.After(now) || t.Expires.Sub(now) > MaxTokenLife {
		return t, "", fault.New(fault.Usage, "token create", "a token must expire in the future and within %d days", MaxTokenLife/(24*time.Hour)).WithHint("such as  --expires 90d")
	}
	for _, p := range t.Projects {
		if _, err := project.ParseName(string(p)); err != nil {
			return t, "", err
		}
	}
	for _, r := range t.Rights {
		if _, err := project.ParseRight(string(r)); err != nil {
			return t, "", err
		}
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand
	var id [5]byte
	_, _ = rand.Read(id[:])
	secret := TokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	t.ID, t.Added, t.AddedBy, t.LastUsed = hex.EncodeToString(id[:]), now, by.Name, time.Time{}
	res, err := s.db.ExecContext(ctx, `INSERT INTO tokens(id, name, principal, hash, projects, rights, read_only, expires, added, added_by) VALUES (?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT(principal, name) DO NOTHING`,
		t.ID, t.Name, t.Principal, hashed(secret), joined(t.Projects), joined(t.Rights), t.ReadOnly, t.Expires.UnixNano(), now.UnixNano(), t.AddedBy)
	if err != nil {
		return t, "", err
	}
	if n, err := res.RowsAffected(); err != nil {
		return t, "", err
	} else if n == 0 {
		t.ID = ""
		return t, "", fault.New(fault.Refused, "token create", "%s already has a token named %s", t.Principal, t.Name).WithHint("choose another name, or revoke it first:  corpus-git token revoke %s", t.Name)
	}
	return t, secret, nil
}

// RevokeToken ends a token of a principal, by its name or ID. Running requests continue; the next one is refused.
func (s *Store) RevokeToken(ctx context.Context, by Identity, principal, token string) error {
	return s.record(ctx, by, "token revoke", "", printable.Clip(principal, 200)+" "+printable.Clip(token, 200), s.revokeToken(ctx, by, principal, token))
}

func (s *Store) revokeToken(ctx context.Context, by Identity, principal, token string) error {
	if err := noToken(by, "token revoke"); err != nil {
		return err
	}
	res, err := s.db.ExecContext(ctx, `DELETE FROM tokens WHERE principal = ? AND (name = ? OR id = ?)`, principal, token, token)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return fault.New(fault.Refused, "token", "%s has no token \"%s\"", printable.Clip(principal, 200), printable.Clip(token, 200)).WithHint("see them with  corpus-git token list")
}

// noToken refuses requests authenticated by a token: a stolen one could create others that outlive it, or revoke others.
func noToken(by Identity, action string) error {
	if !strings.HasPrefix(by.Fingerprint, tokenCredential) {
		return nil
	}
	return fault.New(fault.Refused, action, "tokens cannot create or revoke tokens").WithHint("use a key, or log in to the web pages")
}

// ListTokens returns the tokens of a principal, or of all for "", ordered by principal and name, including expired ones.
func (s *Store) ListTokens(ctx context.Context, principal string) ([]Token, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT `+tokenColumns+` FROM tokens WHERE ?1 = '' OR principal = ?1 ORDER BY principal, name`, principal)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Token
	for rows.Next() {
		t, err := scanToken(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, rows.Err()
}

const tokenColumns = `id, name, principal, projects, rights, read_only, expires, added, added_by, last_used`

func scanToken(row interface{ Scan(...any) error }) (t Token, err error) {
	var projects, rights string
	var expires, added, used int64
	err = row.Scan(&t.ID, &t.Name, &t.Principal, &projects, &rights, &t.ReadOnly, &expires, &added, &t.AddedBy, &used)
	t.Projects, t.Rights = split[project.Name](projects), split[project.Right](rights)
	t.Expires, t.Added = time.Unix(0, expires), time.Unix(0, added)
	if used != 0 {
		t.LastUsed = time.Unix(0, used)
	}
	return t, err
}

// FindByToken returns the identity for a token. ok is false for one that is unknown, revoked or expired, and for one of a disabled
// principal. from is the address of the peer.
func (s *Store) FindByToken(ctx context.Context, secret, from string) (who Identity, ok bool, err error) {
	if !strings.HasPrefix(secret, TokenPrefix) {
		return Identity{}, false, nil
	}
	var id, name string
	err = s.db.QueryRowContext(ctx, `SELECT id, principal FROM tokens WHERE hash = ? AND expires > ?`, hashed(secret), s.now().UnixNano()).Scan(&id, &name)
	if errors.Is(err, sql.ErrNoRows) {
		return Identity{}, false, nil
	}
	if err != nil {
		return Identity{}, false, err
	}
	p, ok, err := s.active(ctx, name)
	if err != nil || !ok {
		return Identity{}, false, err
	}
	who = Identity{Name: p.Name, Admin: p.Admin}
	who.Fingerprint, who.From = tokenCredential+id, from
	scope, _, err := s.scope(ctx, who)
	who.Admin, who.ReadOnly = who.Admin && scope.allowsAll(), scope.ReadOnly
	return who, err == nil, err
}

// hashed returns what the database stores for a token. A token is long and random, so a plain hash reveals nothing.
func hashed(secret string) string {
	h := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(h[:])
}

func joined[T ~string](all []T) string {
	words := make([]string, len(all))
	for i, a := range all {
		words[i] = string(a)
	}
	return strings.Join(words, " ")
}

func split[T ~string](s string) (out []T) {
	for _, w := range strings.Fields(s) {
		out = append(out, T(w))
	}
	return out
}
