package member

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/cluster"
	"corpus-git/fleet/broker"
	"corpus-git/internal/fault"
	"corpus-git/layout"
)

// founder returns a hub with NATS and host keys, that knows no others.
func founder(t *testing.T) *Admission {
	t.Helper()
	state := layout.State(filepath.Join(t.TempDir(), "state"))
	_, err := broker.Setup(state.NATS(), "tls://127.0.0.1:4222")
	require.NoError(t, err)
	for _, path := range []string{state.HostKey(), state.HostKeyECDSA()} {
		require.NoError(t, os.WriteFile(path, []byte("key of "+filepath.Base(path)), 0o600))
	}
	return &Admission{State: state}
}

func hub(name string) Member {
	return Member{Hub: cluster.Hub{Name: name, SSH: name + ".example.org:2222", NATS: "tls://" + name + ".example.org:4222"}, Route: name + ".example.org:6222"}
}

// said returns what a machine tells of itself.
func said(t *testing.T, m Member) Request {
	t.Helper()
	own, err := broker.Prepare(filepath.Join(t.TempDir(), "nats"), m.NATS, m.Route)
	require.NoError(t, err)
	return Request{own}
}

// form adds two hubs, which join.
func form(t *testing.T, a *Admission) (l List) {
	t.Helper()
	for _, name := range []string{"hub2", "hub3"} {
		_, _, err := a.Add(hub("hub1"), hub(name))
		require.NoError(t, err)
		_, err = a.Admit(name, said(t, hub(name)))
		require.NoError(t, err)
		l, err = a.Joined(name)
		require.NoError(t, err)
		require.Equal(t, name == "hub3", l.Formed)
	}
	return l
}

func TestThreeHubsJoin(t *testing.T) {
	a := founder(t)
	l := form(t, a)
	require.Equal(t, []string{"tls://hub2.example.org:4222", "tls://hub1.example.org:4222", "tls://hub3.example.org:4222"}, l.Addresses("hub2"))
	self, ok, err := LoadSelf(a.State)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, Self{Name: "hub1", Founder: true}, self)
	conf, err := os.ReadFile(filepath.Join(a.State.NATS(), "nats.conf"))
	require.NoError(t, err)
	require.Contains(t, string(conf), `server_name: "hub1"`)
	require.Contains(t, string(conf), "sync_interval: always")
	text, err := os.ReadFile(a.State.ClusterHubs())
	require.NoError(t, err)
	require.NotContains(t, string(text), "PRIVATE")
	require.NotRegexp(t, `"S[UA][A-Z2-7]{50}`, string(text))
}

func TestWhoIsNotAdded(t *testing.T) {
	a := founder(t)
	add := func(m Member) error {
		_, _, err := a.Add(hub("hub1"), m)
		return err
	}
	for why, change := range map[string]func(m *Member){
		"name":           func(m *Member) { m.Name = "../x" },
		"no name":        func(m *Member) { m.Name = "" },
		"no ssh":         func(m *Member) { m.SSH = "" },
		"port":           func(m *Member) { m.SSH = "hub2:99999" },
		"host":           func(m *Member) { m.Route = `hub2" ] } :6222` },
		"scheme":         func(m *Member) { m.NATS = "nats://hub2:4222" },
		"quote in NATS":  func(m *Member) { m.NATS = `tls://a"b:4222` },
		"not an address": func(m *Member) { m.HTTP = "http://hub2" },
	} {
		m := hub("hub2")
		change(&m)
		require.Equal(t, fault.Usage, fault.KindOf(add(m)), why)
	}
	require.Equal(t, fault.Refused, fault.KindOf(add(hub("hub1"))), "itself")
	m := hub("hub2")
	m.NATS = hub("hub1").NATS
	require.Equal(t, fault.Refused, fault.KindOf(add(m)), "the address of another one")
	form(t, a)
	require.Equal(t, fault.Refused, fault.KindOf(add(hub("hub4"))), "a fourth")
	require.Equal(t, fault.Refused, fault.KindOf(add(hub("hub2"))), "again")
	_, _, err := (&Admission{State: layout.State(t.TempDir())}).Add(hub("hub1"), hub("hub2"))
	require.Equal(t, fault.Refused, fault.KindOf(err), "without NATS")
}

