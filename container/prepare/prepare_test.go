package prepare

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"corpus-git/container"
	"corpus-git/container/credentials"
	"corpus-git/container/names"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// What is interrupted goes on with the step that was cut, and what was done is not done again; --from does it again.
func TestJournal(t *testing.T) {
	s := container.Store{Dir: t.TempDir(), FS: vfs.OS{}}
	c := container.Container{Name: "web1", Driver: "bare", Target: "root@web1"}
	require.NoError(t, s.Put(c))
	var done []string
	fail := ""
	var out bytes.Buffer
	p := &Plan{Container: c, Store: s, Driver: fakeDriver{func(script string) (string, int, error) {
		what := "another"
		for word, step := range map[string]string{"PRETTY_NAME": "base", "nft -c": "check", "systemctl \"$1\" corpus-git-agent": "agent"} {
			if strings.Contains(script, word) {
				what = step
			}
		}
		if what == fail {
			fail = ""
			return "", 1, nil
		}
		done = append(done, what)
		return "said by " + what, 0, nil
	}}, Out: &out, Now: time.Now, Program: os.Args[0], Verb: func(context.Context, []string, io.Writer, io.Writer) (int, error) { return 0, errors.New("no server") }}
	p.Keys = credentials.Store{KeyFile: filepath.Join(s.Dir, "credentials.key"), Machines: filepath.Join(s.Dir, "machines"), FS: vfs.OS{}}
	fail = "base"
	err := p.Run(t.Context(), "")
	require.ErrorContains(t, err, "base: on web1: exit status 1")
	require.Contains(t, fault.HintOf(err), "the same command goes on")
	require.True(t, Begun(s, "web1"))
	require.False(t, Begun(s, "web2"))
	// The machine answers something else than host keys.
	require.ErrorContains(t, p.Run(t.Context(), ""), "keys: ")
	require.Equal(t, "base", done[0])
	done = nil
	require.Error(t, p.Run(t.Context(), ""))
	require.NotContains(t, done, "base", "what was done is not done again")
	require.Contains(t, out.String(), "done before: said by base")
	require.Error(t, p.Run(t.Context(), "base"))
	require.Contains(t, done, "base")
	require.Equal(t, fault.Usage, fault.KindOf(p.Run(t.Context(), "bse")))
}

// fakeDriver is a machine that answers scripts.
type fakeDriver struct {
	run func(script string) (string, int, error)
}

func (f fakeDriver) Exec(_ context.Context, _ container.Container, cmd container.Command) (int, error) {
	text, exit, err := f.run(cmd.Argv[2])
	_, _ = io.WriteString(cmd.Stdout, text)
	return exit, err
}
func (fakeDriver) Check() error                                                    { return nil }
func (fakeDriver) Create(context.Context, container.Container, func(string)) error { return nil }
func (fakeDriver) Start(context.Context, container.Container) error                { return nil }
func (fakeDriver) Stop(context.Context, container.Container) error                 { return nil }
func (fakeDriver) Running(context.Context, container.Container) (bool, error)      { return true, nil }
func (fakeDriver) Resize(context.Context, container.Container) error               { return nil }
func (fakeDriver) Room(container.Container, int64) error                           { return nil }
func (fakeDriver) Storage(context.Context, container.Container, int64) error       { return nil }
func (fakeDriver) Snapshot(context.Context, container.Container, string) error     { return nil }
func (fakeDriver) Restore(context.Context, container.Container, string) error      { return nil }
func (fakeDriver) Forget(context.Context, container.Container, string) error       { return nil }
func (fakeDriver) Destroy(context.Context, container.Container) error              { return nil }
func (fakeDriver) Snapshots(context.Context, container.Container) ([]string, error) {
	return nil, nil
}
func (fakeDriver) Address(context.Context, container.Container) (netip.Addr, error) {
	return netip.MustParseAddr("192.0.2.1"), nil
}

// The server's login has its own key and known hosts; it reaches the machine as the operator does.
func TestOperatorOptions(t *testing.T) {
	p := &Plan{Container: container.Container{Target: "root@web1", Options: []string{
		"-p", "2022", "-i", "/root/key", "-J", "gate", "-o", "UserKnownHostsFile=/root/hosts", "-o", "identityfile /root/other", "-o", "StrictHostKeyChecking=accept-new", "-o", "ConnectTimeout=5",
	}}}
	require.Equal(t, []string{"-p", "2022", "-J", "gate", "--ssh-option=ConnectTimeout=5"}, p.operatorOptions())
}

