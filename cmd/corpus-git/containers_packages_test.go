//go:build containers

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A container that reaches its machine only installs a package of Debian's archive from a mirror there, with Debian's own key; after a byte of it was changed it does not.
func TestContainerPackages(t *testing.T) {
	k := newKeeper(t)
	const name = "cgtest-apt"
	k.create(name)
	work := t.TempDir()
	list := filepath.Join(work, "repos.yaml")
	require.NoError(t, os.WriteFile(list, []byte("packages:\n- {path: debian, url: 'http://deb.debian.org/debian', suite: bookworm, names: [hello, sl], signed_by: /usr/share/keyrings/debian-archive-keyring.gpg}\n"), 0o600))
	out, err := exec.CommandContext(t.Context(), k.program, "mirror", "sync", list).CombinedOutput()
	require.NoError(t, err, "%s", out)
	serve := exec.Command(k.program, "mirror", "serve", list, "--listen", k.gateway+":0")
	pipe, err := serve.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, serve.Start())
	t.Cleanup(func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		_ = serve.Wait()
	})
	line, err := bufio.NewReader(pipe).ReadString('\n')
	require.NoError(t, err)
	url := strings.TrimPrefix(strings.TrimSpace(line), "serving on ")
	k.run("exec", name, "--", "sh", "-euc", `rm -f /etc/apt/sources.list.d/*; echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $0/packages/debian bookworm main" >/etc/apt/sources.list
apt-get -qq update; apt-get -qq -y --no-install-recommends install hello`, url)
	require.Equal(t, "Hello, world!\n", k.run("exec", name, "--", "hello"))

	debs, err := filepath.Glob(filepath.Join(work, "mirror", "packages", "debian", "pool", "main", "s", "sl", "sl_*.deb"))
	require.NoError(t, err)
	require.Len(t, debs, 1)
	f, err := os.OpenFile(debs[0], os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("x"), 200)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	said, err := k.try("exec", name, "--", "apt-get", "-qq", "-y", "--no-install-recommends", "install", "sl")
	require.Error(t, err)
	require.Contains(t, said, "Hash Sum mismatch")
}
