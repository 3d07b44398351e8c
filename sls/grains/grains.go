// Package grains collects the facts of this machine that Salt calls grains.
//
// It defines which facts there are, and how they are read: from files, never by running a command. It never fails: an unreadable fact is
// omitted. Collect reads everything again; callers keep the result for a deployment.
//
// Source: Salt documentation, "Grains"; salt/grains/core.py describes each.
package grains

import (
	"bufio"
	"crypto/sha256"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"corpus-git/internal/py"
)

// Source says where facts are read from. The zero value is this machine.
type Source struct {
	// Root is prepended to every path that is read.
	Root string
	// Hostname returns the name of the host; nil asks the kernel.
	Hostname func() (string, error)
	// Addrs returns the addresses of all interfaces; nil asks the kernel.
	Addrs func() (map[string][]net.IP, error)
	// ID is the minion ID; "" means the full name of the host.
	ID string
}

// Collect reads the grains.
func Collect(s Source) *py.Dict {
	g := py.NewDict()
	s.system(g)
	s.release(g)
	s.hardware(g)
	s.names(g)
	s.network(g)
	s.software(g)
	s.devices(g)
	s.links(g)
	return g
}

func (s Source) read(p string) string {
	b, err := os.ReadFile(filepath.Join(s.Root, p))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (s Source) has(p string) bool {
	_, err := os.Stat(filepath.Join(s.Root, p))
	return err == nil
}

func (s Source) system(g *py.Dict) {
	g.SetStr("kernel", "Linux")
	if v := s.read("/proc/sys/kernel/osrelease"); v != "" {
		g.SetStr("kernelrelease", v)
	}
	if v := s.read("/proc/sys/kernel/version"); v != "" {
		g.SetStr("kernelversion", v)
	}
	g.SetStr("path", os.Getenv("PATH"))
	g.SetStr("systempath", list(strings.Split(os.Getenv("PATH"), ":")))
	g.SetStr("pid", int64(os.Getpid()))
	g.SetStr("uid", int64(os.Getuid()))
	g.SetStr("gid", int64(os.Getgid()))
	g.SetStr("shell", "/bin/sh")
	g.SetStr("cwd", "/")
	g.SetStr("ps", "ps -efHww")
	g.SetStr("init", s.init())
	g.SetStr("virtual", s.virtual())
	if g2, _ := g.GetStr("virtual"); g2 == "container" {
		g.SetStr("virtual_subtype", "Docker")
	}
}

func (s Source) init() string {
	switch {
	case s.has("/run/systemd/system"):
		return "systemd"
	case s.has("/run/openrc"):
		return "openrc"
	}
	comm := s.read("/proc/1/comm")
	switch comm {
	case "systemd", "runit", "tini", "dumb-init", "docker-init", "supervisord", "upstart":
		if comm == "docker-init" {
			return "tini"
		}
		return comm
	case "init":
		return "sysvinit"
	}
	return "unknown"
}

func (s Source) virtual() string {
	if s.has("/.dockerenv") || s.has("/run/.containerenv") || s.has("/run/systemd/container") {
		return "container"
	}
	cg := s.read("/proc/1/cgroup")
	for _, w := range []string{"docker", "kubepods", "lxc", "containerd"} {
		if strings.Contains(cg, w) {
			return "container"
		}
	}
	product := s.read("/sys/class/dmi/id/product_name") + " " + s.read("/sys/class/dmi/id/sys_vendor")
	for _, m := range [][2]string{{"VirtualBox", "VirtualBox"}, {"VMware", "VMware"}, {"KVM", "kvm"}, {"QEMU", "kvm"},
		{"Bochs", "kvm"}, {"Amazon EC2", "kvm"}, {"Google", "kvm"}, {"OpenStack", "kvm"}, {"Virtual Machine", "VirtualPC"}, {"Xen", "xen"}} {
		if strings.Contains(product, m[0]) {
			return m[1]
		}
	}
	if s.has("/proc/xen") {
		return "xen"
	}
	if strings.Contains(s.read("/proc/cpuinfo"), "hypervisor") && s.has("/sys/hypervisor/type") {
		return s.read("/sys/hypervisor/type")
	}
	return "physical"
}

// family maps the ID of os-release to Salt's os and os_family.
func family(id string) (os, fam string) {
	switch id {
	case "debian":
		return "Debian", "Debian"
	case "ubuntu":
		return "Ubuntu", "Debian"
	case "raspbian":
		return "Raspbian", "Debian"
	case "linuxmint":
		return "Mint", "Debian"
	case "kali":
		return "Kali", "Debian"
	case "devuan":
		return "Devuan", "Debian"
	case "fedora":
		return "Fedora", "RedHat"
	case "rhel":
		return "RedHat", "RedHat"
	case "centos":
		return "CentOS", "RedHat"
	case "rocky":
		return "Rocky", "RedHat"
	case "almalinux":
		return "AlmaLinux", "RedHat"
	case "amzn":
		return "Amazon", "RedHat"
	case "ol":
		return "OEL", "RedHat"
	case "opensuse-leap", "opensuse-tumbleweed", "opensuse":
		return "SUSE", "Suse"
	case "sles", "sled":
		return "SUSE", "Suse"
	case "arch":
		return "Arch", "Arch"
	case "alpine":
		return "Alpine", "Alpine"
	case "gentoo":
		return "Gentoo", "Gentoo"
	}
	if id == "" {
		return "Unknown", "Unknown"
	}
	name := strings.ToUpper(id[:1]) + id[1:]
	return name, name
}

func (s Source) release(g *py.Dict) {
	rel := map[string]string{}
	text := s.read("/etc/os-release")
	if text == "" {
		text = s.read("/usr/lib/os-release")
	}
	for _, l := range strings.Split(text, "\n") {
		k, v, ok := strings.Cut(strings.TrimSpace(l), "=")
		if ok && !strings.HasPrefix(k, "#") {
			rel[k] = strings.Trim(v, `"'`)
		}
	}
	osName, fam := family(rel["ID"])
	full := rel["NAME"]
	version := rel["VERSION_ID"]
	if osName == "Debian" { // the point release is in a separate file
		if v := s.read("/etc/debian_version"); v != "" && v[0] >= '0' && v[0] <= '9' {
			version = strings.SplitN(v, ".", 2)[0]
		}
	}
	codename := rel["VERSION_CODENAME"]
	if codename == "" {
		if _, after, ok := strings.Cut(rel["VERSION"], "("); ok {
			codename = strings.TrimSuffix(after, ")")
		}
	}
	g.SetStr("os", osName)
	g.SetStr("os_family", fam)
	g.SetStr("osfullname", full)
	g.SetStr("osrelease", version)
	g.SetStr("oscodename", codename)
	g.SetStr("lsb_distrib_id", full)
	g.SetStr("lsb_distrib_release", version)
	g.SetStr("lsb_distrib_codename", codename)
	info := py.Tuple{}
	for _, p := range strings.Split(version, ".") {
		if n, err := strconv.ParseInt(p, 10, 64); err == nil {
			info = append(info, n)
		} else if p != "" {
			info = append(info, p)
		}
	}
	g.SetStr("osrelease_info", py.NewList(info...))
	major := version
	if len(info) > 0 {
		major = py.Str(info[0])
		g.SetStr("osmajorrelease", info[0])
	}
	finger, name := major, full
	switch osName {
	case "Ubuntu":
		finger = version
	case "Debian", "Raspbian":
		name = osName
	}
	g.SetStr("osfinger", name+"-"+finger)
}

func (s Source) hardware(g *py.Dict) {
	arch := map[string]string{"amd64": "x86_64", "386": "i686", "arm64": "aarch64", "arm": "armv7l"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	g.SetStr("cpuarch", arch)
	osarch := arch
	if fam, _ := g.GetStr("os_family"); fam == "Debian" {
		osarch = map[string]string{"386": "i386", "arm": "armhf"}[runtime.GOARCH]
		if osarch == "" {
			osarch = runtime.GOARCH
		}
	}
	g.SetStr("osarch", osarch)
	cpus, model := 0, ""
	flags := py.NewList()
	sc := bufio.NewScanner(strings.NewReader(s.read("/proc/cpuinfo")))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		k, v, ok := strings.Cut(sc.Text(), ":")
		if !ok {
			continue
		}
		switch v = strings.TrimSpace(v); strings.TrimSpace(k) {
		case "processor":
			cpus++
		case "model name":
			model = v
		case "flags", "Features":
			if flags.Len() == 0 {
				for _, f := range strings.Fields(v) {
					flags.Append(f)
				}
			}
		}
	}
	if cpus == 0 {
		cpus = runtime.NumCPU()
	}
	g.SetStr("num_cpus", int64(cpus))
	g.SetStr("cpu_model", model)
	g.SetStr("cpu_flags", flags)
	for _, l := range strings.Split(s.read("/proc/meminfo"), "\n") {
		f := strings.Fields(l)
		if len(f) < 2 {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			continue
		}
		switch f[0] {
		case "MemTotal:":
			g.SetStr("mem_total", n/1024)
		case "SwapTotal:":
			g.SetStr("swap_total", n/1024)
		}
	}
	for _, p := range [][2]string{{"manufacturer", "sys_vendor"}, {"productname", "product_name"}, {"biosversion", "bios_version"}} {
		if v := s.read("/sys/class/dmi/id/" + p[1]); v != "" {
			g.SetStr(p[0], v)
		}
	}
	if v := s.read("/etc/machine-id"); v != "" {
		g.SetStr("machine_id", v)
	}
}

// saltRelease is the release of Salt whose behaviour the built-in runner follows.
const saltRelease = "3008.3"

func (s Source) software(g *py.Dict) {
	g.SetStr("saltversion", saltRelease)
	g.SetStr("saltversioninfo", py.NewList(int64(3008), int64(3)))
	g.SetStr("master", "")
	s.python(g)
	if u := s.account("/etc/passwd", strconv.Itoa(os.Geteuid())); u != "" {
		g.SetStr("username", u)
	}
	if n := s.account("/etc/group", strconv.Itoa(os.Getegid())); n != "" {
		g.SetStr("groupname", n)
	}
	g.SetStr("locale_info", py.NewDict("defaultlanguage", "en_US", "defaultencoding", "UTF-8", "detectedencoding", "utf-8"))
}

// python is the release of the machine's python3, as far as the name of its program shows it: Salt's own Python is not present.
func (s Source) python(g *py.Dict) {
	to, err := os.Readlink(filepath.Join(s.Root, "/usr/bin/python3"))
	if err != nil {
		return
	}
	out := py.NewList()
	for _, n := range strings.Split(strings.TrimPrefix(filepath.Base(to), "python"), ".") {
		v, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			return
		}
		out.Append(v)
	}
	g.SetStr("pythonversion", out)
}

