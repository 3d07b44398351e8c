//go:build containers

package bare_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/container"
	"corpus-git/container/bare"
	"corpus-git/container/containertest"
	"corpus-git/container/network"
	"corpus-git/container/nspawn"
	"corpus-git/container/rootfs"
	"corpus-git/container/system"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// The driver passes the tests of all drivers, on a machine that is a container of another one, reached by ssh.
func TestContainerDriver(t *testing.T) {
	require.Zero(t, os.Geteuid(), "containers need root")
	ctx := t.Context()
	n := network.Network{Bridge: fmt.Sprintf("cgb%d", os.Getpid()), Prefix: netip.MustParsePrefix(fmt.Sprintf("10.214.%d.1/24", 100+os.Getpid()%100))}
	t.Cleanup(func() { require.NoError(t, n.Down()) })
	dir := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	store := container.Store{Dir: dir, FS: vfs.OS{}}
	machine := system.Driver{
		Kind: nspawn.Kind{Host: system.Host{Run: execx.OS{}, Store: store, Env: env, CGroups: "/sys/fs/cgroup"}}, Run: execx.OS{}, Store: store, Env: env, Network: func() (network.Network, error) { return n, nil }, Resolv: func() string { return "" },
		Maker: rootfs.Maker{Exec: execx.OS{}, FS: vfs.OS{}, Env: env, Bases: "/var/cache/corpus-git-test/bases"},
	}
	host, err := store.Add(container.Container{Name: "cgtest-host", Driver: nspawn.Name, Suite: rootfs.DefaultSuite, Mirror: os.Getenv("DEBIAN_MIRROR")}, n.Prefix)
	require.NoError(t, err)
	require.NoError(t, machine.Create(ctx, host, func(string) {}))
	require.NoError(t, machine.Start(ctx, host))
	defer func() { require.NoError(t, machine.Stop(ctx, host)) }()

	out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, "key")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	public, err := os.Open(filepath.Join(dir, "key.pub"))
	require.NoError(t, err)
	defer public.Close()
	var keys bytes.Buffer
	exit, err := machine.Exec(ctx, host, container.Command{
		Argv: []string{"sh", "-euc", "mkdir -p -m 700 /root/.ssh; cat >/root/.ssh/authorized_keys; cat /etc/ssh/ssh_host_ed25519_key.pub"}, Stdin: public, Stdout: &keys,
	})
	require.NoError(t, err)
	require.Zero(t, exit)
	address := host.Address.Addr().String()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "known_hosts"), []byte(address+" "+keys.String()), 0o600))
	options := []string{"-i", filepath.Join(dir, "key"), "-o", "UserKnownHostsFile=" + filepath.Join(dir, "known_hosts"), "-o", "IdentitiesOnly=yes"}

	driver := func() container.Driver { return bare.Driver{Run: execx.OS{}, Env: env} }
	c := container.Container{Name: "cgtest-bare", Driver: bare.Name, Target: "root@" + address, Options: options}
	containertest.Run(t, containertest.Subject{Driver: driver, Container: c, Machine: true, Put: func(t *testing.T, c container.Container) { require.NoError(t, store.Put(c)) }})
	at, err := driver().Address(ctx, c)
	require.NoError(t, err)
	require.Equal(t, host.Address.Addr(), at)

	// Another machine at that address, and a login that is not let in.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "known_hosts"), nil, 0o600))
	require.Equal(t, fault.Refused, fault.KindOf(driver().Create(ctx, c, func(string) {})))
}
