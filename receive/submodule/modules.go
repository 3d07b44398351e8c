package submodule

import (
	"bytes"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"corpus-git/git/tree"
	"corpus-git/internal/fault"
)

// File is the name of the file that lists submodules and their URLs.
const File = ".gitmodules"

// maxModules is the maximum size of a .gitmodules file, in bytes.
const maxModules = 1 << 20

// Module is one entry of a .gitmodules. Source: gitmodules(5).
type Module struct {
	// Name is the name of the entry, Path its path in the superproject, URL its source: as written, and unchecked except for Path.
	Name, Path, URL string
	// None reports that the entry says update = none: the submodule is not to be checked out.
	None bool
}

// Parse reads a .gitmodules. Entries without a path or a URL are ignored, as in git; so are those whose path cannot be that of a
// gitlink. If two entries have the same path, the last one counts. A file that is too large or does not parse is fault.Refused.
func Parse(data []byte) ([]Module, error) {
	if len(data) > maxModules {
		return nil, fault.New(fault.Refused, File, "%d bytes exceed the limit of %d", len(data), maxModules)
	}
	var c config.Config
	if err := config.NewDecoder(bytes.NewReader(data)).Decode(&c); err != nil {
		return nil, fault.New(fault.Refused, File, "cannot parse it: %w", err).WithPos(fault.Pos{File: File})
	}
	var out []Module
	at := map[string]int{}
	for _, s := range c.Sections {
		if !s.IsName("submodule") {
			continue
		}
		for _, sub := range s.Subsections {
			m := Module{Name: sub.Name, Path: sub.Option("path"), URL: sub.Option("url"), None: sub.Option("update") == "none"}
			if m.Name == "" || m.URL == "" || !treePath(m.Path) {
				continue
			}
			if i, ok := at[m.Path]; ok {
				out[i] = m
				continue
			}
			at[m.Path] = len(out)
			out = append(out, m)
		}
	}
	return out, nil
}

// treePath reports whether a path is valid in a tree.
func treePath(p string) bool {
	if p == "" || path.Clean(p) != p || path.IsAbs(p) || len(p) > 4095 {
		return false
	}
	for name := range strings.SplitSeq(p, "/") {
		if tree.CheckName(name) != nil {
			return false
		}
	}
	return true
}
