package grains

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
)

// machine is a machine of files.
func machine(t *testing.T, files map[string]string) Source {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		p := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(text), 0o644))
	}
	return Source{Root: root, ID: "corpus-test",
		Hostname: func() (string, error) { return "box", nil },
		Addrs:    func() (map[string][]net.IP, error) { return map[string][]net.IP{}, nil }}
}

// is compares grains with their Python forms.
func is(t *testing.T, s Source, want map[string]string) {
	t.Helper()
	g := Collect(s)
	for name, w := range want {
		got, ok := g.GetStr(name)
		require.True(t, ok, name)
		require.Equal(t, w, py.Repr(got), name)
	}
}

// The values are Salt's for the same os-release, by salt/grains/core.py.
func TestRelease(t *testing.T) {
	debian := map[string]string{
		"etc/os-release":     "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nVERSION=\"12 (bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\n",
		"etc/debian_version": "12.7\n",
	}
	is(t, machine(t, debian), map[string]string{"os": "'Debian'", "os_family": "'Debian'", "osfullname": "'Debian GNU/Linux'", "osrelease": "'12'",
		"oscodename": "'bookworm'", "osfinger": "'Debian-12'", "osmajorrelease": "12", "osrelease_info": "[12]", "lsb_distrib_id": "'Debian GNU/Linux'"})
	is(t, machine(t, map[string]string{"usr/lib/os-release": "NAME=\"Ubuntu\"\nVERSION_ID=\"22.04\"\nVERSION=\"22.04.4 LTS (Jammy Jellyfish)\"\nID=ubuntu\n"}),
		map[string]string{"os": "'Ubuntu'", "os_family": "'Debian'", "osfinger": "'Ubuntu-22.04'", "osmajorrelease": "22", "osrelease_info": "[22, 4]", "oscodename": "'Jammy Jellyfish'"})
	is(t, machine(t, map[string]string{"etc/os-release": "NAME='Rocky Linux'\nVERSION_ID='9.3'\nID=rocky\n"}),
		map[string]string{"os": "'Rocky'", "os_family": "'RedHat'", "osfinger": "'Rocky Linux-9'", "osrelease": "'9.3'"})
	is(t, machine(t, map[string]string{"etc/os-release": "ID=newdistro\nNAME=New\n"}), map[string]string{"os": "'Newdistro'", "os_family": "'Newdistro'", "osrelease": "''"})
	is(t, machine(t, nil), map[string]string{"os": "'Unknown'", "os_family": "'Unknown'"})
}

func TestVirtual(t *testing.T) {
	for _, tt := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{".dockerenv": ""}, "'container'"},
		{map[string]string{"proc/1/cgroup": "0::/kubepods/x\n"}, "'container'"},
		{map[string]string{"sys/class/dmi/id/sys_vendor": "QEMU\n"}, "'kvm'"},
		{map[string]string{"sys/class/dmi/id/product_name": "VMware Virtual Platform\n"}, "'VMware'"},
		{map[string]string{"proc/cpuinfo": "flags : hypervisor\n", "sys/hypervisor/type": "xen\n"}, "'xen'"},
		{nil, "'physical'"},
	} {
		is(t, machine(t, tt.files), map[string]string{"virtual": tt.want})
	}
	require.True(t, Collect(machine(t, map[string]string{".dockerenv": ""})).Has("virtual_subtype"))
	require.False(t, Collect(machine(t, nil)).Has("virtual_subtype"))
}

func TestInit(t *testing.T) {
	for _, tt := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"run/systemd/system/x": ""}, "'systemd'"},
		{map[string]string{"proc/1/comm": "docker-init\n"}, "'tini'"},
		{map[string]string{"proc/1/comm": "init\n"}, "'sysvinit'"},
		{map[string]string{"proc/1/comm": "bash\n"}, "'unknown'"},
	} {
		is(t, machine(t, tt.files), map[string]string{"init": tt.want})
	}
}

func TestHardware(t *testing.T) {
	is(t, machine(t, map[string]string{
		"proc/cpuinfo":    "processor : 0\nmodel name : Best CPU\nflags : fpu vme\nprocessor : 1\nflags : other\n",
		"proc/meminfo":    "MemTotal:        2048000 kB\nbroken\nSwapTotal: many kB\n",
		"etc/machine-id":  "0123456789abcdef\n",
		"etc/resolv.conf": "# x\nnameserver 192.0.2.53\nsearch example.org\nnameserver 2001:db8::53\n",
	}), map[string]string{"num_cpus": "2", "cpu_model": "'Best CPU'", "cpu_flags": "['fpu', 'vme']", "mem_total": "2000", "machine_id": "'0123456789abcdef'"})
	require.False(t, Collect(machine(t, map[string]string{"proc/meminfo": "SwapTotal: many kB\n"})).Has("swap_total"), "what cannot be read is left out")
}

func TestNetwork(t *testing.T) {
	s := machine(t, map[string]string{"etc/resolv.conf": "nameserver 192.0.2.53\n"})
	s.Addrs = func() (map[string][]net.IP, error) {
		return map[string][]net.IP{"lo": {net.IPv4(127, 0, 0, 1), net.IPv6loopback}, "eth0": {net.IPv4(192, 0, 2, 7), net.ParseIP("2001:db8::7")}}, nil
	}
	is(t, s, map[string]string{"host": "'box'", "ipv4": "['127.0.0.1', '192.0.2.7']", "ipv6": "['::1', '2001:db8::7']",
		"ip4_interfaces": "{'eth0': ['192.0.2.7'], 'lo': ['127.0.0.1']}", "fqdn_ip4": "['192.0.2.7']", "id": "'corpus-test'"})
	s.Addrs = func() (map[string][]net.IP, error) { return nil, errors.New("no netlink") }
	require.True(t, Collect(s).Has("id"), "the other grains are told all the same")
}
