package file

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/state/core"
)

// fileRecurse implements file.recurse. Source: Salt documentation, file state, recurse.
func fileRecurse(c *core.Call) core.Return {
	name := c.ExpandUser(c.Name)
	if c.Has("mode") {
		return core.Failf("'mode' is not allowed in 'file.recurse'. Please use 'file_mode' and 'dir_mode'.")
	}
	if !filepath.IsAbs(name) {
		return core.Failf("Specified file %s is not an absolute path", name)
	}
	if _, complaint := c.Owner(); complaint != "" {
		return core.Failf("%s", complaint)
	}
	var sources []string
	for _, s := range c.Strings("source") {
		if !strings.HasPrefix(s, "salt://") {
			return core.Failf("Recurse failed: Invalid source '%s' (must be a salt:// URI)", strings.TrimRight(s, "/"))
		}
		if _, err := c.Roots.FindDir(s); err == nil {
			sources = append(sources, s)
		}
	}
	if len(sources) == 0 {
		return core.Failf("Recurse failed: none of the specified sources were found")
	}
	if core.Exists(name) && !core.IsDir(name) {
		return core.Failf("The path %s exists and is not a directory", name)
	}
	if !core.IsDir(name) && !c.Test { // Salt does not count the directory itself as a change
		o, _ := c.Owner()
		if err := c.MakeDirs(name, o, c.Mode("dir_mode")); err != nil {
			return core.Failf("%s", core.Cause(err))
		}
	}
	if !c.Bool("merge", false) {
		sources = sources[:1]
	}
	p := newRecursePlan(c, name)
	for _, s := range sources {
		if err := p.read(s); err != nil {
			return core.Failf("Recurse failed: %s", core.Cause(err))
		}
	}
	w := recurseWork{c: c, name: name, ret: core.Return{Result: core.True}}
	for _, dir := range slices.Sorted(maps.Keys(p.dirs)) {
		if fail := w.directory(dir); fail != nil {
			return *fail
		}
	}
	for _, dst := range slices.Sorted(maps.Keys(p.files)) {
		if fail := w.file(dst, p.files[dst]); fail != nil {
			return *fail
		}
	}
	for _, dst := range slices.Sorted(maps.Keys(p.links)) {
		w.link(dst, p.links[dst])
	}
	return w.finish(p.keep)
}

// recursePlan is what file.recurse is to create, by path.
// Source: Salt, salt/states/file.py, _gen_recurse_managed_files.
type recursePlan struct {
	c     *core.Call
	name  string
	files map[string]fileroot.File
	dirs  map[string]bool   // that hold a file, or are empty
	links map[string]string // with keep_symlinks, and their targets
	above map[string]bool   // all directories above a file
	keep  map[string]bool   // what clean leaves
	// ignored are links to directories that a source before made files of.
	ignored map[string]bool
}

func newRecursePlan(c *core.Call, name string) *recursePlan {
	return &recursePlan{c: c, name: name, files: map[string]fileroot.File{}, dirs: map[string]bool{}, links: map[string]string{},
		above: map[string]bool{}, keep: map[string]bool{name: true}, ignored: map[string]bool{}}
}

// InRecurse reports whether a path of the source counts at all in a file.recurse, by its patterns and its depth.
func InRecurse(c *core.Call, rel string) bool {
	if c.Has("maxdepth") && int64(strings.Count(rel, "/")) > c.Int("maxdepth", 0) {
		return false
	}
	matches := func(pattern string) bool { return matchesPattern(pattern, rel) }
	if inc := c.Strings("include_pat"); len(inc) > 0 && !slices.ContainsFunc(inc, matches) {
		return false
	}
	return !slices.ContainsFunc(c.Strings("exclude_pat"), matches)
}

// occupied reports whether a source before has something else there.
func (p *recursePlan) occupied(dst string) bool {
	if p.above[dst] {
		return true
	}
	for q := dst; q != "/" && q != "."; q = filepath.Dir(q) {
		_, file := p.files[q]
		_, link := p.links[q]
		if file || link {
			return true
		}
	}
	return false
}

