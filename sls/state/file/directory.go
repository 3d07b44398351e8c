package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/regex"
)

// recursion is what recurse: requests.
type recursion struct {
	user, group, mode           bool
	ignoreFiles, ignoreDirs, si bool
}

func readRecursion(c *core.Call) (*recursion, string) {
	if !c.Bool("recurse", false) {
		return nil, ""
	}
	r := &recursion{}
	v, _ := c.Value("recurse")
	if _, ok := v.(*py.List); !ok {
		return nil, "\"recurse\" must be formed as a list of strings"
	}
	for _, s := range c.Strings("recurse") {
		switch s {
		case "user":
			r.user = true
		case "group":
			r.group = true
		case "mode":
			r.mode = true
		case "ignore_files":
			r.ignoreFiles = true
		case "ignore_dirs":
			r.ignoreDirs = true
		case "silent":
			r.si = true
		default:
			return nil, "Types for \"recurse\" limited to \"user\", \"group\", \"mode\", \"ignore_files\", \"ignore_dirs\", \"silent\"."
		}
	}
	if r.ignoreFiles && r.ignoreDirs {
		return nil, "Must not specify \"recurse\" options \"ignore_files\" and \"ignore_dirs\" at the same time."
	}
	return r, ""
}

// Directory implements file.directory. Source: Salt documentation, file state, directory.
func Directory(c *core.Call) core.Return {
	name := c.ExpandUser(c.Name)
	if name == "" {
		return core.Failf("Must provide name to file.directory")
	}
	if name != "/" {
		name = strings.TrimSuffix(name, "/")
	}
	clean := c.Bool("clean", false)
	if c.Has("max_depth") && clean {
		return core.Failf("Cannot specify both max_depth and clean")
	}
	dirMode := c.Mode("dir_mode")
	if dirMode == nil {
		dirMode = c.Mode("mode")
	}
	fileMode := c.Mode("file_mode")
	if fileMode == nil {
		fileMode = dirMode
	}
	o, complaint := c.Owner()
	if complaint != "" {
		return core.Failf("%s", complaint)
	}
	if !filepath.IsAbs(name) {
		return core.Failf("Specified file %s is not an absolute path", name)
	}
	rec, complaint := readRecursion(c)
	if complaint != "" {
		return core.Failf("%s", complaint)
	}
	ret := core.Return{Result: core.True}
	if done := replaceExisting(c, name, &ret); done != nil {
		return *done
	}
	w := dirWork{c: c, name: name, owner: o, dirMode: dirMode, fileMode: fileMode, rec: rec, clean: clean,
		follow: c.Bool("follow_symlinks", false), childrenOnly: c.Bool("children_only", false), depth: -1}
	if c.Has("max_depth") {
		w.depth = int(c.Int("max_depth", 0))
	}
	if clean {
		w.keep = requiredPaths(c, name)
		w.exclude = c.Strings("exclude_pat")
	}
	if c.Test {
		return w.test(ret)
	}
	if !core.IsDir(name) {
		if !core.IsDir(filepath.Dir(name)) {
			if !c.Bool("makedirs", false) {
				r := core.Failf("No directory to create %s in", name)
				r.Changes = py.NewDict(name, py.NewDict("directory", "new"))
				return r
			}
			if err := c.MakeDirs(filepath.Dir(name), o, dirMode); err != nil {
				if errors.Is(err, syscall.ENOTDIR) {
					return core.Failf("[Errno 20] Not a directory: '%s'", name)
				}
				return core.Failf("Failed to create directory %s: %s", name, core.Cause(err))
			}
		}
		if err := c.MakeDir(name, o, dirMode); err != nil {
			return core.Failf("Failed to create directory %s: %s", name, core.Cause(err))
		}
		ret.Set(name, py.NewDict("directory", "new"))
	}
	return w.apply(ret)
}

