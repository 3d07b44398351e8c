package access_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// keysSchema is that of the releases before there were principals: rights were those of keys.
var keysSchema = []string{
	`CREATE TABLE keys (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, blob BLOB NOT NULL, type TEXT NOT NULL, comment TEXT NOT NULL,
			admin INTEGER NOT NULL, added INTEGER NOT NULL, added_by TEXT NOT NULL, last_used INTEGER NOT NULL DEFAULT 0)`,
	`CREATE TABLE grants (project TEXT NOT NULL, key TEXT NOT NULL REFERENCES keys(name) ON DELETE CASCADE, right TEXT NOT NULL,
			added INTEGER NOT NULL, added_by TEXT NOT NULL, PRIMARY KEY (project, key, right))`,
	`CREATE INDEX grants_key ON grants(key)`,
}

// A server with keys of an older release gets principals, and every key may do what it might, and no more.
func TestMigrationKeepsEveryRight(t *testing.T) {
	ctx := t.Context()
	d, err := db.Open(ctx, filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, db.Migrate(ctx, d, "access", keysSchema))
	all := []project.Right{project.Read, project.Deploy, project.Configure, project.Admin}
	projects := []project.Name{"app", "shop"}
	type holder struct {
		pub   access.Identity
		grant map[project.Name]project.Right
	}
	holders := map[string]holder{}
	for i, h := range []struct {
		admin bool
		grant map[project.Name]project.Right
	}{{false, nil}, {true, nil}, {false, map[project.Name]project.Right{"app": project.Deploy, "shop": project.Configure}}, {true, map[project.Name]project.Right{"app": project.Read}}, {false, map[project.Name]project.Right{"shop": project.Admin}}} {
		pub, _ := newKey(t)
		name := fmt.Sprintf("key%d", i)
		_, err := d.ExecContext(ctx, `INSERT INTO keys VALUES (?,?,?,?,?,?,?,?,?)`, name, access.Fingerprint(pub), pub.Marshal(), pub.Type(), "c", h.admin, 1_600_000_000_000_000_000+i, "root", 7)
		require.NoError(t, err)
		for p, r := range h.grant {
			_, err := d.ExecContext(ctx, `INSERT INTO grants VALUES (?,?,?,?,?)`, string(p), name, string(r), 5, "boss")
			require.NoError(t, err)
		}
		holders[name] = holder{access.Identity{Name: name, Fingerprint: access.Fingerprint(pub), Admin: h.admin}, h.grant}
	}
	log, err := audit.Open(ctx, d, time.Now)
	require.NoError(t, err)
	for range 2 { // the second time there is nothing to do
		s, err := access.Open(ctx, d, log, time.Now)
		require.NoError(t, err)
		keys, err := s.ListKeys(ctx)
		require.NoError(t, err)
		require.Len(t, keys, len(holders))
		for _, k := range keys {
			require.Equal(t, k.Name, k.Principal)
			require.Equal(t, "c", k.Comment)
			require.Equal(t, int64(7), k.LastUsed.UnixNano())
			require.Equal(t, "root", k.AddedBy)
			require.True(t, k.Expires.IsZero())
			h := holders[k.Name]
			require.Equal(t, h.pub.Admin, k.Admin)
			for _, p := range projects {
				for _, want := range all {
					ok, err := s.Can(ctx, h.pub, p, want)
					require.NoError(t, err)
					require.Equal(t, h.pub.Admin || h.grant[p].Grants(want), ok, "%s %s %s", k.Name, p, want)
				}
			}
			admin, err := s.IsAdmin(ctx, h.pub)
			require.NoError(t, err)
			require.Equal(t, h.pub.Admin, admin)
			p, err := s.FindPrincipal(ctx, k.Name)
			require.NoError(t, err)
			require.True(t, p.Implied)
			require.Equal(t, access.Person, p.Kind)
		}
		grants, err := s.ListGrants(ctx, "")
		require.NoError(t, err)
		require.Len(t, grants, 4)
		require.Equal(t, "boss", grants[0].AddedBy)
		require.Equal(t, int64(5), grants[0].Added.UnixNano())
	}
}

