package grains

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
)

// TestCollect reads a machine of files. The values are those that Salt 3008.3 makes of them.
func TestCollect(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/timezone":                               "Europe/Paris\n",
		"etc/passwd":                                 "root:x:0:0:root:/root:/bin/sh\n",
		"etc/group":                                  "root:x:0:\n",
		"proc/cmdline":                               "quiet console=ttyS0 a=b=c root=\"x\"\n",
		"proc/net/route":                             "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\n",
		"proc/net/ipv6_route":                        "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000001 00000000 00000003 eth0\n",
		"sys/class/net/eth0/address":                 "02:fc:00:00:00:01\n",
		"sys/devices/pci/sda/queue/rotational":       "1\n",
		"sys/devices/pci/nvme/queue/rotational":      "0\n",
		"sys/devices/virtual/loop0/queue/rotational": "1\n",
	} {
		p := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(text), 0o644))
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "sys/block"), 0o755))
	for name, to := range map[string]string{"sda": "../devices/pci/sda", "nvme": "../devices/pci/nvme", "loop0": "../devices/virtual/loop0"} {
		require.NoError(t, os.Symlink(to, filepath.Join(root, "sys/block", name)))
	}
	g := Collect(Source{Root: root, ID: "corpus-test"})
	_, there := g.GetStr("timezone")
	require.False(t, there, "Salt has no such grain: it would hide the pillar's from config.get")
	for name, want := range map[string]any{"server_id": int64(4966999), "ip4_gw": "192.0.2.1", "ip6_gw": "fd00::1", "ip_gw": true, "efi": false, "transactional": false} {
		got, _ := g.GetStr(name)
		require.Equal(t, want, got, name)
	}
	for name, want := range map[string]string{"disks": "['sda']", "ssds": "['nvme']", "hwaddr_interfaces": "{'eth0': '02:fc:00:00:00:01'}",
		"kernelparams": "[['quiet', None], ['console', 'ttyS0'], ['a', None], ['root', 'x']]"} {
		got, _ := g.GetStr(name)
		require.Equal(t, want, py.Repr(got), name)
	}
	for _, k := range append(g.Keys(), Collect(Source{}).Keys()...) {
		require.Contains(t, Names(), k, "the page lists all grains")
	}
}
