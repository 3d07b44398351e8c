package host

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Path is the PATH of everything that runs for a project.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// CleanEnviron returns the initial environment of commands, given that of this process: a fixed PATH and locale, the user, and from its
// own variables HOME, TZ and TMPDIR. Nothing else is passed on, so that no secret of the server can be.
func CleanEnviron(server []string, users Users, euid int) []string {
	get := func(name string) string {
		for i := len(server) - 1; i >= 0; i-- {
			if v, ok := strings.CutPrefix(server[i], name+"="); ok {
				return v
			}
		}
		return ""
	}
	home, name := get("HOME"), strconv.Itoa(euid)
	if u, err := users.UserByID(euid); err == nil {
		name = u.Name
		if !filepath.IsAbs(home) {
			home = u.Home
		}
	}
	if !filepath.IsAbs(home) {
		home = "/"
	}
	out := []string{"PATH=" + Path, "HOME=" + home, "USER=" + name, "LOGNAME=" + name, "SHELL=" + DefaultShell, "LANG=C.UTF-8"}
	for _, key := range []string{"TZ", "TMPDIR"} {
		if v := get(key); v != "" {
			out = append(out, key+"="+v)
		}
	}
	return out
}
