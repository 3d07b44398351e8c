package names

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

func TestSetHost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	a, b := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	set := func(name string, at netip.Addr, changed bool, want string) {
		t.Helper()
		got, err := SetHost(vfs.OS{}, path, name, at)
		require.NoError(t, err)
		require.Equal(t, changed, got)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.NoError(t, os.WriteFile(path, []byte("127.0.0.1 localhost\n192.0.2.1 web7 web1.example.org"), 0o640))
	set("web1", a, true, "127.0.0.1 localhost\n192.0.2.1 web7 web1.example.org\n10.0.0.2 web1 # corpus-git\n")
	set("web1", a, false, "127.0.0.1 localhost\n192.0.2.1 web7 web1.example.org\n10.0.0.2 web1 # corpus-git\n")
	set("web10", b, true, "127.0.0.1 localhost\n192.0.2.1 web7 web1.example.org\n10.0.0.2 web1 # corpus-git\n10.0.0.3 web10 # corpus-git\n")
	set("web1", b, true, "127.0.0.1 localhost\n192.0.2.1 web7 web1.example.org\n10.0.0.3 web10 # corpus-git\n10.0.0.3 web1 # corpus-git\n")
	set("web1", netip.Addr{}, true, "127.0.0.1 localhost\n192.0.2.1 web7 web1.example.org\n10.0.0.3 web10 # corpus-git\n")
	// Clients would use the address of the first line.
	_, err := SetHost(vfs.OS{}, path, "web7", a)
	require.Equal(t, fault.Refused, fault.KindOf(err), "%v", err)
	_, err = SetHost(vfs.OS{}, path, "web7", netip.Addr{})
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
}