// replaceExisting removes or renames what exists at the directory's path. A result ends the state.
func replaceExisting(c *core.Call, name string, ret *core.Return) *core.Return {
	force, backup := c.Bool("force", false), c.Str("backupname", "")
	file := core.IsFile(name)
	link := core.IsLink(name) && (!c.Bool("allow_symlink", true) || force)
	if !file && !link {
		return nil
	}
	what := "symlink"
	if file && !core.IsLink(name) {
		what = "file"
	}
	fail := func(format string, args ...any) *core.Return { r := core.Failf(format, args...); return &r }
	switch {
	case backup != "":
		if core.Lexists(backup) {
			if !force {
				return fail("File exists where the backup target %s should go", backup)
			}
			if !c.Test {
				if err := c.RemoveAll(backup); err != nil {
					return fail("%s", core.Cause(err))
				}
			}
		}
		if c.Test {
			r := core.Would(py.NewDict("backup", name+" would be renamed to "+backup, name, py.NewDict("directory", "new")),
				"%s would be backed up and replaced with a new directory", name)
			return &r
		}
		if err := c.Rename(name, backup); err != nil {
			return fail("%s", core.Cause(err))
		}
	case force:
		label := map[string]string{"file": "File", "symlink": "Symlink"}[what]
		if c.Test {
			ret.Set("forced", label+" would be forcibly replaced")
			return nil
		}
		if err := c.Remove(name); err != nil {
			return fail("%s", core.Cause(err))
		}
		ret.Set("forced", label+" was forcibly replaced")
	default:
		return fail("Specified location %s exists and is a %s", name, what)
	}
	return nil
}

type dirWork struct {
	c                           *core.Call
	name                        string
	owner                       core.Owner
	dirMode, fileMode           *fs.FileMode
	rec                         *recursion
	clean, follow, childrenOnly bool
	depth                       int
	keep                        map[string]bool
	exclude                     []string
	gone                        []string // all that cleanUp found, also below a directory that went
}

// walk calls fn for everything below the directory, as deep as max_depth allows: in each directory first the
// files, then the directories, then their contents (dirsFirst swaps the first two).
func (w *dirWork) walk(dirsFirst bool, fn func(path string, d fs.DirEntry) error) error {
	return w.walkDir(w.name, 0, dirsFirst, fn)
}

