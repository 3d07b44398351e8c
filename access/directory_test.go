package access_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// people is a directory in memory, whose password is "right" for everybody.
type people struct {
	mu    sync.Mutex
	who   map[string]access.Entry
	down  bool
	asked int
}

func (p *people) Lookup(_ context.Context, name string) (access.Entry, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if p.down {
		return access.Entry{}, false, fault.New(fault.Busy, "ldap", "%w", errors.New("no answer"))
	}
	e, ok := p.who[strings.ToLower(name)]
	return e, ok, nil
}

func (p *people) Authenticate(ctx context.Context, name, password string) (access.Entry, bool, error) {
	e, ok, err := p.Lookup(ctx, name)
	return e, ok && password == "right", err
}

func (p *people) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func TestDirectoryUsers(t *testing.T) {
	s, _, clock := open(t)
	ctx := t.Context()
	root := access.Local("root")
	pub, text := newKey(t)
	stranger, _ := newKey(t)
	dir := &people{who: map[string]access.Entry{
		"marie": {DN: "uid=marie", Name: "marie", Keys: []string{string(text), "nonsense"}, Groups: []string{"devs"}},
		"boss":  {DN: "uid=boss", Name: "boss", Groups: []string{"ops"}},
		"local": {DN: "uid=local", Name: "local", Keys: []string{string(text)}, Groups: []string{"ops"}},
	}}
	_, err := s.AddPrincipal(ctx, root, access.Principal{Name: "local", Kind: access.Person, Admin: true})
	require.NoError(t, err)
	s.SetDirectory(dir, access.DirectoryPolicy{TTL: 5 * time.Minute, Grace: time.Hour, Rights: func(groups []string) (out []access.GroupRight) {
		for _, g := range groups {
			out = append(out, map[string]access.GroupRight{"devs": {Right: project.Deploy, Project: "app"}, "ops": {Right: project.Admin}, "all": {Right: project.Read}}[g])
		}
		return out
	}})
	offer := func(user string) (access.Identity, bool, error) {
		return s.Identify(ctx, access.Offer{Key: pub, User: user, From: "192.0.2.1:5", Proven: true})
	}
	can := func(who access.Identity, name project.Name, want project.Right) bool {
		ok, err := s.Can(ctx, who, name, want)
		require.NoError(t, err)
		return ok
	}
	_, ok, err := offer("deploy")
	require.NoError(t, err)
	require.False(t, ok, "whose key it is can't be known yet")
	who, ok, err := offer("marie")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "marie", who.Name)
	require.True(t, can(who, "app", project.Deploy))
	require.False(t, can(who, "app", project.Configure))
	require.False(t, can(who, "shop", project.Read))
	_, ok, err = s.Identify(ctx, access.Offer{Key: stranger, User: "marie", From: "192.0.2.1:5"})
	require.NoError(t, err)
	require.False(t, ok, "a name is not a key")
	again, ok, err := offer("deploy")
	require.NoError(t, err)
	require.True(t, ok, "a key that logged in is known")
	require.Equal(t, who, again)

	// A grant of the server's own adds to what groups give.
	require.NoError(t, s.Grant(ctx, root, "shop", "marie", project.Configure))
	require.True(t, can(who, "shop", project.Configure))

	// What changes there counts after the TTL; until then nobody is asked.
	asked := dir.asked
	dir.change(func() {
		e := dir.who["marie"]
		e.Groups = []string{"all"}
		dir.who["marie"] = e
	})
	require.True(t, can(who, "app", project.Deploy))
	require.Equal(t, asked, dir.asked)
	clock.t = clock.t.Add(5 * time.Minute)
	require.False(t, can(who, "app", project.Deploy))
	require.True(t, can(who, "app", project.Read))
	require.True(t, can(who, "elsewhere", project.Read))

	// It gives no answer: the last one counts for the grace, and no longer. Others are as before.
	dir.change(func() { dir.down = true })
	clock.t = clock.t.Add(59 * time.Minute)
	require.True(t, can(who, "app", project.Read))
	_, ok, err = offer("deploy")
	require.NoError(t, err)
	require.True(t, ok)
	clock.t = clock.t.Add(time.Minute)
	_, err = s.Can(ctx, who, "app", project.Read)
	require.Equal(t, fault.Busy, fault.KindOf(err))
	local, ok, err := s.ForSession(ctx, "local", "x")
	require.NoError(t, err)
	require.True(t, ok)
	require.True(t, can(local, "app", project.Admin))
	clock.t = clock.t.Add(time.Minute)
	dir.change(func() { dir.down = false })
	require.True(t, can(who, "app", project.Read))

	// Who is gone there has nothing here after the TTL, in a session that is open, too.
	dir.change(func() { delete(dir.who, "marie") })
	clock.t = clock.t.Add(5 * time.Minute)
	require.False(t, can(who, "app", project.Read))
	valid, err := s.Valid(ctx, who)
	require.NoError(t, err)
	require.False(t, valid)
	_, ok, err = offer("deploy")
	require.NoError(t, err)
	require.False(t, ok)

	// The server's own users are not the directory's, whatever it says.
	_, ok, err = offer("local")
	require.ErrorContains(t, err, "the directory user cannot log in")
	require.False(t, ok)
	_, ok, err = s.SignIn(ctx, "local", "right", "192.0.2.1:5")
	require.ErrorContains(t, err, "the directory user cannot log in")
	require.False(t, ok)

	// Without the directory in the configuration its users have nothing.
	boss, ok, err := s.SignIn(ctx, "boss", "right", "192.0.2.1:5")
	require.NoError(t, err)
	require.True(t, ok)
	admin, err := s.IsAdmin(ctx, boss)
	require.NoError(t, err)
	require.True(t, admin)
	s.SetDirectory(nil, access.DirectoryPolicy{})
	admin, err = s.IsAdmin(ctx, boss)
	require.NoError(t, err)
	require.False(t, admin)
}

