package grains

import (
	"bytes"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"corpus-git/internal/py"
)

func (s Source) names(g *py.Dict) {
	hostname := s.Hostname
	if hostname == nil {
		hostname = os.Hostname
	}
	name, err := hostname()
	if err != nil || name == "" {
		name = "localhost"
	}
	fqdn := s.fqdn(name)
	host, domain, _ := strings.Cut(fqdn, ".")
	g.SetStr("localhost", name)
	g.SetStr("nodename", name)
	g.SetStr("fqdn", fqdn)
	g.SetStr("host", host)
	g.SetStr("domain", domain)
	id := s.ID
	if id == "" {
		id = fqdn
	}
	g.SetStr("id", id)
	g.SetStr("server_id", serverID(id))
}

// fqdn returns the full name of the host: as it is, or the first name with a dot on its line of /etc/hosts.
func (s Source) fqdn(name string) string {
	if strings.Contains(name, ".") {
		return name
	}
	for _, l := range strings.Split(s.read("/etc/hosts"), "\n") {
		l, _, _ = strings.Cut(l, "#")
		f := strings.Fields(l)
		if len(f) < 2 {
			continue
		}
		for _, n := range f[1:] {
			if n != name {
				continue
			}
			for _, m := range f[1:] {
				if strings.HasPrefix(m, name+".") {
					return m
				}
			}
		}
	}
	return name
}

func (s Source) network(g *py.Dict) {
	addrs := s.Addrs
	if addrs == nil {
		addrs = machineAddrs
	}
	byIf, err := addrs()
	if err != nil {
		return
	}
	names := make([]string, 0, len(byIf))
	for n := range byIf {
		names = append(names, n)
	}
	sort.Strings(names)
	var v4, v6 []string
	ifs, ifs4, ifs6 := py.NewDict(), py.NewDict(), py.NewDict()
	for _, n := range names {
		var a, a4, a6 []string
		for _, ip := range byIf[n] {
			a = append(a, ip.String())
			if ip.To4() != nil {
				a4 = append(a4, ip.String())
			} else {
				a6 = append(a6, ip.String())
			}
		}
		v4, v6 = append(v4, a4...), append(v6, a6...)
		ifs.SetStr(n, list(a))
		ifs4.SetStr(n, list(a4))
		ifs6.SetStr(n, list(a6))
	}
	byBytes := func(l []string) {
		sort.Slice(l, func(i, j int) bool { return bytes.Compare(net.ParseIP(l[i]).To16(), net.ParseIP(l[j]).To16()) < 0 })
	}
	byBytes(v4)
	byBytes(v6)
	g.SetStr("ip_interfaces", ifs)
	g.SetStr("ip4_interfaces", ifs4)
	g.SetStr("ip6_interfaces", ifs6)
	g.SetStr("ipv4", list(v4))
	g.SetStr("ipv6", list(v6))
	var pub []string
	for _, a := range v4 {
		if a != "127.0.0.1" {
			pub = append(pub, a)
		}
	}
	g.SetStr("fqdn_ip4", list(pub))
	g.SetStr("fqdn_ip6", py.NewList())
	g.SetStr("dns", py.NewDict("nameservers", list(s.nameservers())))
}

func (s Source) nameservers() []string {
	var out []string
	for _, l := range strings.Split(s.read("/etc/resolv.conf"), "\n") {
		if f := strings.Fields(l); len(f) > 1 && f[0] == "nameserver" {
			out = append(out, f[1])
		}
	}
	return out
}

func machineAddrs() (map[string][]net.IP, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	out := map[string][]net.IP{}
	for _, i := range ifs {
		as, err := i.Addrs()
		if err != nil {
			continue
		}
		out[i.Name] = nil
		for _, a := range as {
			if n, ok := a.(*net.IPNet); ok {
				out[i.Name] = append(out[i.Name], n.IP)
			}
		}
	}
	return out, nil
}

// links adds the grains of hardware addresses and of default routes.
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

// gateway4 returns the address of the default route, true if it has none, false without such a route.
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
