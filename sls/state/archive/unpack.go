package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/file"
)

// unpack extracts the members, by itself or with the program that the options are for. A result ends the state.
func (x *extraction) unpack() (files any, done *core.Return) {
	opts := x.c.Str("options", "")
	for _, arg := range []string{"archive_user", "zip_options"} { // names of old, which Salt passes on to its function for zip archives
		if x.format == "zip" && x.c.Has(arg) {
			fun := "unzip"
			if x.unzip {
				fun = "cmd_unzip"
			}
			return nil, x.fail("%s() got an unexpected keyword argument '%s'", fun, arg)
		}
	}
	switch {
	case x.unzip:
		return x.byUnzip(opts)
	case x.format == "tar" && opts != "":
		return x.byTar(opts)
	}
	names := []string{}
	for _, m := range x.members {
		var err error
		if m.name != "" {
			err = x.write(m)
		}
		if err != nil && x.format == "zip" {
			return nil, x.fail("Exception encountered unpacking zipfile: %s", core.Cause(err))
		}
		if err != nil {
			return nil, x.fail("Failed to extract %s: %s", m.name, core.Cause(err))
		}
		names = append(names, m.raw)
	}
	if x.format == "zip" {
		return x.trimmed(names, true), nil
	}
	return x.trimmed(names, false), nil
}

// trimmed shortens the list of files as set by trim_output; marked adds a note to the list.
func (x *extraction) trimmed(names []string, marked bool) *py.List {
	out := py.NewList()
	n := x.trim()
	for i, f := range names {
		if n > 0 && int64(i) == n {
			if marked {
				out.Append("List trimmed after " + py.Str(n) + " files.")
			}
			break
		}
		out.Append(f)
	}
	return out
}

// trim returns how many lines of output are kept; 0 means all.
func (x *extraction) trim() int64 {
	if v, _ := x.c.Value("trim_output"); v == true {
		return 100
	}
	return x.c.Int("trim_output", 0)
}

func (x *extraction) byUnzip(opts string) (any, *core.Return) {
	argv := []string{"unzip"}
	if p := x.c.Str("password", ""); p != "" {
		argv = append(argv, "-P", p)
	}
	more, err := py.ShlexSplit(opts)
	if err != nil {
		return nil, x.fail("%s", strings.TrimPrefix(err.Error(), "ValueError: "))
	}
	archive, discard, err := x.onDisk()
	if err != nil {
		return nil, x.fail("%s", core.Cause(err))
	}
	defer discard()
	argv = append(append(argv, more...), archive, "-d", x.name)
	res, err := x.c.Host.RunShell(x.c.Ctx, host.Shell{Argv: argv, Dir: "/", Env: map[string]string{"PATH": x.c.ToolPath()}, Merge: true})
	if err != nil {
		return nil, x.fail("%s", err)
	}
	if res.Retcode != 0 {
		return nil, x.fail("%s", res.Stdout)
	}
	return x.trimmed(core.SplitLines(res.Stdout), true), nil
}

// byTar runs tar; the first option may be one of its letters without a dash.
func (x *extraction) byTar(opts string) (any, *core.Return) {
	if !x.c.Installed("tar") {
		return nil, x.fail("tar command not available, it might not be installed on minion")
	}
	words, err := py.ShlexSplit(opts)
	if err != nil {
		return nil, x.fail("%s", strings.TrimPrefix(err.Error(), "ValueError: "))
	}
	letters, n := "xv", 0
	var long []string
	for _, w := range words {
		if w == "v" || w == "-v" || w == "--verbose" {
			continue
		}
		if strings.HasPrefix(w, "-") || n > 0 {
			long = append(long, w)
		} else {
			letters += strings.NewReplacer("x", "", "f", "").Replace(w)
		}
		n++
	}
	archive, discard, err := x.onDisk()
	if err != nil {
		return nil, x.fail("%s", core.Cause(err))
	}
	defer discard()
	argv := append(append([]string{"tar", letters}, long...), "-f", archive)
	res, err := x.c.Host.RunShell(x.c.Ctx, host.Shell{Argv: argv, Dir: x.name, Env: map[string]string{"PATH": x.c.ToolPath()}})
	if err != nil {
		return nil, x.fail("%s", err)
	}
	if res.Retcode != 0 {
		r := x.fail("")
		r.Changes = py.NewDict("retcode", int64(res.Retcode), "stdout", res.Stdout, "stderr", res.Stderr)
		return nil, r
	}
	files := core.SplitLines(res.Stdout)
	if len(files) == 0 {
		return "no tar output so far", nil
	}
	return x.trimmed(files, false), nil
}