func TestPrincipalWithSeveralKeys(t *testing.T) {
	s, log, clock := open(t)
	ctx := t.Context()
	root := access.Local("root")
	marie, err := s.AddPrincipal(ctx, root, access.Principal{Name: "marie", Kind: access.Person, Email: "marie@example.org"})
	require.NoError(t, err)
	require.False(t, marie.Implied)
	_, err = s.AddPrincipal(ctx, root, access.Principal{Name: "marie", Kind: access.Bot})
	require.Equal(t, fault.Refused, fault.KindOf(err))
	for _, bad := range []access.Principal{{Name: "x", Kind: "robot"}, {Name: "../x", Kind: access.Bot}, {Name: "x", Kind: access.Bot, Email: "Marie <m@example.org>"}} {
		_, err = s.AddPrincipal(ctx, root, bad)
		require.Equal(t, fault.Usage, fault.KindOf(err))
	}
	who := func(key, principal string, life time.Duration) access.Identity {
		_, text := newKey(t)
		n := access.NewKey{Name: key, Principal: principal, Text: text}
		if life != 0 {
			n.Expires = clock.t.Add(life)
		}
		k, err := s.AddKeyTo(ctx, root, n)
		require.NoError(t, err)
		require.Equal(t, "marie", k.Principal)
		return access.Identity{Name: k.Principal, Fingerprint: k.Fingerprint}
	}
	laptop, phone := who("laptop", "marie", 0), who("phone", "marie", time.Hour)
	_, text := newKey(t)
	_, err = s.AddKeyTo(ctx, root, access.NewKey{Name: "x", Principal: "nobody", Text: text})
	require.ErrorContains(t, err, `no user named "nobody"`)
	_, err = s.AddKeyTo(ctx, root, access.NewKey{Name: "x", Principal: "marie", Text: text, Admin: true})
	require.Equal(t, fault.Usage, fault.KindOf(err))
	_, err = s.AddKeyTo(ctx, root, access.NewKey{Name: "marie", Text: text})
	require.ErrorContains(t, err, "a user named marie already exists")
	_, err = s.AddKeyTo(ctx, root, access.NewKey{Name: "old", Principal: "marie", Text: text, Expires: clock.t})
	require.Equal(t, fault.Usage, fault.KindOf(err))

	require.NoError(t, s.Grant(ctx, root, "app", "marie", project.Deploy))
	can := func(id access.Identity) bool {
		ok, err := s.Can(ctx, id, "app", project.Deploy)
		require.NoError(t, err)
		return ok
	}
	require.True(t, can(laptop))
	require.True(t, can(phone))
	clock.t = clock.t.Add(time.Hour)
	require.False(t, can(phone), "the key has expired, in an open session, too")
	require.True(t, can(laptop))

	yes, no := true, false
	_, err = s.SetPrincipal(ctx, root, "marie", access.Change{Disabled: &yes})
	require.NoError(t, err)
	require.False(t, can(laptop))
	valid, err := s.Valid(ctx, laptop)
	require.NoError(t, err)
	require.False(t, valid)
	_, ok, err := s.ForSession(ctx, "marie", "x")
	require.NoError(t, err)
	require.False(t, ok)
	_, err = s.SetPrincipal(ctx, root, "marie", access.Change{Disabled: &no})
	require.NoError(t, err)
	require.True(t, can(laptop))
	session, ok, err := s.ForSession(ctx, "marie", "192.0.2.1")
	require.NoError(t, err)
	require.True(t, ok)
	require.True(t, can(session))

	require.NoError(t, s.RemoveKey(ctx, root, "laptop"))
	require.NoError(t, s.RemoveKey(ctx, root, "phone"))
	grants, err := s.GrantsOf(ctx, "marie")
	require.NoError(t, err)
	require.Len(t, grants, 1, "a user that was added stays without keys")
	require.NoError(t, s.RemovePrincipal(ctx, root, "marie"))
	require.False(t, can(session))
	grants, err = s.GrantsOf(ctx, "marie")
	require.NoError(t, err)
	require.Empty(t, grants)
	entries, err := log.List(ctx, "", 4)
	require.NoError(t, err)
	require.Equal(t, "user remove", entries[0].Action)
}

// A key that was added without a user can be made one's own: it keeps its rights, and no longer goes with its key.
func TestAdoptAPrincipal(t *testing.T) {
	s, _, _ := open(t)
	ctx := t.Context()
	root := access.Local("root")
	_, text := newKey(t)
	_, err := s.AddKey(ctx, root, "ci", text, true)
	require.NoError(t, err)
	require.NoError(t, s.Grant(ctx, root, "app", "ci", project.Read))
	p, err := s.AddPrincipal(ctx, root, access.Principal{Name: "ci", Kind: access.Bot})
	require.NoError(t, err)
	require.True(t, p.Admin)
	require.Equal(t, access.Bot, p.Kind)
	require.NoError(t, s.RemoveKey(ctx, root, "ci"))
	grants, err := s.GrantsOf(ctx, "ci")
	require.NoError(t, err)
	require.Len(t, grants, 1)
}