// A key as tsig-keygen prints it signs an update that replaces the addresses of a name; another key is refused.
func TestDNS(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("key \"corpus\" {\n\talgorithm hmac-sha256;\n\tsecret \"c2VjcmV0IG9mIHRoZSB0ZXN0cw==\";\n};\n"), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	got := make(chan *dns.Msg, 16)
	var now atomic.Value   // what the name has
	var reply atomic.Int32 // a code of an error; negative for an answer without a signature
	server := &dns.Server{Listener: l, TsigSecret: map[string]string{"corpus.": "c2VjcmV0IG9mIHRoZSB0ZXN0cw=="}, MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
		answer := new(dns.Msg)
		answer.SetReply(m)
		if w.TsigStatus() != nil {
			answer.Rcode = dns.RcodeNotAuth
		} else {
			got <- m
		}
		if list, ok := now.Load().([]dns.RR); ok && m.Question[0].Qtype == dns.TypeA {
			answer.Answer = list
		}
		if code := reply.Load(); code > 0 {
			answer.Rcode = int(code)
		}
		if reply.Load() >= 0 {
			answer.SetTsig("corpus.", dns.HmacSHA256, fudge, time.Now().Unix())
		}
		_ = w.WriteMsg(answer)
	})}
	served := make(chan error, 1)
	go func() { served <- server.ActivateAndServe() }()
	t.Cleanup(func() { require.NoError(t, server.Shutdown()); require.NoError(t, <-served) })

	d, err := ReadDNS(l.Addr().String(), "example.org", key)
	require.NoError(t, err)
	require.NoError(t, d.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.2")))
	m := <-got
	require.Equal(t, dns.OpcodeUpdate, m.Opcode)
	require.Equal(t, "example.org.", m.Question[0].Name)
	require.Len(t, m.Ns, 3)
	require.Equal(t, uint16(dns.ClassANY), m.Ns[0].Header().Class, "what the name had is removed")
	require.Equal(t, "web1.example.org.\t300\tIN\tA\t10.0.0.2", m.Ns[2].String())
	require.NoError(t, d.Remove(t.Context(), "web1"))
	require.Len(t, (<-got).Ns, 2)

	require.NoError(t, d.Add(t.Context(), "web1", netip.MustParseAddr("::ffff:10.0.0.2")))
	require.Equal(t, "web1.example.org.\t300\tIN\tA\t10.0.0.2", (<-got).Ns[2].String())
	require.Equal(t, fault.Usage, fault.KindOf(d.Add(t.Context(), "web1", netip.MustParseAddr("fe80::1%eth0"))))
	// What is not signed may come from anybody; what went wrong is told apart.
	reply.Store(-1)
	require.ErrorContains(t, d.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.2")), "answers without a signature")
	<-got
	for code, want := range map[int32]struct {
		kind fault.Kind
		hint string
	}{
		dns.RcodeRefused: {fault.Failed, "allow-update"}, dns.RcodeNotZone: {fault.Failed, "not in the zone"}, dns.RcodeServerFailure: {fault.Busy, "its log says why"},
	} {
		reply.Store(code)
		err := d.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.2"))
		require.ErrorContains(t, err, "refused the update of example.org.: "+dns.RcodeToString[int(code)])
		require.Equal(t, want.kind, fault.KindOf(err))
		require.Contains(t, fault.HintOf(err), want.hint)
		<-got
	}
	reply.Store(0)

	// IPv4 and IPv6 together; the addresses lead to the name where a reverse zone has them, and the earlier ones of the name no longer do.
	both, err := ReadDNS(l.Addr().String(), "example.org", key, "0.10.in-addr.arpa", "10.in-addr.arpa.", "D.F.ip6.arpa")
	require.NoError(t, err)
	now.Store([]dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "web1.example.org.", Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(10, 0, 0, 2)}})
	records := func() (out []string) {
		m := <-got
		for _, rr := range append(m.Question[:0:0], m.Question...) {
			out = append(out, rr.Name)
		}
		for _, rr := range m.Ns {
			out = append(out, strings.Join(strings.Fields(rr.String()), " "))
		}
		return out
	}
	require.Equal(t, fault.Usage, fault.KindOf(both.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.3"))), "no address is in 10.in-addr.arpa")
	require.NoError(t, both.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.3"), netip.MustParseAddr("10.1.0.3"), netip.MustParseAddr("fd00::3")))
	require.Equal(t, []string{"web1.example.org."}, records())
	require.Equal(t, []string{"web1.example.org."}, records())
	require.Equal(t, []string{"0.10.in-addr.arpa.", "2.0.0.10.in-addr.arpa. 0 NONE PTR web1.example.org."}, records())
	require.Equal(t, []string{"web1.example.org. 300 IN A 10.0.0.3", "web1.example.org. 300 IN A 10.1.0.3", "web1.example.org. 300 IN AAAA fd00::3"}, records()[3:])
	require.Equal(t, []string{"0.10.in-addr.arpa.", "3.0.0.10.in-addr.arpa. 0 CLASS255 PTR", "3.0.0.10.in-addr.arpa. 300 IN PTR web1.example.org."}, records())
	require.Equal(t, []string{"10.in-addr.arpa.", "3.0.1.10.in-addr.arpa. 0 CLASS255 PTR", "3.0.1.10.in-addr.arpa. 300 IN PTR web1.example.org."}, records())
	require.Equal(t, "3.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. 300 IN PTR web1.example.org.", records()[2])
	require.NoError(t, both.Remove(t.Context(), "web1"))
	require.Len(t, records(), 1)
	require.Len(t, records(), 1)
	require.Equal(t, []string{"0.10.in-addr.arpa.", "2.0.0.10.in-addr.arpa. 0 NONE PTR web1.example.org."}, records())
	require.Len(t, records(), 3)
	_, err = ReadDNS(l.Addr().String(), "example.org", key, "example.net")
	require.Equal(t, fault.Usage, fault.KindOf(err))

	away := *d
	away.Server = "127.0.0.1:1"
	require.Equal(t, fault.Busy, fault.KindOf(away.Remove(t.Context(), "web1")))
	d.Secret = "YW5vdGhlcg=="
	err = d.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.2"))
	require.ErrorContains(t, err, "bad authentication")
	require.Contains(t, fault.HintOf(err), "another key \"corpus\"")
	require.Empty(t, got)
	for name, text := range map[string]string{"empty": "", "short": "key a { algorithm hmac-sha256; };", "wrong": "key a { algorithm hmac-sha256; secret \"!\"; };"} {
		require.NoError(t, os.WriteFile(key, []byte(text), 0o600))
		_, err = ReadDNS("127.0.0.1", "example.org", key)
		require.Equal(t, fault.Usage, fault.KindOf(err), name)
	}
}