func list(l []string) *py.List {
	out := py.NewList()
	for _, s := range l {
		out.Append(s)
	}
	return out
}

// serverID returns a number that Salt derives from the minion's ID.
func serverID(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return new(big.Int).Mod(new(big.Int).SetBytes(sum[:]), big.NewInt(1<<31)).Int64()
}

// account returns the name of an entry of passwd or group by its number, "" if there is none.
func (s Source) account(file, id string) string {
	for _, l := range strings.Split(s.read(file), "\n") {
		if f := strings.Split(l, ":"); len(f) > 2 && f[2] == id {
			return f[0]
		}
	}
	return ""
}

// Names returns all grains that Collect knows, sorted.
func Names() []string {
	return strings.Fields("biosreleasedate biosversion boardname cpu_flags cpu_model cpuarch cwd disks dns domain efi efi-secure-boot fqdn fqdn_ip4 " +
		"fqdn_ip6 gid groupname host hwaddr_interfaces id init ip4_gw ip4_interfaces ip6_gw ip6_interfaces ip_gw ip_interfaces ipv4 ipv6 kernel " +
		"kernelparams kernelrelease kernelversion locale_info localhost lsb_distrib_codename lsb_distrib_id lsb_distrib_release machine_id " +
		"manufacturer master mem_total nodename num_cpus os os_family osarch oscodename osfinger osfullname osmajorrelease osrelease " +
		"osrelease_info path pid productname ps pythonversion saltversion saltversioninfo serialnumber server_id shell ssds swap_total systempath " +
		"transactional uid username uuid virtual virtual_subtype")
}
