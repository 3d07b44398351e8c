package access

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/project"
)

// Prefixes of Identity.Fingerprint if it was not a key that authenticated.
const (
	tokenCredential   = "token:"
	sessionCredential = "session"
)

// Authority resolves identities and permissions. *Store is one. Every answer is read from the tables: an Identity is looked up again, so
// that revoking, disabling and expiry take effect with the next request.
type Authority interface {
	// FindByToken returns the identity for an API token.
	FindByToken(ctx context.Context, secret, from string) (who Identity, ok bool, err error)
	// ForSession returns the identity for a session of the web pages, by the name of its principal.
	ForSession(ctx context.Context, name, from string) (who Identity, ok bool, err error)
	// Can reports whether an identity has a permission on a project.
	Can(ctx context.Context, who Identity, name project.Name, want project.Right) (bool, error)
	// Rights returns the permissions on all projects, looked up together.
	Rights(ctx context.Context, who Identity) (Rights, error)
	// IsAdmin reports whether an identity is an admin.
	IsAdmin(ctx context.Context, who Identity) (bool, error)
	// Valid reports whether the credential of an identity would still be accepted: long responses check it periodically.
	Valid(ctx context.Context, who Identity) (bool, error)
	// Used records that a credential was used, at most once a minute.
	Used(ctx context.Context, credential string) error
}

var _ Authority = (*Store)(nil)

// ForSession returns the identity for a session of the web pages, by the name of its principal. ok is false if there is none, or it is
// disabled.
func (s *Store) ForSession(ctx context.Context, name, from string) (who Identity, ok bool, err error) {
	p, ok, err := s.active(ctx, name)
	if err != nil || !ok {
		return Identity{}, false, err
	}
	return Identity{Name: p.Name, Fingerprint: sessionCredential, Admin: p.Admin, From: from}, true, nil
}

// active returns a principal that may log in: it is not disabled, and if it is the directory's, the directory still has it. Admin combines
// both.
func (s *Store) active(ctx context.Context, name string) (p Principal, ok bool, err error) {
	p, err = scanPrincipal(s.db.QueryRowContext(ctx, `SELECT `+principalColumns+` FROM principals WHERE name = ? AND NOT disabled`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return Principal{}, false, nil
	}
	if err != nil {
		return Principal{}, false, err
	}
	k, local, ok, err := s.directoryUser(ctx, name)
	if err != nil || !local && !ok {
		return Principal{}, false, err
	}
	p.Admin = p.Admin || k.admin()
	return p, true, nil
}

// scope returns the scope of a credential; ok is false for one that is no longer valid.
func (s *Store) scope(ctx context.Context, who Identity) (scope Scope, ok bool, err error) {
	now := s.now().UnixNano()
	switch id, isToken := strings.CutPrefix(who.Fingerprint, tokenCredential); {
	case isToken:
		t, err := scanToken(s.db.QueryRowContext(ctx, `SELECT `+tokenColumns+` FROM tokens WHERE id = ? AND principal = ? AND expires > ?`, id, who.Name, now))
		if errors.Is(err, sql.ErrNoRows) {
			return Scope{}, false, nil
		}
		return t.Scope, err == nil, err
	case who.Fingerprint == sessionCredential:
		return Scope{}, true, nil
	case strings.HasPrefix(who.Fingerprint, certificateCredential):
		ok, err := s.certificateValid(ctx, who)
		return Scope{}, ok, err
	}
	ok, err = s.keyValid(ctx, who, now)
	return Scope{}, ok, err
}

// keyValid reports whether the key that authenticated who may still log in.
func (s *Store) keyValid(ctx context.Context, who Identity, now int64) (bool, error) {
	var blob []byte
	err := s.db.QueryRowContext(ctx, `SELECT blob FROM keys WHERE fingerprint = ? AND principal = ? AND (expires = 0 OR expires > ?)`, who.Fingerprint, who.Name, now).Scan(&blob)
	if errors.Is(err, sql.ErrNoRows) {
		return s.keyOfDirectory(ctx, who)
	}
	if err != nil {
		return false, err
	}
	k, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return false, err
	}
	revoked, err := s.isRevoked(k)
	return err == nil && !revoked, err
}

// Can reports whether an identity has a permission on a project now: as an admin, or by a grant of that permission or of one that implies
// it, within the scope of its token. A local identity (no fingerprint) is trusted; any other is looked up again, so that a removed or
// expired key or token, and a disabled or demoted principal, has none. It takes the same steps for projects that exist and those that do
// not.
func (s *Store) Can(ctx context.Context, who Identity, name project.Name, want project.Right) (bool, error) {
	r, err := s.rights(ctx, who, `g.project = ?`, string(name))
	return err == nil && r.Can(name, want), err
}