func (w *dirWork) walkDir(dir string, level int, dirsFirst bool, fn func(path string, d fs.DirEntry) error) error {
	if w.depth >= 0 && level >= w.depth {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, dirs := range []bool{dirsFirst, !dirsFirst} {
		for _, e := range entries {
			if e.IsDir() != dirs {
				continue
			}
			if err := fn(filepath.Join(dir, e.Name()), e); err != nil {
				return err
			}
		}
	}
	for _, e := range entries {
		p := filepath.Join(dir, e.Name())
		if !e.IsDir() || !core.IsDir(p) {
			continue
		}
		if err := w.walkDir(p, level+1, dirsFirst, fn); err != nil {
			return err
		}
	}
	return nil
}

// recurseChanges enforces owner and mode below the directory and reports what changed.
func (w *dirWork) recurseChanges(report func(path string, ch *py.Dict)) error {
	if w.rec == nil {
		return nil
	}
	o := w.owner
	if !w.rec.user {
		o.User = nil
	}
	if !w.rec.group {
		o.Group = nil
	}
	return w.walk(false, func(p string, d fs.DirEntry) error {
		var mode *fs.FileMode
		if d.IsDir() {
			if w.rec.ignoreDirs {
				return nil
			}
			mode = w.dirMode
		} else {
			if w.rec.ignoreFiles {
				return nil
			}
			mode = w.fileMode
		}
		if !w.rec.mode {
			mode = nil
		}
		ch, err := w.c.Enforce(p, o, mode, w.follow)
		if os.IsNotExist(err) {
			return nil
		}
		if ch.Len() > 0 {
			report(p, ch)
		}
		return err
	})
}

func (w *dirWork) apply(ret core.Return) core.Return {
	fresh := ret.Changes.Has(w.name)
	// As in Salt, a change is listed under its path, and again at the top, where the last one wins.
	report := func(p string, ch *py.Dict) {
		if ch.Len() == 0 {
			return
		}
		ret.Set(p, ch)
		for _, e := range ch.Items() {
			ret.Set(py.Str(e.Key), e.Value)
		}
	}
	if !w.childrenOnly {
		ch, err := w.c.Enforce(w.name, w.owner, w.dirMode, w.follow)
		if err != nil {
			return core.Failf("Failed to change owner or mode of %s: %s", w.name, core.Cause(err))
		}
		if !fresh { // in a new directory everything is new
			report(w.name, ch)
		}
	}
	err := w.recurseChanges(report)
	if err != nil {
		ret.Result, ret.Comment = core.False, core.Cause(err)
		return ret
	}
	if w.rec != nil && w.rec.si && ret.Changed() {
		ret.Changes = py.NewDict("recursion", "Changes silenced")
	}
	if w.clean {
		removed, err := w.cleanUp()
		if len(removed) > 0 {
			l := py.NewList()
			for _, r := range removed {
				l.Append(r)
			}
			for _, p := range w.gone {
				ret.Set(p, py.NewDict("removed", "Removed due to clean"))
			}
			ret.Set("removed", l)
			ret.Comment = "Files cleaned from directory " + w.name
		}
		if err != nil {
			ret.Result, ret.Comment = core.False, core.Cause(err)
			return ret
		}
	}
	switch {
	case ret.Comment != "":
	case !ret.Changed():
		ret.Comment = "The directory " + w.name + " is in the correct state"
	case w.childrenOnly:
		ret.Comment = "Directory " + w.name + "/* updated"
	case fresh:
		ret.Comment = "" // Salt has no comment for a new directory
	default:
		ret.Comment = "Directory " + w.name + " updated"
	}
	return ret
}

func (w *dirWork) test(ret core.Return) core.Return {
	if !core.IsDir(w.name) {
		ret.Set(w.name, py.NewDict("directory", "new"))
	} else {
		own := py.NewDict()
		if !w.childrenOnly {
			ch, err := w.c.Enforce(w.name, w.owner, w.dirMode, w.follow)
			if err != nil {
				return core.Failf("%s", core.Cause(err))
			}
			own = ch
		}
		if err := w.recurseChanges(func(p string, ch *py.Dict) { ret.Set(p, ch) }); err != nil {
			return core.Failf("%s", core.Cause(err))
		}
		if own.Len() > 0 { // as in Salt, after what is below it
			ret.Set(w.name, own)
		}
		if w.clean {
			removed, err := w.cleanUp()
			if err != nil {
				return core.Failf("%s", core.Cause(err))
			}
			for _, r := range removed {
				ret.Set(r, py.NewDict("removed", "Removed due to clean"))
			}
		}
	}
	if !ret.Changed() {
		ret.Comment = "The directory " + w.name + " is in the correct state"
		return ret
	}
	ret.Result = core.None
	var b strings.Builder
	b.WriteString("The following files will be changed:\n")
	for _, e := range ret.Changes.Items() {
		d, ok := e.Value.(*py.Dict)
		if !ok {
			continue
		}
		for _, kv := range d.Items() {
			b.WriteString(py.Str(e.Key) + ": " + py.Str(kv.Key) + " - " + py.Str(kv.Value) + "\n")
		}
	}
	ret.Comment = b.String()
	return ret
}

// requiredPaths returns the paths that clean keeps: those of required file states, and everything above and below
// them.
func requiredPaths(c *core.Call, root string) map[string]bool {
	keep := map[string]bool{root: true}
	addTree := func(p string) {
		_ = filepath.WalkDir(p, func(q string, _ fs.DirEntry, err error) error {
			if err == nil {
				keep[q] = true
			}
			return nil
		})
	}
	for _, r := range c.Requires {
		if r.Type != "require" || r.Module != "file" {
			continue
		}
		p := filepath.Clean(r.Name)
		if core.IsDir(p) && strings.HasPrefix(p+"/", root+"/") {
			addTree(p)
		}
		for q := p; q != "/" && q != "."; q = filepath.Dir(q) {
			keep[q] = true
		}
	}
	return keep
}

// cleanUp removes what is not kept, and returns what it removed; for a removed directory, not its contents.
func (w *dirWork) cleanUp() ([]string, error) {
	w.gone = nil
	err := w.walk(true, func(p string, _ fs.DirEntry) error {
		if w.keep[p] {
			return nil
		}
		rel := strings.TrimPrefix(p, w.name+"/")
		for _, x := range w.exclude {
			if matchesPattern(x, rel) {
				return nil
			}
		}
		w.gone = append(w.gone, p)
		return nil
	})
	if err != nil || w.c.Test {
		return w.gone, err
	}
	var removed []string
	for _, p := range w.gone {
		if !core.Lexists(p) {
			continue
		}
		if err := w.c.RemoveAll(p); err != nil {
			return removed, err
		}
		removed = append(removed, p)
	}
	return removed, nil
}

// matchesPattern matches Salt's pattern: a glob over the whole relative path, or E@ and a regular expression.
func matchesPattern(pattern, rel string) bool {
	if re, ok := strings.CutPrefix(pattern, "E@"); ok {
		x, bad := regex.Text(re, "")
		if bad != "" {
			core.BadArg("The pattern %q: %s", pattern, bad)
		}
		return x.Matches(rel, false)
	}
	swap := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
	ok, err := filepath.Match(swap(pattern), swap(rel))
	return err == nil && ok
}
