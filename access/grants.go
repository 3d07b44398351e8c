package access

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// Grant is one right of one key on one project.
type Grant struct {
	Project project.Name  `json:"project"`
	Key     string        `json:"key"`
	Right   project.Right `json:"right"`
	Added   time.Time     `json:"added"`
	AddedBy string        `json:"added_by"`
}

// Grant gives a key a right on a project; granting it twice changes nothing. An unknown key is fault.Refused.
// Whether the project exists is the caller's matter.
func (s *Store) Grant(ctx context.Context, by Identity, name project.Name, key string, right project.Right) error {
	err := s.grant(ctx, by, name, key, right)
	return s.record(ctx, by, "access grant", string(name), printable.Clip(key, 200)+" "+string(right), err)
}

func (s *Store) grant(ctx context.Context, by Identity, name project.Name, key string, right project.Right) error {
	if err := checkGrant(name, right); err != nil {
		return err
	}
	if _, err := s.FindByName(ctx, key); err != nil {
		return err
	}
	_, err := s.db.ExecContext(ctx, `INSERT INTO grants(project, key, right, added, added_by) VALUES (?,?,?,?,?) ON CONFLICT DO NOTHING`,
		string(name), key, string(right), s.now().UnixNano(), by.Name)
	return err
}

func checkGrant(name project.Name, right project.Right) error {
	if _, err := project.ParseName(string(name)); err != nil {
		return err
	}
	_, err := project.ParseRight(string(right))
	return err
}

// Revoke takes a right away again. A right that was not granted is fault.Refused.
func (s *Store) Revoke(ctx context.Context, by Identity, name project.Name, key string, right project.Right) error {
	err := s.revoke(ctx, name, key, right)
	return s.record(ctx, by, "access revoke", string(name), printable.Clip(key, 200)+" "+string(right), err)
}

func (s *Store) revoke(ctx context.Context, name project.Name, key string, right project.Right) error {
	if err := checkGrant(name, right); err != nil {
		return err
	}
	k, err := s.FindByName(ctx, key)
	if err != nil {
		return err
	}
	res, err := s.db.ExecContext(ctx, `DELETE FROM grants WHERE project = ? AND key = ? AND right = ?`, string(name), key, string(right))
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	e := fault.New(fault.Refused, "access revoke", "%s does not hold %s on %s", key, right, name)
	if k.Admin {
		return e.WithHint("it is an admin key, which has every right: end that with  corpus-git key remove %s  and add it again without --admin", key)
	}
	return e.WithHint("see what is granted with  corpus-git access list %s", name)
}

// RevokeAll takes every right on a project away, as its destruction must.
func (s *Store) RevokeAll(ctx context.Context, by Identity, name project.Name) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM grants WHERE project = ?`, string(name))
	return s.record(ctx, by, "access revoke", string(name), "all", err)
}

// ListGrants gives the grants of a project, or of all projects for "", by project, key and right.
func (s *Store) ListGrants(ctx context.Context, name project.Name) ([]Grant, error) {
	return s.grants(ctx, `SELECT project, key, right, added, added_by FROM grants WHERE ?1 = '' OR project = ?1 ORDER BY project, key, right`, string(name))
}

// GrantsOf gives the grants of a key, by project and right.
func (s *Store) GrantsOf(ctx context.Context, key string) ([]Grant, error) {
	return s.grants(ctx, `SELECT project, key, right, added, added_by FROM grants WHERE key = ? ORDER BY project, right`, key)
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
		if err := rows.Scan(&g.Project, &g.Key, &g.Right, &added, &g.AddedBy); err != nil {
			return nil, err
		}
		g.Added = time.Unix(0, added)
		out = append(out, g)
	}
	return out, rows.Err()
}

// Can reports whether an identity holds a right on a project, now: an admin key, or a grant of that right or of one that
// implies it. A local identity (no fingerprint) is what it says; a key is looked up anew, so that one that was removed
// or is no admin any more has nothing. It takes the same steps for projects that exist and those that do not.
func (s *Store) Can(ctx context.Context, who Identity, name project.Name, want project.Right) (bool, error) {
	r, err := s.rights(ctx, who, `g.project = ?`, string(name))
	return err == nil && r.Can(name, want), err
}

// Rights are those that an identity holds at one moment, on all projects.
type Rights struct {
	all bool
	on  map[project.Name][]project.Right
}

// Can tells what Store.Can would have told at that moment.
func (r Rights) Can(name project.Name, want project.Right) bool {
	return want != "" && (r.all || slices.ContainsFunc(r.on[name], func(has project.Right) bool { return has.Grants(want) }))
}

// Rights looks all of an identity's rights up at once; see Can.
func (s *Store) Rights(ctx context.Context, who Identity) (Rights, error) {
	return s.rights(ctx, who, `TRUE`)
}

// rights are those on the projects whose grants a condition chooses.
func (s *Store) rights(ctx context.Context, who Identity, which string, args ...any) (Rights, error) {
	if who.Name == "" {
		return Rights{}, nil
	}
	if who.Fingerprint == "" {
		return Rights{all: who.Admin}, nil
	}
	rows, err := s.db.QueryContext(ctx, `SELECT k.admin, g.project, g.right FROM keys k LEFT JOIN grants g ON g.key = k.name AND `+which+`
		WHERE k.fingerprint = ? AND k.name = ?`, append(args, who.Fingerprint, who.Name)...)
	if err != nil {
		return Rights{}, err
	}
	defer rows.Close()
	out := Rights{on: map[project.Name][]project.Right{}}
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

// IsAdmin reports whether an identity is an admin now; see Can.
func (s *Store) IsAdmin(ctx context.Context, who Identity) (bool, error) {
	if who.Name == "" {
		return false, nil
	}
	if who.Fingerprint == "" {
		return who.Admin, nil
	}
	var admin bool
	err := s.db.QueryRowContext(ctx, `SELECT admin FROM keys WHERE fingerprint = ? AND name = ?`, who.Fingerprint, who.Name).Scan(&admin)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return admin, err
}
