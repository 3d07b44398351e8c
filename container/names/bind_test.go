//go:build containers

package names

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/testutil"
)

// bind9 takes the updates of a key that it knows, and no others.
func TestContainerBind(t *testing.T) {
	server, good := testutil.Named(t, "example.org", "10.in-addr.arpa", "0.0.d.f.ip6.arpa")
	other, err := exec.CommandContext(t.Context(), "tsig-keygen", "corpus").Output()
	require.NoError(t, err)
	bad := filepath.Join(t.TempDir(), "bad")
	require.NoError(t, os.WriteFile(bad, other, 0o600))
	ask := func(name string) (out []string) {
		m := new(dns.Msg)
		m.SetQuestion(name, dns.TypeA)
		answer, _, err := (&dns.Client{Net: "tcp"}).ExchangeContext(t.Context(), m, server)
		if err != nil {
			return []string{err.Error()}
		}
		for _, rr := range answer.Answer {
			out = append(out, rr.(*dns.A).A.String())
		}
		return out
	}
	d, err := ReadDNS(server, "example.org", good)
	require.NoError(t, err)
	require.NoError(t, d.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.2")))
	require.Equal(t, []string{"10.0.0.2"}, ask("web1.example.org."))
	require.NoError(t, d.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.3")))
	require.Equal(t, []string{"10.0.0.3"}, ask("web1.example.org."), "it replaces")
	both, err := ReadDNS(server, "example.org", good, "10.in-addr.arpa", "0.0.d.f.ip6.arpa")
	require.NoError(t, err)
	leads := func(address string) []string {
		names, err := testutil.Resolver(server).LookupAddr(t.Context(), address)
		if err != nil {
			return nil
		}
		return names
	}
	require.NoError(t, both.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.3"), netip.MustParseAddr("fd00::3")))
	require.Equal(t, []string{"web1.example.org."}, leads("10.0.0.3"))
	require.Equal(t, []string{"web1.example.org."}, leads("fd00::3"))
	require.NoError(t, both.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("fd00::3")))
	require.Empty(t, leads("10.0.0.3"))
	require.Equal(t, []string{"web1.example.org."}, leads("10.0.0.4"))
	require.NoError(t, both.Add(t.Context(), "web9", netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("fd00::9")), "the address is another machine's now")
	require.NoError(t, both.Remove(t.Context(), "web1"))
	require.Equal(t, []string{"web9.example.org."}, leads("10.0.0.4"), "what leads elsewhere stays")
	require.Empty(t, leads("fd00::3"))
	require.NoError(t, both.Remove(t.Context(), "web9"))
	require.Empty(t, leads("10.0.0.4"))
	require.NoError(t, d.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.3")))
	wrong, err := ReadDNS(server, "example.org", bad)
	require.NoError(t, err)
	require.Error(t, wrong.Add(t.Context(), "web2", netip.MustParseAddr("10.0.0.4")))
	require.Empty(t, ask("web2.example.org."))
	foreign, err := ReadDNS(server, "example.net", good)
	require.NoError(t, err)
	err = foreign.Add(t.Context(), "web2", netip.MustParseAddr("10.0.0.4"))
	require.Contains(t, fault.HintOf(err), "no zone example.net.")
	require.NoError(t, d.Remove(t.Context(), "web1"))
	require.NoError(t, d.Remove(t.Context(), "web1"), "what is not there is no error")
	require.Empty(t, ask("web1.example.org."))
}
