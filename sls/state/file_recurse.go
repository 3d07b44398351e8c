package state

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
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
	var src string
	for _, s := range c.strs("source") {
		if scheme(s) != "salt" {
			return Failf("Recurse failed: Invalid source '%s'. There must be a salt:// source", s)
		}
		if _, err := c.Roots.FindDir(s); err == nil {
			src = s
			break
		}
	}
	if src == "" {
		return Failf("Recurse failed: none of the specified sources were found")
	}
	if exists(name) && !isDir(name) {
		return Failf("The path %s exists and is not a directory", name)
	}
	w := recurseWork{c: c, name: name, keep: map[string]bool{name: true}, ret: Return{Result: True}}
	if !isDir(name) && !c.Test { // Salt does not count the directory itself as a change
		o, _ := c.owner()
		if err := c.makeDirs(name, o, c.mode("dir_mode")); err != nil {
			return Failf("%s", why(err))
		}
	}
	w.directory(name)
	err := c.Roots.Walk(src, func(rel string, f fileroot.File, d fs.DirEntry) error { return w.entry(rel, f, d) })
	if err != nil {
		return Failf("Recurse failed: %s", why(err))
	}
	return w.finish()
}

type recurseWork struct {
	c     *Call
	name  string
	keep  map[string]bool
	ret   Return
	notes []string
	dirs  map[string]bool
}

func (w *recurseWork) entry(rel string, f fileroot.File, d fs.DirEntry) error {
	depth := strings.Count(rel, "/")
	if w.c.has("maxdepth") && int64(depth) > w.c.integer("maxdepth", 0) {
		return nil
	}
	for _, p := range w.c.strs("exclude_pat") {
		if matchesPattern(p, rel) {
			return nil
		}
	}
	dst := filepath.Join(w.name, filepath.FromSlash(rel))
	if d.IsDir() {
		if w.c.boolean("include_empty", false) {
			w.keep[dst] = true
			w.directory(dst)
		}
		return nil
	}
	if inc := w.c.strs("include_pat"); len(inc) > 0 {
		ok := false
		for _, p := range inc {
			ok = ok || matchesPattern(p, rel)
		}
		if !ok {
			return nil
		}
	}
	for p := dst; p != w.name; p = filepath.Dir(p) {
		w.keep[p] = true
	}
	for _, p := range parents(rel) {
		dir := filepath.Join(w.name, p)
		w.directory(dir)
	}
	return w.file(dst, f)
}

func parents(rel string) []string {
	var out []string
	for p := path.Dir(rel); p != "."; p = path.Dir(p) {
		out = append([]string{p}, out...)
	}
	return out
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

func (w *recurseWork) directory(p string) {
	if w.dirs == nil {
		w.dirs = map[string]bool{}
	}
	if w.dirs[p] {
		return
	}
	w.dirs[p] = true
	c := w.sub(p, "makedirs", true)
	if v, ok := w.c.val("dir_mode"); ok {
		c.Args.SetStr("dir_mode", v)
	}
	r := guard(fileDirectory)(c)
	w.merge(p, r)
}

func (w *recurseWork) file(dst string, f fileroot.File) error {
	c := w.sub(dst, "source", "salt://"+f.Path, "makedirs", true)
	for _, k := range []string{"template", "context", "defaults", "replace", "backup"} {
		if v, ok := w.c.Args.GetStr(k); ok {
			c.Args.SetStr(k, v)
		}
	}
	if v, ok := w.c.val("file_mode"); ok {
		c.Args.SetStr("mode", v)
	}
	if w.c.boolean("clean", false) && isDir(dst) && !w.c.Test {
		if err := os.RemoveAll(dst); err != nil {
			return err
		}
	}
	w.merge(dst, guard(fileManaged)(c))
	return nil
}

func (w *recurseWork) merge(p string, r Return) {
	switch r.Result {
	case False:
		w.ret.Result = False
	case None:
		if w.ret.Result == True {
			w.ret.Result = None
		}
	}
	if r.Result != True && r.Comment != "" {
		w.notes = append(w.notes, "#### "+p+" ####\n"+r.Comment)
	}
	if r.Changed() {
		w.ret.Set(p, r.Changes)
	}
}

func (w *recurseWork) finish() Return {
	if w.c.boolean("clean", false) {
		d := dirWork{c: w.c, name: w.name, depth: -1, keep: w.keep, exclude: w.c.strs("exclude_pat")}
		for p := range w.c.keep(w.name) {
			d.keep[p] = true
		}
		removed, err := d.cleanUp()
		if err != nil {
			return Failf("%s", why(err))
		}
		if len(removed) > 0 {
			sort.Strings(removed)
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
	case w.ret.Comment != "":
	case !w.ret.Changed():
		w.ret.Comment = "The directory " + w.name + " is in the correct state"
	default:
		w.ret.Comment = "Recursively updated " + w.name
	}
	return w.ret
}