// write creates one member below the directory. Links in the path are never followed: an archive cannot write outside.
func (x *extraction) write(m member) error {
	root, err := vfs.OpenRoot(x.name)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if parent := filepath.Dir(m.name); parent != "." {
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	if m.broken != nil { // Python finds that out when the directory is there
		return m.broken
	}
	perm := m.mode.Perm()
	plain := m.bare || x.format == "zip" && !x.c.Bool("extract_perms", true)
	switch {
	case m.mode.IsDir():
		if err := root.MkdirAll(m.name, 0o755); err != nil {
			return err
		}
		if plain {
			perm = x.c.NewMode(0o777)
		}
		return root.Chmod(m.name, perm|0o700)
	case m.link != "":
		_ = root.Remove(m.name)
		return root.Symlink(m.link, m.name)
	case m.hard != "":
		_ = root.Remove(m.name)
		return root.Link(m.hard, m.name)
	}
	if plain {
		perm = x.c.NewMode(0o666)
	}
	_ = root.Remove(m.name)
	f, err := root.OpenFile(m.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(m.data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return root.Chmod(m.name, perm)
}

// finish enforces the owner and returns what was done.
func (x *extraction) finish(extracted bool) core.Return {
	c := x.c
	absent, failed := x.chown()
	ret := &x.ret
	ret.Result = core.True
	switch {
	case extracted:
		ret.Comment = x.shown + " extracted to " + x.name + x.reason()
		if n := x.trim(); n > 0 {
			ret.Comment += ". Output was trimmed to " + py.Str(n) + " number of lines"
		}
		if l, _ := ret.Changes.GetStr("extracted_files"); !py.Truth(l) {
			ret.Changes.Delete("extracted_files")
			ret.Changes.Delete("directories_created")
			ret.Result, ret.Comment = core.False, "No files were extracted from "+x.shown
		}
	default:
		ret.Comment = "All files in archive are already present"
		if c.Test && ret.Changes.Has("updated ownership") {
			ret.Result = core.None
			ret.Comment += ". Ownership would be updated on one or more files/directories."
		}
	}
	if len(absent) > 0 {
		if !c.Has("if_missing") {
			ret.Result = core.False
		}
		ret.Comment += "\n\nWhile trying to enforce user/group ownership, the following paths were missing:\n\n- " + strings.Join(absent, "\n- ")
	}
	if len(failed) > 0 {
		ret.Result = core.False
		ret.Comment += "\n\nWhile trying to enforce user/group ownership, Salt was unable to change ownership on the following paths:\n\n- " + strings.Join(failed, "\n- ")
	}
	return *ret
}

// chown sets the owner of the archive's top-level entries, or of what enforce_ownership_on names.
func (x *extraction) chown() (absent, failed []string) {
	c := x.c
	if x.owner.User == nil && x.owner.Group == nil {
		return nil, nil
	}
	dirs, files := x.list.topDirs, append(append([]string{}, x.list.topFiles...), x.list.topLinks...)
	join := func(p string) string { return filepath.Join(x.name, p) }
	if on := c.Str("enforce_ownership_on", ""); on != "" {
		join = func(p string) string { return p }
		dirs, files = []string{on}, nil
		if !core.IsDir(on) {
			dirs, files = nil, []string{on}
		}
	}
	recurse := py.NewList()
	args := py.NewDict()
	for _, k := range []string{"user", "group"} {
		if v, ok := c.Value(k); ok && py.Truth(v) {
			recurse.Append(k)
			args.SetStr(k, v)
		}
	}
	for _, d := range dirs {
		full := join(d)
		if strings.HasSuffix(d, "/") {
			full += "/"
		}
		if !core.IsDir(full) {
			if !c.Test {
				absent = append(absent, full)
			}
			continue
		}
		sub := *c
		sub.Name, sub.Args = full, args.Copy()
		sub.Args.SetStr("name", full)
		sub.Args.SetStr("recurse", recurse)
		r := core.Guard(file.Directory)(&sub)
		if r.Changed() {
			x.ret.Set("updated ownership", true)
		}
		if r.Result != core.True { // in a test run, too, as in Salt
			failed = append(failed, full)
		}
	}
	for _, f := range files {
		full := join(f)
		ch, err := c.Enforce(full, x.owner, nil, false)
		switch {
		case err != nil && c.Test:
		case errors.Is(err, fs.ErrNotExist):
			absent, failed = append(absent, full), append(failed, full)
		case err != nil:
			failed = append(failed, f)
		case ch.Len() > 0:
			x.ret.Set("updated ownership", true)
		}
	}
	return absent, failed
}