// Rights are the permissions of an identity on all projects at one moment.
type Rights struct {
	all        bool
	everywhere []project.Right
	on         map[project.Name][]project.Right
	scope      Scope
}

// Can returns what Store.Can would have returned at that moment.
func (r Rights) Can(name project.Name, want project.Right) bool {
	grants := func(has project.Right) bool { return has.Grants(want) }
	return want != "" && r.scope.Allows(name, want) && (r.all || slices.ContainsFunc(r.everywhere, grants) || slices.ContainsFunc(r.on[name], grants))
}

// Somewhere reports whether there may be a project on which Can would return true.
func (r Rights) Somewhere(want project.Right) bool {
	if r.all || slices.ContainsFunc(r.everywhere, func(has project.Right) bool { return has.Grants(want) }) {
		return true
	}
	for name := range r.on {
		if r.Can(name, want) {
			return true
		}
	}
	return false
}

// Rights looks up all permissions of an identity together; see Can.
func (s *Store) Rights(ctx context.Context, who Identity) (Rights, error) {
	return s.rights(ctx, who, `TRUE`)
}

// rights returns the permissions on the projects whose grants match a condition.
func (s *Store) rights(ctx context.Context, who Identity, which string, args ...any) (Rights, error) {
	if who.Name == "" {
		return Rights{}, nil
	}
	if who.Fingerprint == "" {
		return Rights{all: who.Admin}, nil
	}
	scope, ok, err := s.scope(ctx, who)
	if err != nil || !ok {
		return Rights{}, err
	}
	p, ok, err := s.active(ctx, who.Name)
	if err != nil || !ok {
		return Rights{}, err
	}
	k, _, _, err := s.directoryUser(ctx, who.Name)
	if err != nil {
		return Rights{}, err
	}
	rows, err := s.db.QueryContext(ctx, `SELECT p.admin, g.project, g.right FROM principals p LEFT JOIN grants g ON g.principal = p.name AND `+which+`
		WHERE p.name = ? AND NOT p.disabled`, append(args, who.Name)...)
	if err != nil {
		return Rights{}, err
	}
	defer rows.Close()
	out := Rights{all: p.Admin, on: map[project.Name][]project.Right{}, scope: scope}
	for _, g := range k.rights {
		if g.Project == "" {
			out.everywhere = append(out.everywhere, g.Right)
		} else {
			out.on[g.Project] = append(out.on[g.Project], g.Right)
		}
	}
	for rows.Next() {
		var admin bool
		var on, right sql.NullString
		if err := rows.Scan(&admin, &on, &right); err != nil {
			return Rights{}, err
		}
		out.all = out.all || admin
		if on.Valid && right.Valid {
			out.on[project.Name(on.String)] = append(out.on[project.Name(on.String)], project.Right(right.String))
		}
	}
	return out, rows.Err()
}

// IsAdmin reports whether an identity is an admin now; see Can. A token with a limited scope never is.
func (s *Store) IsAdmin(ctx context.Context, who Identity) (bool, error) {
	if who.Name == "" {
		return false, nil
	}
	if who.Fingerprint == "" {
		return who.Admin, nil
	}
	scope, ok, err := s.scope(ctx, who)
	if err != nil || !ok || !scope.allowsAll() {
		return false, err
	}
	p, ok, err := s.active(ctx, who.Name)
	return ok && p.Admin, err
}

// Valid reports whether an identity is still valid: its key, token or session has not ended, and its principal is not disabled. A local one always
// is.
func (s *Store) Valid(ctx context.Context, who Identity) (bool, error) {
	if who.Name == "" || who.Fingerprint == "" {
		return who.Name != "", nil
	}
	_, ok, err := s.scope(ctx, who)
	if err != nil || !ok {
		return false, err
	}
	_, ok, err = s.active(ctx, who.Name)
	return ok, err
}

// Used records that a credential (Identity.Fingerprint) was used, at most once a minute.
func (s *Store) Used(ctx context.Context, credential string) error {
	table, column := "keys", "fingerprint"
	if id, ok := strings.CutPrefix(credential, tokenCredential); ok {
		table, column, credential = "tokens", "id", id
	}
	now := s.now()
	var last int64
	err := s.db.QueryRowContext(ctx, `SELECT last_used FROM `+table+` WHERE `+column+` = ?`, credential).Scan(&last)
	if errors.Is(err, sql.ErrNoRows) || err == nil && now.Sub(time.Unix(0, last)).Abs() < time.Minute {
		return nil
	}
	if err != nil {
		return err
	}
	return s.batch.Exec(ctx, `UPDATE `+table+` SET last_used = ? WHERE `+column+` = ?`, now.UnixNano(), credential)
}
