package access

import (
	"context"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// Grant is one permission of one principal on one project.
type Grant struct {
	Project   project.Name `json:"project"`
	Principal string       `json:"principal"`
	// Key is Principal again, under the name that it had when keys had permissions.
	Key     string        `json:"key"`
	Right   project.Right `json:"right"`
	Added   time.Time     `json:"added"`
	AddedBy string        `json:"added_by"`
}

// Grant gives a principal a permission on a project; granting it twice changes nothing. An unknown principal is
// fault.Refused. The caller checks whether the project exists.
func (s *Store) Grant(ctx context.Context, by Identity, name project.Name, principal string, right project.Right) error {
	err := s.grant(ctx, by, name, principal, right)
	return s.record(ctx, by, "access grant", string(name), printable.Clip(principal, 200)+" "+string(right), err)
}

func (s *Store) grant(ctx context.Context, by Identity, name project.Name, principal string, right project.Right) error {
	if err := checkGrant(name, right); err != nil {
		return err
	}
	if _, err := s.FindPrincipal(ctx, principal); err != nil {
		return err
	}
	_, err := s.db.ExecContext(ctx, `INSERT INTO grants(project, principal, right, added, added_by) VALUES (?,?,?,?,?) ON CONFLICT DO NOTHING`,
		string(name), principal, string(right), s.now().UnixNano(), by.Name)
	return err
}

func checkGrant(name project.Name, right project.Right) error {
	if _, err := project.ParseName(string(name)); err != nil {
		return err
	}
	_, err := project.ParseRight(string(right))
	return err
}

// Revoke removes a permission. A permission that was not granted is fault.Refused.
func (s *Store) Revoke(ctx context.Context, by Identity, name project.Name, principal string, right project.Right) error {
	err := s.revoke(ctx, name, principal, right)
	return s.record(ctx, by, "access revoke", string(name), printable.Clip(principal, 200)+" "+string(right), err)
}

func (s *Store) revoke(ctx context.Context, name project.Name, principal string, right project.Right) error {
	if err := checkGrant(name, right); err != nil {
		return err
	}
	p, err := s.FindPrincipal(ctx, principal)
	if err != nil {
		return err
	}
	res, err := s.db.ExecContext(ctx, `DELETE FROM grants WHERE project = ? AND principal = ? AND right = ?`, string(name), principal, string(right))
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	e := fault.New(fault.Refused, "access revoke", "%s does not hold %s on %s", principal, right, name)
	if p.Admin {
		return e.WithHint("this user is an administrator with all permissions; to change that:  corpus-git user set %s --admin=false", principal)
	}
	return e.WithHint("corpus-git access list %s  lists permissions", name)
}

// RevokeAll removes every permission on a project, for its destruction.
func (s *Store) RevokeAll(ctx context.Context, by Identity, name project.Name) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM grants WHERE project = ?`, string(name))
	return s.record(ctx, by, "access revoke", string(name), "all", err)
}

// ListGrants returns the grants of a project, or of all projects for "", ordered by project, principal and permission.
func (s *Store) ListGrants(ctx context.Context, name project.Name) ([]Grant, error) {
	return s.grants(ctx, `SELECT project, principal, right, added, added_by FROM grants WHERE ?1 = '' OR project = ?1 ORDER BY project, principal, right`, string(name))
}

// GrantsOf returns the grants of a principal, ordered by project and permission.
func (s *Store) GrantsOf(ctx context.Context, principal string) ([]Grant, error) {
	return s.grants(ctx, `SELECT project, principal, right, added, added_by FROM grants WHERE principal = ? ORDER BY project, right`, principal)
}

func (s *Store) grants(ctx context.Context, query, arg string) ([]Grant, error) {
	rows, err := s.db.QueryContext(ctx, query, arg)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Grant
	for rows.Next() {
		var g Grant
		var added int64
		if err := rows.Scan(&g.Project, &g.Principal, &g.Right, &added, &g.AddedBy); err != nil {
			return nil, err
		}
		g.Added, g.Key = time.Unix(0, added), g.Principal
		out = append(out, g)
	}
	return out, rows.Err()
}
