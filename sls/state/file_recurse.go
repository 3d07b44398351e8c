package state

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
)

// fileRecurse implements file.recurse. Source: Salt documentation, file state, recurse.
func fileRecurse(c *Call) Return {
	name := c.expand(c.Name)
	if !filepath.IsAbs(name) {
		return Failf("Specified file %s is not an absolute path", name)
	}
	if _, complaint := c.owner(); complaint != "" {
		return Failf("%s", complaint)
	}
	var sources []string
	for _, s := range c.strs("source") {
		if !strings.HasPrefix(s, "salt://") {
			return Failf("Recurse failed: Invalid source '%s' (must be a salt:// URI)", strings.TrimRight(s, "/"))
		}
		if _, err := c.Roots.FindDir(s); err == nil {
			sources = append(sources, s)
		}
	}
	if len(sources) == 0 {
		return Failf("Recurse failed: none of the specified sources were found")
	}
	if exists(name) && !isDir(name) {
		return Failf("The path %s exists and is not a directory", name)
	}
	if !isDir(name) && !c.Test { // Salt does not count the directory itself as a change
		o, _ := c.owner()
		if err := c.makeDirs(name, o, c.mode("dir_mode")); err != nil {
			return Failf("%s", why(err))
		}
	}
	if !c.boolean("merge", false) {
		sources = sources[:1]
	}
	p := newRecursePlan(c, name)
	for _, s := range sources {
		if err := p.read(s); err != nil {
			return Failf("Recurse failed: %s", why(err))
		}
	}
	w := recurseWork{c: c, name: name, ret: Return{Result: True}}
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

// recursePlan is what file.recurse is to make, by path.
// Source: Salt, salt/states/file.py, _gen_recurse_managed_files.
type recursePlan struct {
	c     *Call
	name  string
	files map[string]fileroot.File
	dirs  map[string]bool   // that hold a file, or are empty
	links map[string]string // with keep_symlinks, and where they lead
	above map[string]bool   // all directories above a file
	keep  map[string]bool   // what clean leaves
	// ignored are links to directories that a source before made files of.
	ignored map[string]bool
}

func newRecursePlan(c *Call, name string) *recursePlan {
	return &recursePlan{c: c, name: name, files: map[string]fileroot.File{}, dirs: map[string]bool{}, links: map[string]string{},
		above: map[string]bool{}, keep: map[string]bool{name: true}, ignored: map[string]bool{}}
}

// wanted reports whether a path of the source counts at all.
func (p *recursePlan) wanted(rel string) bool {
	if p.c.has("maxdepth") && int64(strings.Count(rel, "/")) > p.c.integer("maxdepth", 0) {
		return false
	}
	matches := func(pattern string) bool { return matchesPattern(pattern, rel) }
	if inc := p.c.strs("include_pat"); len(inc) > 0 && !slices.ContainsFunc(inc, matches) {
		return false
	}
	return !slices.ContainsFunc(p.c.strs("exclude_pat"), matches)
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
	if p.c.boolean("keep_symlinks", false) {
		entries = p.takeLinks(entries, dirs, at)
	}
	for _, f := range entries {
		rel := at[f.Path]
		dst := filepath.Join(p.name, filepath.FromSlash(rel))
		if dirs[rel] || !p.wanted(rel) || p.occupied(dst) {
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
	case p.c.boolean("include_empty", false):
		for _, rel := range slices.Sorted(maps.Keys(dirs)) {
			dst := filepath.Join(p.name, filepath.FromSlash(rel))
			if !dirs[rel] || !p.wanted(rel) || p.ignored[dst] || p.occupied(dst) && !p.dirs[dst] {
				continue
			}
			p.dirs[dst], p.above[dst] = true, true
			p.kept(dst)
		}
	case p.c.boolean("keep_symlinks", false):
		p.dropLinksToNothing(dirs)
	}
	return nil
}

// takeLinks moves the links of a source, and what lies below them, from its entries to the links of the plan.
func (p *recursePlan) takeLinks(entries []fileroot.File, dirs map[string]bool, at map[string]string) []fileroot.File {
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
		if !p.wanted(rel) || p.occupied(dst) {
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

// dropLinksToNothing drops the links to directories of the source that hold no file.
func (p *recursePlan) dropLinksToNothing(dirs map[string]bool) {
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
	c     *Call
	name  string
	ret   Return
	notes []string
}

// sub is a call of another file function with the owner of this one.
func (w *recurseWork) sub(name string, args ...any) *Call {
	c := *w.c
	c.Name = name
	c.Args = py.NewDict(args...)
	c.Args.SetStr("name", name)
	for _, k := range []string{"user", "group"} {
		if v, ok := w.c.val(k); ok {
			c.Args.SetStr(k, v)
		}
	}
	return &c
}

// clear makes room, with clean, for something of another kind; done ends the work on the path.
func (w *recurseWork) clear(p, would, did string) (done bool, fail *Return) {
	if w.c.Test {
		w.merge(p, Return{Result: None, Comment: would})
		return true, nil
	}
	if err := os.RemoveAll(p); err != nil {
		r := Failf("%s", why(err))
		return true, &r
	}
	r := Return{Result: True}
	r.Set("diff", did)
	w.merge(p, r)
	return false, nil
}

func (w *recurseWork) directory(p string) *Return {
	if w.c.boolean("clean", false) && exists(p) && !isDir(p) {
		if done, fail := w.clear(p, "Replacing "+p+" with a directory", "Replaced file with a directory"); done {
			return fail
		}
	}
	c := w.sub(p, "makedirs", true)
	if v, ok := w.c.val("dir_mode"); ok {
		c.Args.SetStr("dir_mode", v)
	}
	w.merge(p, guard(fileDirectory)(c))
	return nil
}

func (w *recurseWork) file(dst string, f fileroot.File) *Return {
	if w.c.boolean("clean", false) && isDir(dst) && w.c.boolean("replace", true) {
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
	if v, ok := w.c.val("file_mode"); ok {
		c.Args.SetStr("mode", v)
	}
	w.merge(dst, guard(fileManaged)(c))
	return nil
}

func (w *recurseWork) link(dst, target string) {
	c := w.sub(dst, "target", target, "makedirs", true, "force", w.c.boolean("force_symlinks", false))
	if v, ok := w.c.val("sym_mode"); ok {
		c.Args.SetStr("mode", v)
	}
	w.merge(dst, guard(fileSymlink)(c))
}

func (w *recurseWork) merge(p string, r Return) {
	if r.Result == False || w.ret.Result == True {
		w.ret.Result = r.Result
	}
	if r.Result != True && r.Comment != "" {
		w.notes = append(w.notes, "#### "+p+" ####\n"+r.Comment)
	}
	if r.Changed() {
		w.ret.Set(p, r.Changes)
	}
}

func (w *recurseWork) finish(keep map[string]bool) Return {
	if w.c.boolean("clean", false) {
		d := dirWork{c: w.c, name: w.name, depth: -1, keep: keep, exclude: w.c.strs("exclude_pat")}
		for p := range w.c.keep(w.name) {
			d.keep[p] = true
		}
		removed, err := d.cleanUp()
		if err != nil && !(w.c.Test && os.IsNotExist(err)) {
			return Failf("%s", why(err))
		}
		if len(removed) > 0 {
			l := py.NewList()
			for _, p := range removed {
				l.Append(p)
			}
			if w.c.Test {
				if w.ret.Result == True {
					w.ret.Result = None
				}
				w.notes = append(w.notes, "#### removed ####\n"+strings.Join(removed, "\n"))
			} else {
				w.ret.Set("removed", l)
			}
		}
	}
	w.ret.Comment = strings.Join(w.notes, "\n\n")
	switch {
	case !w.ret.Changed() && w.ret.Result == True:
		w.ret.Comment = "The directory " + w.name + " is in the correct state"
	case w.ret.Comment == "":
		w.ret.Comment = "Recursively updated " + w.name
	}
	return w.ret
}
