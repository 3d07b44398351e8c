package access

import (
	"context"
	"database/sql"
	"errors"
	"net/mail"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Kind is the kind of a principal.
type Kind string

// The kinds of principals. They have the same permissions; the difference is for people only.
const (
	Person Kind = "person"
	Bot    Kind = "bot"
	Agent  Kind = "agent"
)

// ParseKind validates what a person typed.
func ParseKind(s string) (Kind, error) {
	switch k := Kind(s); k {
	case Person, Bot, Agent:
		return k, nil
	}
	return "", fault.New(fault.Usage, "kind", "unknown kind of user %q", s).WithHint("one of: person, bot, agent")
}

// Principal has permissions: a person, a bot or an agent, whichever key, token, certificate or directory it authenticates with.
type Principal struct {
	Name  string `json:"name"`
	Kind  Kind   `json:"kind"`
	Email string `json:"email,omitempty"`
	// Admin principals have all permissions on every project.
	Admin bool `json:"admin"`
	// Disabled principals cannot log in; their keys, tokens and grants are kept.
	Disabled bool `json:"disabled"`
	// Implied principals were created for their first key, and are removed with their last one.
	Implied bool      `json:"implied"`
	Added   time.Time `json:"added"`
	AddedBy string    `json:"added_by"`
}

// Change is what SetPrincipal changes; nil fields stay unchanged.
type Change struct {
	Kind            *Kind
	Email           *string
	Admin, Disabled *bool
}

const principalColumns = `name, kind, email, admin, disabled, implied, added, added_by`

func scanPrincipal(row interface{ Scan(...any) error }) (p Principal, err error) {
	var added int64
	err = row.Scan(&p.Name, &p.Kind, &p.Email, &p.Admin, &p.Disabled, &p.Implied, &added, &p.AddedBy)
	p.Added = time.Unix(0, added)
	return p, err
}

func checkEmail(s string) error {
	if s == "" {
		return nil
	}
	if a, err := mail.ParseAddress(s); err != nil || a.Address != s || len(s) > 254 { // RFC 5321, 4.5.3.1.3, less the angle brackets
		return fault.New(fault.Usage, "e-mail", "%q is not an e-mail address", printable.Clip(s, 200)).WithHint("such as  marie@example.org")
	}
	return nil
}

// AddPrincipal adds a principal. A principal that was created for a key (Implied) becomes an independent one, with its keys and
// permissions; any other existing one with that name is fault.Refused. Added, AddedBy and Implied of p are ignored.
func (s *Store) AddPrincipal(ctx context.Context, by Identity, p Principal) (Principal, error) {
	p, err := s.addPrincipal(ctx, by, p)
	object := printable.Clip(p.Name, 200)
	if p.Admin {
		object += " admin"
	}
	return p, s.record(ctx, by, "user add", "", object, err)
}

func (s *Store) addPrincipal(ctx context.Context, by Identity, p Principal) (Principal, error) {
	if _, err := ParseName(p.Name); err != nil {
		return p, err
	}
	if _, err := ParseKind(string(p.Kind)); err != nil {
		return p, err
	}
	if err := checkEmail(p.Email); err != nil {
		return p, err
	}
	p.Added, p.AddedBy, p.Implied = s.now(), by.Name, false
	res, err := s.db.ExecContext(ctx, `INSERT INTO principals(`+principalColumns+`) VALUES (?,?,?,?,?,0,?,?)
		ON CONFLICT(name) DO UPDATE SET kind = excluded.kind, email = excluded.email, admin = admin OR excluded.admin, implied = 0 WHERE implied`,
		p.Name, string(p.Kind), p.Email, p.Admin, p.Disabled, p.Added.UnixNano(), p.AddedBy)
	if err != nil {
		return p, err
	}
	if n, err := res.RowsAffected(); err != nil {
		return p, err
	} else if n == 0 {
		return p, fault.New(fault.Refused, "user add", "a user named %s already exists", p.Name).WithHint("change it with  corpus-git user set %s", p.Name)
	}
	return s.FindPrincipal(ctx, p.Name)
}

// SetPrincipal changes a principal. An unknown name is fault.Refused.
func (s *Store) SetPrincipal(ctx context.Context, by Identity, name string, c Change) (Principal, error) {
	action := "user set"
	if c.Disabled != nil {
		action = map[bool]string{true: "user disable", false: "user enable"}[*c.Disabled]
	}
	object := printable.Clip(name, 200)
	if c.Admin != nil {
		object += map[bool]string{true: " admin", false: " no admin"}[*c.Admin]
	}
	p, err := s.setPrincipal(ctx, name, c)
	return p, s.record(ctx, by, action, "", object, err)
}

func (s *Store) setPrincipal(ctx context.Context, name string, c Change) (Principal, error) {
	p, err := s.FindPrincipal(ctx, name)
	if err != nil {
		return p, err
	}
	if c.Kind != nil {
		if p.Kind, err = ParseKind(string(*c.Kind)); err != nil {
			return p, err
		}
	}
	if c.Email != nil {
		if err := checkEmail(*c.Email); err != nil {
			return p, err
		}
		p.Email = *c.Email
	}
	if c.Admin != nil {
		p.Admin = *c.Admin
	}
	if c.Disabled != nil {
		p.Disabled = *c.Disabled
	}
	_, err = s.db.ExecContext(ctx, `UPDATE principals SET kind = ?, email = ?, admin = ?, disabled = ? WHERE name = ?`, string(p.Kind), p.Email, p.Admin, p.Disabled, name)
	return p, err
}

// RemovePrincipal removes a principal with its keys, tokens and grants. An unknown name is fault.Refused.
func (s *Store) RemovePrincipal(ctx context.Context, by Identity, name string) error {
	res, err := s.db.ExecContext(ctx, `DELETE FROM principals WHERE name = ?`, name)
	if err == nil {
		var n int64
		if n, err = res.RowsAffected(); err == nil && n == 0 {
			err = noPrincipal(name)
		}
	}
	return s.record(ctx, by, "user remove", "", printable.Clip(name, 200), err)
}

// FindPrincipal returns one principal; an unknown name is fault.Refused.
func (s *Store) FindPrincipal(ctx context.Context, name string) (Principal, error) {
	p, err := scanPrincipal(s.db.QueryRowContext(ctx, `SELECT `+principalColumns+` FROM principals WHERE name = ?`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return Principal{}, noPrincipal(name)
	}
	return p, err
}

// ListPrincipals returns all principals, ordered by name.
func (s *Store) ListPrincipals(ctx context.Context) ([]Principal, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT `+principalColumns+` FROM principals ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Principal
	for rows.Next() {
		p, err := scanPrincipal(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

func noPrincipal(name string) error {
	return fault.New(fault.Refused, "user", "no user named \"%s\"", printable.Clip(name, 200)).WithHint("see them with  corpus-git user list")
}