// A step that is done is done again with other options, and only then; what comes after it stays done.
func TestOtherOptions(t *testing.T) {
	s := container.Store{Dir: t.TempDir(), FS: vfs.OS{}}
	c := container.Container{Name: "web1", Driver: "nspawn"}
	require.NoError(t, s.Put(c))
	var done []string
	p := &Plan{Container: c, Store: s, Driver: fakeDriver{func(script string) (string, int, error) {
		done = append(done, script)
		return "", 0, nil
	}}, Out: io.Discard, Now: time.Now, Open: []uint16{80}, Env: []string{"A=secret"}}
	var r record
	for _, step := range p.steps() {
		r.Steps = append(r.Steps, stepRecord{Name: step.name, Begun: time.Now(), Done: time.Now(), Input: step.input})
	}
	require.NoError(t, p.write(r))
	run := func() []string {
		done = nil
		require.NoError(t, p.Run(t.Context(), ""))
		return done
	}
	require.Empty(t, run(), "the same command")
	p.Open, p.Env = nil, nil
	require.Empty(t, run(), "options that are not given stay")
	p.Open = []uint16{80, 443}
	require.Contains(t, strings.Join(run(), "\n"), "nft -c")
	require.Empty(t, run())
	p.Env = []string{"A=another"}
	require.Contains(t, strings.Join(run(), "\n"), "/etc/environment")
	require.Empty(t, run())
	text, err := os.ReadFile(p.journal())
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	require.NotContains(t, string(text), "another")
}

// What a name server was told is known afterwards, also if the step failed, or is run again without a name server.
func TestServed(t *testing.T) {
	s := container.Store{Dir: t.TempDir(), FS: vfs.OS{}}
	c := container.Container{Name: "web1", Driver: "nspawn", Address: netip.MustParsePrefix("10.0.0.2/24")}
	require.NoError(t, s.Put(c))
	served := func() Served {
		name, err := ReadServed(s, "web1")
		require.NoError(t, err)
		return name
	}
	require.Zero(t, served())
	p := &Plan{Container: c, Store: s, Driver: fakeDriver{func(string) (string, int, error) { return "", 0, nil }}, Out: io.Discard, Now: time.Now}
	require.NoError(t, p.write(record{Steps: []stepRecord{{Name: "base", Done: time.Now()}, {Name: "keys", Done: time.Now()}, {Name: "address", Done: time.Now()}}}))
	p.DNS = &names.DNS{Server: "127.0.0.1:1", Zone: "example.org.", KeyName: "corpus.", Secret: "c2VjcmV0", Algorithm: "hmac-sha256."}
	require.ErrorContains(t, p.Run(t.Context(), ""), "name: the name server 127.0.0.1:1")
	require.Equal(t, Served{Server: "web1.example.org. 127.0.0.1:1"}, served())
	p.DNS.Reverse = []string{"2.0.192.in-addr.arpa.", "0.192.in-addr.arpa."}
	require.Error(t, p.Run(t.Context(), ""))
	p.DNS.Reverse = p.DNS.Reverse[:1] // what leads to the name in the other zone may still be there
	require.Error(t, p.Run(t.Context(), ""))
	all := Served{"web1.example.org. 127.0.0.1:1", []string{"0.192.in-addr.arpa.", "2.0.192.in-addr.arpa."}}
	require.Equal(t, all, served())
	p.DNS = nil
	require.Error(t, p.Run(t.Context(), "name")) // the driver gives no ports
	require.Equal(t, all, served())
}

// The name server is told both addresses of a container; other reverse zones are other options of the step.
func TestNameHasBothAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	got := make(chan *dns.Msg, 1)
	server := &dns.Server{Listener: l, TsigSecret: map[string]string{"corpus.": "c2VjcmV0"}, MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
		answer := new(dns.Msg)
		answer.SetReply(m)
		answer.SetTsig("corpus.", dns.HmacSHA256, 300, time.Now().Unix())
		got <- m
		_ = w.WriteMsg(answer)
	})}
	served := make(chan error, 1)
	go func() { served <- server.ActivateAndServe() }()
	t.Cleanup(func() { require.NoError(t, server.Shutdown()); require.NoError(t, <-served) })
	p := &Plan{Container: container.Container{Name: "web1", Driver: "nspawn", Address6: netip.MustParsePrefix("fd00::2/64")}, Driver: fakeDriver{}, DNS: &names.DNS{Server: l.Addr().String(), Zone: "example.org.", KeyName: "corpus.", Secret: "c2VjcmV0", Algorithm: "hmac-sha256."}}
	_, err = p.name(t.Context())
	require.NoError(t, err)
	m := <-got
	require.Len(t, m.Ns, 4)
	require.Equal(t, "web1.example.org.\t300\tIN\tA\t192.0.2.1", m.Ns[2].String())
	require.Equal(t, "web1.example.org.\t300\tIN\tAAAA\tfd00::2", m.Ns[3].String())
	input := func() string {
		steps := p.steps()
		return steps[slices.IndexFunc(steps, func(s step) bool { return s.name == "name" })].input
	}
	before := input()
	p.DNS.Reverse = []string{"2.0.192.in-addr.arpa."}
	require.NotEqual(t, before, input())
}

func TestVerbError(t *testing.T) {
	err := VerbError(3, "error: app is assigned to the node box\n  hint: corpus-git node unassign app\n")
	require.EqualError(t, err, "app is assigned to the node box")
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.Equal(t, "corpus-git node unassign app", fault.HintOf(err))
	require.Equal(t, fault.Failed, fault.KindOf(VerbError(70, "")))
}
