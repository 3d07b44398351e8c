package grains

import (
	"crypto/sha256"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/py"
)

// devices are grains of disks, firmware, and the command line of the kernel.
func (s Source) devices(g *py.Dict) {
	disks, ssds := py.NewList(), py.NewList()
	entries, _ := os.ReadDir(filepath.Join(s.Root, "/sys/block"))
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(s.Root, "/sys/block", e.Name()))
		if err != nil || strings.HasPrefix(target, "../devices/virtual/") {
			continue
		}
		switch s.read("/sys/block/" + e.Name() + "/queue/rotational") {
		case "0":
			ssds.Append(e.Name())
		case "1":
			disks.Append(e.Name())
		}
	}
	g.SetStr("disks", disks)
	g.SetStr("ssds", ssds)
	efi := s.has("/sys/firmware/efi/efivars") || s.has("/sys/firmware/efi/vars")
	g.SetStr("efi", efi)
	secure := false
	if found, _ := filepath.Glob(filepath.Join(s.Root, "/sys/firmware/efi/efivars/SecureBoot-*")); len(found) == 1 {
		b, err := os.ReadFile(found[0])
		secure = err == nil && len(b) > 0 && b[len(b)-1] == 1
	}
	g.SetStr("efi-secure-boot", secure)
	g.SetStr("transactional", s.has("/usr/sbin/transactional-update") || s.has("/sbin/transactional-update"))
	if line := s.read("/proc/cmdline"); line != "" {
		params := py.NewList()
		for _, f := range strings.Fields(line) {
			var value any
			if parts := strings.Split(f, "="); len(parts) == 2 {
				value = strings.Trim(parts[1], `"`)
			}
			name, _, _ := strings.Cut(f, "=")
			params.Append(py.NewList(name, value))
		}
		g.SetStr("kernelparams", params)
	}
	for _, p := range [][2]string{{"biosreleasedate", "bios_date"}, {"serialnumber", "product_serial"}, {"uuid", "product_uuid"}, {"boardname", "board_name"}} {
		if v := s.read("/sys/class/dmi/id/" + p[1]); v != "" {
			if p[0] == "uuid" {
				v = strings.ToLower(v)
			}
			g.SetStr(p[0], v)
		}
	}
}

// links are grains of hardware addresses and of default routes.
func (s Source) links(g *py.Dict) {
	hw := py.NewDict()
	entries, _ := os.ReadDir(filepath.Join(s.Root, "/sys/class/net"))
	for _, e := range entries {
		if v := s.read("/sys/class/net/" + e.Name() + "/address"); v != "" {
			hw.SetStr(e.Name(), v)
		}
	}
	g.SetStr("hwaddr_interfaces", hw)
	v4, v6 := s.gateway4(), s.gateway6()
	g.SetStr("ip4_gw", v4)
	g.SetStr("ip6_gw", v6)
	g.SetStr("ip_gw", v4 != false || v6 != false)
}

// gateway4 is the address of the default route, true where it has none, false without such a route.
// Source: proc_net(5), /proc/net/route: the gateway is a number in the byte order of the machine.
func (s Source) gateway4() any {
	for _, l := range strings.Split(s.read("/proc/net/route"), "\n") {
		f := strings.Fields(l)
		if len(f) < 8 || f[1] != "00000000" || f[7] != "00000000" {
			continue
		}
		n, ok := new(big.Int).SetString(f[2], 16)
		if !ok || n.Sign() == 0 {
			return true
		}
		v := n.Uint64()
		return net.IPv4(byte(v), byte(v>>8), byte(v>>16), byte(v>>24)).String()
	}
	return false
}

// gateway6 is gateway4 for IPv6. Source: proc_net(5), /proc/net/ipv6_route.
func (s Source) gateway6() any {
	for _, l := range strings.Split(s.read("/proc/net/ipv6_route"), "\n") {
		f := strings.Fields(l)
		if len(f) < 10 || strings.Trim(f[0], "0") != "" || f[1] != "00" || f[9] == "lo" {
			continue
		}
		n, ok := new(big.Int).SetString(f[4], 16)
		if !ok || n.Sign() == 0 {
			return true
		}
		return net.IP(n.FillBytes(make([]byte, net.IPv6len))).String()
	}
	return false
}

// serverID is a number that Salt makes of the minion's ID.
func serverID(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return new(big.Int).Mod(new(big.Int).SetBytes(sum[:]), big.NewInt(1<<31)).Int64()
}

// account is the name of an entry of passwd or group by its number, "" where there is none.
func (s Source) account(file, id string) string {
	for _, l := range strings.Split(s.read(file), "\n") {
		if f := strings.Split(l, ":"); len(f) > 2 && f[2] == id {
			return f[0]
		}
	}
	return ""
}

// Names are all grains that Collect tells where the machine has what they are of, sorted.
func Names() []string {
	return strings.Fields("biosreleasedate biosversion boardname cpu_flags cpu_model cpuarch cwd disks dns domain efi efi-secure-boot fqdn fqdn_ip4 " +
		"fqdn_ip6 gid groupname host hwaddr_interfaces id init ip4_gw ip4_interfaces ip6_gw ip6_interfaces ip_gw ip_interfaces ipv4 ipv6 kernel " +
		"kernelparams kernelrelease kernelversion locale_info localhost lsb_distrib_codename lsb_distrib_id lsb_distrib_release machine_id " +
		"manufacturer master mem_total nodename num_cpus os os_family osarch oscodename osfinger osfullname osmajorrelease osrelease " +
		"osrelease_info path pid productname ps saltversion saltversioninfo serialnumber server_id shell ssds swap_total systempath " +
		"transactional uid username uuid virtual virtual_subtype")
}
