//go:build containers

package names

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
)

// bind9 takes the updates of a key that it knows, and no others.
func TestContainerBind(t *testing.T) {
	named, err := exec.LookPath("named")
	require.NoError(t, err, "apt-get install bind9")
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	key, err := exec.Command("tsig-keygen", "corpus").Output()
	require.NoError(t, err)
	good := write("key", string(key))
	other, err := exec.Command("tsig-keygen", "corpus").Output()
	require.NoError(t, err)
	bad := write("bad", string(other))
	write("zone", "$TTL 300\n@ IN SOA ns hostmaster 1 3600 600 86400 300\n@ IN NS ns\nns IN A 127.0.0.1\n")
	conf := write("named.conf", fmt.Sprintf(`include "%[1]s/key";
options { directory "%[1]s"; pid-file none; session-keyfile none; listen-on port %[2]d { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; };
controls { };
zone "example.org" { type master; file "%[1]s/zone"; allow-update { key "corpus"; }; };
`, dir, port))
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd := exec.Command(named, "-g", "-n", "1", "-c", conf)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text)
		}
	})
	server := fmt.Sprintf("127.0.0.1:%d", port)
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
	require.Eventually(t, func() bool { a := ask("ns.example.org."); return len(a) == 1 && a[0] == "127.0.0.1" }, 30*time.Second, 100*time.Millisecond, "named does not answer")

	d, err := ReadDNS(server, "example.org", good)
	require.NoError(t, err)
	require.NoError(t, d.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.2")))
	require.Equal(t, []string{"10.0.0.2"}, ask("web1.example.org."))
	require.NoError(t, d.Add(t.Context(), "web1", netip.MustParseAddr("10.0.0.3")))
	require.Equal(t, []string{"10.0.0.3"}, ask("web1.example.org."), "it replaces")
	wrong, err := ReadDNS(server, "example.org", bad)
	require.NoError(t, err)
	require.Error(t, wrong.Add(t.Context(), "web2", netip.MustParseAddr("10.0.0.4")))
	require.Empty(t, ask("web2.example.org."))
	require.NoError(t, d.Remove(t.Context(), "web1"))
	require.NoError(t, d.Remove(t.Context(), "web1"), "what is not there is no error")
	require.Empty(t, ask("web1.example.org."))
}