func TestTokens(t *testing.T) {
	s, _, clock := open(t)
	ctx := context.Background()
	root := access.Local("root")
	for _, p := range []access.Principal{{Name: "ci", Kind: access.Bot}, {Name: "boss", Kind: access.Person, Admin: true}} {
		_, err := s.AddPrincipal(ctx, root, p)
		require.NoError(t, err)
	}
	require.NoError(t, s.Grant(ctx, root, "app", "ci", project.Deploy))
	require.NoError(t, s.Grant(ctx, root, "shop", "ci", project.Admin))
	end := clock.t.Add(24 * time.Hour)
	add := func(t0 access.Token) (string, access.Identity) {
		t0.Expires = end
		_, secret, err := s.AddToken(ctx, root, t0)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(secret, access.TokenPrefix))
		who, ok, err := s.FindByToken(ctx, secret, "192.0.2.1:9")
		require.NoError(t, err)
		require.True(t, ok)
		return secret, who
	}
	can := func(who access.Identity, p project.Name, want project.Right) bool {
		ok, err := s.Can(ctx, who, p, want)
		require.NoError(t, err)
		all, err := s.Rights(ctx, who)
		require.NoError(t, err)
		require.Equal(t, ok, all.Can(p, want))
		return ok
	}
	admin := func(who access.Identity) bool {
		ok, err := s.IsAdmin(ctx, who)
		require.NoError(t, err)
		require.Equal(t, ok, who.Admin)
		return ok
	}
	secret, whole := add(access.Token{Name: "all", Principal: "ci"})
	require.True(t, can(whole, "app", project.Deploy))
	require.False(t, can(whole, "app", project.Configure), "a token has what its user has")
	_, one := add(access.Token{Name: "one", Principal: "ci", Scope: access.Scope{Projects: []project.Name{"app"}}})
	require.True(t, can(one, "app", project.Deploy))
	require.False(t, can(one, "shop", project.Read))
	_, reads := add(access.Token{Name: "reads", Principal: "ci", Scope: access.Scope{ReadOnly: true}})
	require.True(t, can(reads, "app", project.Read))
	require.False(t, can(reads, "app", project.Deploy))
	require.False(t, can(reads, "shop", project.Admin))
	require.True(t, reads.ReadOnly)
	_, deploys := add(access.Token{Name: "deploys", Principal: "ci", Scope: access.Scope{Rights: []project.Right{project.Deploy}}})
	require.True(t, can(deploys, "shop", project.Deploy))
	require.False(t, can(deploys, "shop", project.Configure))
	_, bossAll := add(access.Token{Name: "all", Principal: "boss"})
	_, bossOne := add(access.Token{Name: "one", Principal: "boss", Scope: access.Scope{Projects: []project.Name{"app"}}})
	require.True(t, admin(bossAll))
	require.False(t, admin(bossOne))
	require.True(t, can(bossOne, "app", project.Admin))
	require.False(t, can(bossOne, "shop", project.Read))

	_, _, err := s.AddToken(ctx, whole, access.Token{Name: "more", Principal: "ci", Expires: end})
	require.ErrorContains(t, err, "tokens cannot create or revoke tokens")
	require.ErrorContains(t, s.RevokeToken(ctx, one, "ci", "reads"), "tokens cannot create or revoke tokens")
	_, _, err = s.AddToken(ctx, root, access.Token{Name: "all", Principal: "ci", Expires: end})
	require.Equal(t, fault.Refused, fault.KindOf(err))
	for _, e := range []time.Time{{}, clock.t, clock.t.Add(400 * 24 * time.Hour)} {
		_, _, err = s.AddToken(ctx, root, access.Token{Name: "long", Principal: "ci", Expires: e})
		require.Equal(t, fault.Usage, fault.KindOf(err))
	}
	require.NoError(t, s.Used(ctx, whole.Fingerprint))
	tokens, err := s.ListTokens(ctx, "ci")
	require.NoError(t, err)
	require.Len(t, tokens, 4)
	require.Equal(t, "all", tokens[0].Name)
	require.True(t, tokens[0].LastUsed.Equal(clock.t))

	for _, wrong := range []string{"", access.TokenPrefix, secret[:len(secret)-1] + "!", strings.TrimPrefix(secret, access.TokenPrefix)} {
		_, ok, err := s.FindByToken(ctx, wrong, "")
		require.NoError(t, err)
		require.False(t, ok)
	}
	forged := whole
	forged.Name, forged.Admin = "boss", true
	ok, err := s.IsAdmin(ctx, forged)
	require.NoError(t, err)
	require.False(t, ok, "a token is its own user's")
	require.NoError(t, s.RevokeToken(ctx, root, "ci", "all"))
	require.False(t, can(whole, "app", project.Read))
	require.Equal(t, fault.Refused, fault.KindOf(s.RevokeToken(ctx, root, "ci", "all")))
	clock.t = end
	require.False(t, can(one, "app", project.Read))
}

// The database is read by somebody: no token can be made of what is in it.
func TestTokensAreStoredHashed(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "x.db")
	d, err := db.Open(ctx, path)
	require.NoError(t, err)
	defer d.Close()
	log, err := audit.Open(ctx, d, time.Now)
	require.NoError(t, err)
	s, err := access.Open(ctx, d, log, time.Now)
	require.NoError(t, err)
	_, err = s.AddPrincipal(ctx, access.Local("root"), access.Principal{Name: "ci", Kind: access.Bot})
	require.NoError(t, err)
	_, secret, err := s.AddToken(ctx, access.Local("root"), access.Token{Name: "a", Principal: "ci", Expires: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	var dump string
	require.NoError(t, d.QueryRow(`SELECT group_concat(hash || id || name || principal || projects || rights) FROM tokens`).Scan(&dump))
	require.NotContains(t, dump, secret)
	require.NotContains(t, dump, strings.TrimPrefix(secret, access.TokenPrefix))
	entries, err := log.List(ctx, "", 10)
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(entries), strings.TrimPrefix(secret, access.TokenPrefix))
}
