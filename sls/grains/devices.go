package grains

import (
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/py"
)

// devices adds the grains of disks, firmware, and the command line of the kernel.
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