func (p *recursePlan) kept(dst string) {
	for q := dst; q != p.name && q != "/"; q = filepath.Dir(q) {
		p.keep[q] = true
	}
}

// read adds a source.
func (p *recursePlan) read(source string) error {
	var entries []fileroot.File
	dirs := map[string]bool{}
	at := map[string]string{}
	err := p.c.Roots.Walk(source, func(rel string, f fileroot.File, d fs.DirEntry) error {
		dirs[rel], at[f.Path] = d.IsDir(), rel
		entries = append(entries, f)
		return nil
	})
	if err != nil {
		return err
	}
	if p.c.Bool("keep_symlinks", false) {
		entries = p.splitLinks(entries, dirs, at)
	}
	for _, f := range entries {
		rel := at[f.Path]
		dst := filepath.Join(p.name, filepath.FromSlash(rel))
		if dirs[rel] || !InRecurse(p.c, rel) || p.occupied(dst) {
			continue
		}
		p.kept(dst)
		p.files[dst] = f
		p.dirs[filepath.Dir(dst)] = true
		for q := filepath.Dir(dst); !p.above[q]; q = filepath.Dir(q) {
			p.above[q] = true
		}
	}
	switch {
	case p.c.Bool("include_empty", false):
		for _, rel := range slices.Sorted(maps.Keys(dirs)) {
			dst := filepath.Join(p.name, filepath.FromSlash(rel))
			if !dirs[rel] || !InRecurse(p.c, rel) || p.ignored[dst] || p.occupied(dst) && !p.dirs[dst] {
				continue
			}
			p.dirs[dst], p.above[dst] = true, true
			p.kept(dst)
		}
	case p.c.Bool("keep_symlinks", false):
		p.dropDanglingLinks(dirs)
	}
	return nil
}

// splitLinks moves the links of a source, and what is below them, from its entries to the links of the plan.
func (p *recursePlan) splitLinks(entries []fileroot.File, dirs map[string]bool, at map[string]string) []fileroot.File {
	for _, l := range slices.Clone(entries) {
		if l.Link == "" {
			continue
		}
		rel := at[l.Path]
		wasDir := false
		entries = slices.DeleteFunc(entries, func(f fileroot.File) bool {
			below := strings.HasPrefix(f.Path, l.Path+"/")
			wasDir = wasDir || below && !dirs[at[f.Path]]
			return below || f.Path == l.Path
		})
		dst := filepath.Join(p.name, filepath.FromSlash(rel))
		if !InRecurse(p.c, rel) || p.occupied(dst) {
			continue
		}
		target := filepath.Clean(filepath.Join(filepath.Dir(dst), l.Link))
		if filepath.IsAbs(l.Link) {
			target = filepath.Clean(l.Link)
		}
		// Where another source makes a file of the directory that the link leads to, or the other way round, it goes.
		if _, file := p.files[target]; wasDir && file {
			p.ignored[dst] = true
			continue
		}
		if !wasDir && p.dirs[target] {
			continue
		}
		p.links[dst] = l.Link
		p.kept(dst)
	}
	return entries
}

// dropDanglingLinks drops the links to directories of the source that hold no file.
func (p *recursePlan) dropDanglingLinks(dirs map[string]bool) {
	for again := true; again; {
		again = false
		for dst, target := range p.links {
			rel := path.Clean(target) // as in Salt, below the source, wherever the link is
			if path.IsAbs(target) || !dirs[rel] {
				continue
			}
			full := filepath.Join(p.name, filepath.FromSlash(rel))
			_, file := p.files[full]
			_, link := p.links[full]
			if !file && !link && !p.above[full] {
				delete(p.links, dst)
				again = true
			}
		}
	}
}

type recurseWork struct {
	c     *core.Call
	name  string
	ret   core.Return
	notes []string
}

// sub returns a call of another file function with the owner of this one.
func (w *recurseWork) sub(name string, args ...any) *core.Call {
	c := *w.c
	c.Name = name
	c.Args = py.NewDict(args...)
	c.Args.SetStr("name", name)
	for _, k := range []string{"user", "group"} {
		if v, ok := w.c.Value(k); ok {
			c.Args.SetStr(k, v)
		}
	}
	return &c
}

