package testutil

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Named runs bind9 on 127.0.0.1 for zones that accept updates signed with a key, and returns its address and the file of the key. It ends with the test.
func Named(t testing.TB, zone string, others ...string) (server, key string) {
	t.Helper()
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
	text, err := exec.CommandContext(t.Context(), "tsig-keygen", "corpus").Output()
	require.NoError(t, err)
	key = write("key", string(text))
	zones := ""
	for i, name := range append([]string{zone}, others...) {
		file := write(fmt.Sprint("zone", i), "$TTL 300\n@ IN SOA ns hostmaster 1 3600 600 86400 300\n@ IN NS ns\nns IN A 127.0.0.1\n")
		zones += fmt.Sprintf("zone %q { type master; file %q; allow-update { key \"corpus\"; }; };\n", name, file)
	}
	conf := write("named.conf", fmt.Sprintf(`include "%[1]s/key";
options { directory "%[1]s"; pid-file none; session-keyfile none; listen-on port %[2]d { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; };
controls { };
`, dir, port)+zones)
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd := exec.Command(named, "-g", "-n", "1", "-c", conf) //nolint:gosec // a program of the machine
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text)
		}
	})
	server = fmt.Sprintf("127.0.0.1:%d", port)
	require.Eventually(t, func() bool {
		names, err := Resolver(server).LookupHost(t.Context(), "ns."+zone)
		return err == nil && len(names) == 1 && names[0] == "127.0.0.1"
	}, 30*time.Second, 100*time.Millisecond, "named does not answer")
	return server, key
}

// Resolver asks one name server, over TCP.
func Resolver(server string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server)
	}}
}
