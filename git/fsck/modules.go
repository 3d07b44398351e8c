package fsck

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// maxModules is the size of the largest .gitmodules that is parsed; a larger one is refused.
const maxModules = 10 << 20

// Modules checks the content of a .gitmodules for what would make git run commands or leave the tree (CVE-2018-11235, CVE-2018-17456,
// CVE-2019-1387, CVE-2020-5260, CVE-2020-11008). The error is an *Error.
func Modules(h plumbing.Hash, size int64, data []byte) error {
	fail := func(rule, format string, args ...any) error {
		err := broken(rule, format, args...)
		err.Type, err.Hash, err.Path = plumbing.BlobObject, h, ".gitmodules"
		return err
	}
	if size > maxModules {
		return fail("gitmodulesLarge", "%d bytes are too many to check", size)
	}
	var c config.Config
	if err := config.NewDecoder(bytes.NewReader(data)).Decode(&c); err != nil {
		return nil //nolint:nilerr // gitmodulesParse is accepted, as by git: what does not parse is not used
	}
	for _, s := range c.Sections {
		if !s.IsName("submodule") {
			continue
		}
		for _, sub := range s.Subsections {
			if !moduleName(sub.Name) {
				return fail("gitmodulesName", "submodule is named %q", sub.Name)
			}
			for _, o := range sub.Options {
				switch {
				case o.IsKey("url") && !moduleURL(o.Value):
					return fail("gitmodulesUrl", "submodule %q has URL %q", sub.Name, o.Value)
				case o.IsKey("path") && strings.HasPrefix(o.Value, "-"):
					return fail("gitmodulesPath", "submodule %q has path %q", sub.Name, o.Value)
				case o.IsKey("update") && strings.HasPrefix(o.Value, "!"):
					return fail("gitmodulesUpdate", "submodule %q runs a command on update", sub.Name)
				}
			}
		}
	}
	return nil
}

// moduleURL refuses a URL that git may take for an option, that contains a line feed (written out or as %0a, for a credential helper), or
// that names another host after it is joined to the superproject's (CVE-2020-5260, CVE-2020-11008).
func moduleURL(raw string) bool {
	if strings.HasPrefix(raw, "-") || strings.ContainsAny(raw, "\n\r") {
		return false
	}
	if strings.HasPrefix(raw, "./") || strings.HasPrefix(raw, "../") {
		rest, up := raw, false
		for {
			if r, ok := strings.CutPrefix(rest, "./"); ok {
				rest = r
			} else if r, ok := strings.CutPrefix(rest, "../"); ok {
				rest, up = r, true
			} else {
				break
			}
		}
		if up && rest != "" && (rest[0] == ':' || rest[0] == '/') {
			return false
		}
	} else if !strings.Contains(raw, "://") {
		return true // host:path and paths are not decoded
	}
	plain, err := url.PathUnescape(raw)
	return err != nil || !strings.ContainsAny(plain, "\n")
}

// moduleName refuses empty names, and ".." as a component.
func moduleName(name string) bool {
	if name == "" {
		return false
	}
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." {
			return false
		}
	}
	return true
}