// clear makes room, with clean, for something of another kind; done ends the work on the path.
func (w *recurseWork) clear(p, would, did string) (done bool, fail *core.Return) {
	if w.c.Test {
		w.merge(p, core.Return{Result: core.None, Comment: would})
		return true, nil
	}
	if err := w.c.RemoveAll(p); err != nil {
		r := core.Failf("%s", core.Cause(err))
		return true, &r
	}
	r := core.Return{Result: core.True}
	r.Set("diff", did)
	w.merge(p, r)
	return false, nil
}

func (w *recurseWork) directory(p string) *core.Return {
	if w.c.Bool("clean", false) && core.Exists(p) && !core.IsDir(p) {
		if done, fail := w.clear(p, "Replacing "+p+" with a directory", "Replaced file with a directory"); done {
			return fail
		}
	}
	c := w.sub(p, "makedirs", true)
	if v, ok := w.c.Value("dir_mode"); ok {
		c.Args.SetStr("dir_mode", v)
	}
	w.merge(p, core.Guard(Directory)(c))
	return nil
}

func (w *recurseWork) file(dst string, f fileroot.File) *core.Return {
	if w.c.Bool("clean", false) && core.IsDir(dst) && w.c.Bool("replace", true) {
		if done, fail := w.clear(dst, "Replacing directory "+dst+" with a file", "Replaced directory with a new file"); done {
			return fail
		}
	}
	c := w.sub(dst, "source", "salt://"+f.Path+"?saltenv=base", "makedirs", true)
	for _, k := range []string{"template", "context", "defaults", "replace", "backup"} {
		if v, ok := w.c.Args.GetStr(k); ok {
			c.Args.SetStr(k, v)
		}
	}
	if v, ok := w.c.Value("file_mode"); ok {
		c.Args.SetStr("mode", v)
	}
	w.merge(dst, core.Guard(fileManaged)(c))
	return nil
}

func (w *recurseWork) link(dst, target string) {
	c := w.sub(dst, "target", target, "makedirs", true, "force", w.c.Bool("force_symlinks", false))
	if v, ok := w.c.Value("sym_mode"); ok {
		c.Args.SetStr("mode", v)
	}
	w.merge(dst, core.Guard(fileSymlink)(c))
}

func (w *recurseWork) merge(p string, r core.Return) {
	if r.Result == core.False || w.ret.Result == core.True {
		w.ret.Result = r.Result
	}
	if r.Result != core.True && r.Comment != "" {
		w.notes = append(w.notes, "#### "+p+" ####\n"+r.Comment)
	}
	if r.Changed() {
		w.ret.Set(p, r.Changes)
	}
}

func (w *recurseWork) finish(kept map[string]bool) core.Return {
	if w.c.Bool("clean", false) {
		d := dirWork{c: w.c, name: w.name, depth: -1, keep: kept, exclude: w.c.Strings("exclude_pat")}
		for p := range requiredPaths(w.c, w.name) {
			d.keep[p] = true
		}
		removed, err := d.cleanUp()
		if err != nil && !(w.c.Test && os.IsNotExist(err)) {
			return core.Failf("%s", core.Cause(err))
		}
		if len(removed) > 0 {
			l := py.NewList()
			for _, p := range removed {
				l.Append(p)
			}
			if w.c.Test {
				if w.ret.Result == core.True {
					w.ret.Result = core.None
				}
				w.notes = append(w.notes, "#### removed ####\n"+strings.Join(removed, "\n"))
			} else {
				w.ret.Set("removed", l)
			}
		}
	}
	w.ret.Comment = strings.Join(w.notes, "\n\n")
	switch {
	case !w.ret.Changed() && w.ret.Result == core.True:
		w.ret.Comment = "The directory " + w.name + " is in the correct state"
	case w.ret.Comment == "":
		w.ret.Comment = "Recursively updated " + w.name
	}
	return w.ret
}
