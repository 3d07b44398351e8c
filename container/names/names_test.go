package names

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
)

// A key as tsig-keygen prints it signs an update that replaces the addresses of a name; another key is refused.
func TestDNS(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("key \"corpus\" {\n\talgorithm hmac-sha256;\n\tsecret \"c2VjcmV0IG9mIHRoZSB0ZXN0cw==\";\n};\n"), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	got := make(chan *dns.Msg, 4)
	server := &dns.Server{Listener: l, TsigSecret: map[string]string{"corpus.": "c2VjcmV0IG9mIHRoZSB0ZXN0cw=="}, MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
		answer := new(dns.Msg)
		answer.SetReply(m)
		if w.TsigStatus() != nil {
			answer.Rcode = dns.RcodeNotAuth
		} else {
			got <- m
		}
		answer.SetTsig("corpus.", dns.HmacSHA256, fudge, time.Now().Unix())
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

	d.Secret = "YW5vdGhlcg=="
	err = d.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.2"))
	require.Error(t, err)
	require.Empty(t, got)
	for name, text := range map[string]string{"empty": "", "short": "key a { algorithm hmac-sha256; };", "wrong": "key a { algorithm hmac-sha256; secret \"!\"; };"} {
		require.NoError(t, os.WriteFile(key, []byte(text), 0o600))
		_, err = ReadDNS("127.0.0.1", "example.org", key)
		require.Equal(t, fault.Usage, fault.KindOf(err), name)
	}
}
