// Package salttree adds projects to the Salt and pillar trees: the two links of each project, its line in the pillar's top file, and the
// links to its own Salt modules. It replaces links, never anything else; each change is one rename, and all can be repeated.
package salttree

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures/pillar"
)

// Links maintains the entries of projects in the Salt and pillar trees: the two links of each project, its line in the pillar's top file,
// and the links to its own Salt modules.
type Links struct {
	FS   vfs.FS
	Root layout.Root
}

// Link creates or fixes both links and the top file's entry. It is idempotent, and returns what it changed, one phrase each.
func (l Links) Link(name string) ([]string, error) {
	p := l.Root.Project(name)
	var did []string
	for _, link := range []struct{ path, target string }{
		{p.SaltLink(), p.Salt()},
		{p.PillarLink(), p.Pillar()},
	} {
		target, err := filepath.Rel(filepath.Dir(link.path), link.target)
		if err != nil {
			return did, err
		}
		changed, err := l.symlink(target, link.path)
		if err != nil {
			return did, err
		}
		if changed {
			did = append(did, "linked "+l.short(link.path))
		}
	}
	changed, err := l.top(func(lines []string) []string { return addTop(lines, pillar.SLS(name)) })
	if changed {
		did = append(did, "listed in "+l.short(l.Root.PillarTop()))
	}
	return did, err
}

// Unlink removes both links, the links to the project's modules and the top file's entry. It is idempotent.
func (l Links) Unlink(name string) ([]string, error) {
	p := l.Root.Project(name)
	var did []string
	for _, link := range []string{p.SaltLink(), p.PillarLink()} {
		st, err := l.FS.Lstat(link)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return did, err
		}
		if !st.IsSymlink() {
			return did, notOurs(link)
		}
		if err := l.FS.Remove(link); err != nil {
			return did, err
		}
		did = append(did, "unlinked "+l.short(link))
	}
	n, err := l.modules(p, func(string) bool { return false })
	if err != nil {
		return did, err
	}
	if n > 0 {
		did = append(did, fmt.Sprintf("unlinked %d modules", n))
	}
	changed, err := l.top(func(lines []string) []string { return removeTop(lines, pillar.SLS(name)) })
	if changed {
		did = append(did, "removed from "+l.short(l.Root.PillarTop()))
	}
	return did, err
}

// Linked reports whether both links exist.
func (l Links) Linked(name string) bool {
	p := l.Root.Project(name)
	for _, link := range []string{p.SaltLink(), p.PillarLink()} {
		if st, err := l.FS.Lstat(link); err != nil || !st.IsSymlink() {
			return false
		}
	}
	return true
}

// Modules links the project's own Salt modules into Salt's root, each twice: mod.py and <name>_mod.py, and
// removes links of modules that no longer exist. It returns the number of links that it changed.
func (l Links) Modules(name string) (int, error) {
	return l.modules(l.Root.Project(name), func(string) bool { return true })
}

func (l Links) modules(p layout.Project, keep func(string) bool) (changed int, err error) {
	for _, kind := range layout.ModuleDirs() {
		from, to := filepath.Join(p.Salt(), kind), l.Root.Modules(kind)
		rel, err := filepath.Rel(to, from)
		if err != nil {
			return changed, err
		}
		want := map[string]string{}
		names, err := l.FS.ReadDir(from)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.ELOOP) {
			return changed, err // what is not a folder has no modules
		}
		for _, n := range names {
			if strings.HasSuffix(n, ".py") && keep(n) {
				want[n] = filepath.Join(rel, n)
				want[p.Name()+"_"+n] = filepath.Join(rel, n)
			}
		}
		have, err := l.FS.ReadDir(to)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return changed, err
		}
		for _, n := range have {
			target, err := l.FS.Readlink(filepath.Join(to, n))
			if err != nil || !strings.HasPrefix(target, rel+"/") || want[n] != "" {
				continue
			}
			if err := l.FS.Remove(filepath.Join(to, n)); err != nil {
				return changed, err
			}
			changed++
		}
		for n, target := range want {
			did, err := l.symlink(target, filepath.Join(to, n))
			if err != nil {
				return changed, err
			}
			if did {
				changed++
			}
		}
	}
	return changed, nil
}

// symlink makes path a link to target, replacing another link, never anything else.
func (l Links) symlink(target, path string) (changed bool, err error) {
	st, err := l.FS.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := vfs.MkdirAll(l.FS, filepath.Dir(path), 0o755); err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	case !st.IsSymlink():
		return false, notOurs(path)
	default:
		if have, err := l.FS.Readlink(path); err == nil && have == target {
			return false, nil
		}
	}
	tmp := vfs.TempName(path)
	if err := l.FS.Symlink(target, tmp); err != nil {
		return false, err
	}
	if err := l.FS.Rename(tmp, path); err != nil {
		_ = l.FS.Remove(tmp)
		return false, err
	}
	return true, nil
}

func notOurs(path string) error {
	return fault.New(fault.Refused, "link", "%s exists and is not a symbolic link", path).
		WithHint("move it away, then try again")
}

func (l Links) short(path string) string {
	if rel, err := filepath.Rel(l.Root.Path(), path); err == nil {
		return rel
	}
	return path
}

// The top file: Salt documentation, "The Top File". Only the line of our project is ever touched.

const emptyTop = "base:\n  '*':\n"

func (l Links) top(edit func([]string) []string) (changed bool, err error) {
	path := l.Root.PillarTop()
	data, err := vfs.ReadFile(l.FS, path)
	mode := uint32(0o640)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		data = nil
	case err != nil:
		return false, err
	default:
		if st, err := l.FS.Lstat(path); err == nil {
			mode = st.Perm()
		}
	}
	old := string(data)
	text := strings.Join(edit(strings.SplitAfter(old, "\n")), "")
	if text == old {
		return false, nil
	}
	if err := vfs.MkdirAll(l.FS, filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	return true, vfs.WriteFileAtomic(l.FS, path, []byte(text), mode)
}

func isEntry(line, entry string) bool {
	s, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
	return ok && strings.Trim(strings.TrimSpace(s), `'"`) == entry
}

func addTop(lines []string, entry string) []string {
	at := -1
	for i, line := range lines {
		if isEntry(line, entry) {
			return lines
		}
		switch strings.TrimSpace(line) {
		case "'*':", `"*":`, "'*' :":
			at = i
		}
	}
	if at < 0 {
		text := strings.Join(lines, "")
		if strings.TrimSpace(text) == "" {
			text = emptyTop
		} else {
			// A top file without a '*' target: a target in a new base is added only if there is no base yet.
			if !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			if !strings.Contains("\n"+text, "\nbase:") {
				text += emptyTop
			} else {
				text = strings.Replace("\n"+text, "\nbase:", "\nbase:\n  '*':", 1)[1:]
			}
		}
		return addTop(strings.SplitAfter(text, "\n"), entry)
	}
	if !strings.HasSuffix(lines[at], "\n") {
		lines[at] += "\n"
	}
	indent := lines[at][:len(lines[at])-len(strings.TrimLeft(lines[at], " "))]
	out := append([]string{}, lines[:at+1]...)
	out = append(out, indent+"  - "+entry+"\n")
	return append(out, lines[at+1:]...)
}

func removeTop(lines []string, entry string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		if !isEntry(line, entry) {
			out = append(out, line)
		}
	}
	if strings.Join(out, "") == emptyTop {
		return nil // a target without entries is an error in Salt
	}
	return out
}