// The attack: passwords of a user are guessed. After ten wrong ones from an address no more are taken from it, right or wrong.
func TestGuessing(t *testing.T) {
	s, _, clock := open(t)
	ctx := t.Context()
	dir := &people{who: map[string]access.Entry{"marie": {DN: "uid=marie", Name: "marie"}}}
	s.SetDirectory(dir, access.DirectoryPolicy{TTL: time.Minute, Grace: time.Hour, Rights: func([]string) []access.GroupRight { return nil }})
	try := func(password, from string) (bool, error) {
		_, ok, err := s.SignIn(ctx, "marie", password, from)
		return ok, err
	}
	ok, err := try("", "192.0.2.1:5")
	require.NoError(t, err)
	require.False(t, ok)
	require.Zero(t, dir.asked, "an empty password is not even asked about")
	for i := range 10 {
		ok, err := try("wrong", "192.0.2.1:"+string(rune('1'+i%9)))
		require.NoError(t, err)
		require.False(t, ok)
	}
	_, err = try("right", "192.0.2.1:7")
	require.Equal(t, fault.Busy, fault.KindOf(err))
	ok, err = try("right", "192.0.2.9:7")
	require.NoError(t, err)
	require.True(t, ok, "nobody is locked out from elsewhere")
	clock.t = clock.t.Add(15 * time.Minute)
	ok, err = try("right", "192.0.2.1:7")
	require.NoError(t, err)
	require.True(t, ok)
}

// Many sessions of one user ask the directory once.
func TestDirectoryIsAskedOnce(t *testing.T) {
	s, _, clock := open(t)
	ctx := t.Context()
	pub, text := newKey(t)
	dir := &people{who: map[string]access.Entry{"marie": {DN: "uid=marie", Name: "marie", Keys: []string{string(text)}, Groups: []string{"x"}}}}
	s.SetDirectory(dir, access.DirectoryPolicy{TTL: time.Minute, Grace: time.Hour, Rights: func([]string) []access.GroupRight { return []access.GroupRight{{Right: project.Read}} }})
	who, ok, err := s.Identify(ctx, access.Offer{Key: pub, User: "marie", From: "192.0.2.1:5"})
	require.NoError(t, err)
	require.True(t, ok)
	clock.t = clock.t.Add(time.Hour)
	before := dir.asked
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			ok, err := s.Can(ctx, who, "app", project.Read)
			if err != nil || !ok {
				t.Error(ok, err)
			}
		})
	}
	all.Wait()
	require.Equal(t, before+1, dir.asked)
}