// A machine gets secrets under the name that was added, and only until it has joined; it cannot take another one's place.
func TestWhoIsNotAdmitted(t *testing.T) {
	a := founder(t)
	for _, name := range []string{"hub2", "hub3"} {
		_, _, err := a.Add(hub("hub1"), hub(name))
		require.NoError(t, err)
	}
	l, err := Load(a.State)
	require.NoError(t, err)
	good := said(t, hub("hub2"))
	refused := func(name, why string, change func(q *Request)) {
		q := good
		change(&q)
		got, err := a.Admit(name, q)
		require.Equal(t, fault.Refused, fault.KindOf(err), why)
		require.Empty(t, got.Granted, why)
	}
	refused("hub9", "nobody added it", func(*Request) {})
	refused("hub3", "a certificate for another host", func(*Request) {})
	refused("hub2", "the key of the first hub", func(q *Request) { q.Users.Log = l.Hubs[0].Users.Log })
	refused("hub2", "one key for two things", func(q *Request) { q.Users.Log = q.Users.Hub })
	refused("hub2", "no request", func(q *Request) { q.Request = nil })
	refused("hub2", "another request", func(q *Request) { q.Own.Request = append([]byte{}, q.Request[:len(q.Request)-1]...) })
	_, err = a.Joined("hub2")
	require.Equal(t, fault.Refused, fault.KindOf(err), "it was not admitted")

	got, err := a.Admit("hub2", good)
	require.NoError(t, err)
	require.NotEmpty(t, got.Granted.AuthorityKey)
	require.Len(t, got.HostKeys, 2)
	_, err = a.Admit("hub2", good)
	require.NoError(t, err, "the answer was lost")
	_, err = a.Joined("hub2")
	require.NoError(t, err)
	got, err = a.Admit("hub2", said(t, hub("hub2")))
	require.NoError(t, err)
	require.True(t, got.Joined)
	require.Empty(t, got.Granted)
	require.Empty(t, got.HostKeys)

	// Added again it is a machine that has not joined.
	_, _, err = a.Add(hub("hub1"), hub("hub2"))
	require.NoError(t, err)
	got, err = a.Admit("hub2", said(t, hub("hub2")))
	require.NoError(t, err)
	require.False(t, got.Joined)
}

// A hub is replaced by another one, whose keys are new; those of the old one stay refused.
func TestRemove(t *testing.T) {
	a := founder(t)
	before := form(t, a)
	for _, name := range []string{"hub1", "hub9"} {
		_, err := a.Remove(name)
		require.Equal(t, fault.Refused, fault.KindOf(err), name)
	}
	l, err := a.Remove("hub3")
	require.NoError(t, err)
	require.True(t, l.Formed)
	require.Len(t, l.Known(), 2)
	_, err = a.Remove("hub2")
	require.Equal(t, fault.Refused, fault.KindOf(err), "no majority would be left")
	conf, err := os.ReadFile(filepath.Join(a.State.NATS(), "nats.conf"))
	require.NoError(t, err)
	gone := before.Hubs[2].Users
	require.NotContains(t, string(conf), "nkey: "+gone.Log)
	require.Equal(t, 1, strings.Count(string(conf), gone.Log), "it is looked up here, and not asked about")

	_, _, err = a.Add(hub("hub1"), hub("hub3"))
	require.NoError(t, err)
	q := said(t, hub("hub3"))
	q.Users = gone
	_, err = a.Admit("hub3", q)
	require.Equal(t, fault.Refused, fault.KindOf(err), "the old keys")
	_, err = a.Admit("hub3", said(t, hub("hub3")))
	require.NoError(t, err)
	l, err = a.Joined("hub3")
	require.NoError(t, err)
	require.Len(t, l.Known(), 3)
}
