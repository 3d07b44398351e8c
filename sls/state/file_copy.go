package state

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/sls/fileroot"
)

func addFileCopy(t *Table) {
	t.add("file.copy", "source! force makedirs preserve user group mode dir_mode subdir", fileCopy)
	t.add("file.rename", "source! force makedirs", fileRename)
	t.add("file.touch", "atime mtime makedirs", fileTouch)
	t.add("file.recurse", "source! keep_source clean user group dir_mode file_mode sym_mode template context replace defaults "+
		"include_empty backup include_pat exclude_pat maxdepth keep_symlinks force_symlinks", fileRecurse)
	t.add("file.serialize", "dataset dataset_pillar user group mode backup makedirs show_changes create merge_if_exists encoding "+
		"encoding_errors serializer formatter serializer_opts deserializer_opts check_cmd tmp_dir tmp_ext", fileSerialize)
}

// copyFile copies a regular file with its mode, and as root its owner.
func (c *Call) copyFile(src, dst string) error {
	data, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	st, err := os.Stat(src)
	if err != nil {
		return err
	}
	uid, gid := -1, -1
	if c.Host.EUID == 0 {
		sys := st.Sys().(*syscall.Stat_t)
		uid, gid = int(sys.Uid), int(sys.Gid)
	}
	return replaceFile(dst, data, st.Mode()&modeBits, uid, gid)
}

// copyTree copies a directory, links as links.
func (c *Call) copyTree(src, dst string) error {
	return filepath.WalkDir(src, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		st, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case st.IsDir():
			if err := os.MkdirAll(to, 0o700); err != nil {
				return err
			}
			return os.Chmod(to, st.Mode()&modeBits)
		case st.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			return os.Symlink(target, to)
		case st.Mode().IsRegular():
			return c.copyFile(p, to)
		}
		return nil
	})
}

// fileCopy implements file.copy. Source: Salt documentation, file state, copy.
func fileCopy(c *Call) Return {
	name, src := c.expand(c.Name), c.expand(c.str("source", ""))
	if !filepath.IsAbs(name) {
		return Failf("Specified file %s is not an absolute path", name)
	}
	if !exists(src) {
		return Failf("Source file \"%s\" is not present", src)
	}
	o, complaint := c.owner()
	if complaint != "" {
		return Failf("%s", complaint)
	}
	mode := c.mode("mode")
	preserve, force := c.boolean("preserve", false), c.boolean("force", false)
	if isDir(name) && c.boolean("subdir", false) {
		name = filepath.Join(name, filepath.Base(src))
	}
	if lexists(name) && !force {
		if !preserve && (o.user != nil || o.group != nil || mode != nil) && !isDir(name) {
			ch, err := c.enforce(name, o, mode, true)
			if err != nil {
				return Failf("%s", why(err))
			}
			if ch.Len() > 0 {
				ret := Return{Result: True, Changes: ch, Comment: "The target file \"" + name + "\" exists and will not be overwritten"}
				if c.Test {
					ret.Result = None
				}
				return ret
			}
		}
		return OKf("The target file \"%s\" exists and will not be overwritten", name)
	}
	if c.Test {
		return Would(nil, "File \"%s\" is set to be copied to \"%s\"", src, name)
	}
	if lexists(name) {
		if err := os.RemoveAll(name); err != nil {
			return Failf("Failed to delete \"%s\" in preparation for forced copy: %s", name, why(err))
		}
	}
	if dir := filepath.Dir(name); !isDir(dir) {
		if !c.boolean("makedirs", false) {
			return Failf("The target directory %s is not present", dir)
		}
		if err := c.makeDirs(dir, o, c.parentMode(&managed{mode: mode, dirMode: c.mode("dir_mode")})); err != nil {
			return Failf("%s", why(err))
		}
	}
	var err error
	if isDir(src) {
		err = c.copyTree(src, name)
	} else {
		err = c.copyFile(src, name)
	}
	if err != nil {
		return Failf("Failed to copy \"%s\" to \"%s\": %s", src, name, why(err))
	}
	ret := Return{Result: True, Comment: "Copied \"" + src + "\" to \"" + name + "\"", Changes: py.NewDict(name, src)}
	if preserve {
		return ret
	}
	if o.user == nil && c.Host.EUID == 0 {
		uid := c.Host.EUID
		o.user, o.userName = &uid, c.userName(uid)
	}
	if o.group == nil && c.Host.EUID == 0 {
		gid := c.Host.EGID
		o.group, o.grpName = &gid, c.groupName(gid)
	}
	ch, err := c.enforce(name, o, mode, true)
	if err != nil {
		return Failf("%s", why(err))
	}
	for _, e := range ch.Items() {
		ret.Set(py.Str(e.Key), e.Value)
	}
	return ret
}

func fileRename(c *Call) Return {
	name, src := c.expand(c.Name), c.expand(c.str("source", ""))
	switch {
	case !filepath.IsAbs(name):
		return Failf("Specified file %s is not an absolute path", name)
	case !lexists(src):
		return OKf("Source file \"%s\" has already been moved out of place", src)
	case lexists(name) && !c.boolean("force", false):
		return OKf("The target file \"%s\" exists and will not be overwritten", name)
	case c.Test:
		return Would(nil, "File \"%s\" is set to be moved to \"%s\"", src, name)
	}
	if dir := filepath.Dir(name); !isDir(dir) {
		if !c.boolean("makedirs", false) {
			return Failf("The target directory %s is not present", dir)
		}
		if err := c.makeDirs(dir, owner{}, nil); err != nil {
			return Failf("%s", why(err))
		}
	}
	if lexists(name) {
		if err := os.RemoveAll(name); err != nil {
			return Failf("Failed to delete \"%s\" in preparation for forced move", name)
		}
	}
	if err := os.Rename(src, name); err != nil {
		return Failf("Failed to move \"%s\" to \"%s\": %s", src, name, why(err))
	}
	return Return{Result: True, Comment: "Moved \"" + src + "\" to \"" + name + "\"", Changes: py.NewDict(name, src)}
}

func fileTouch(c *Call) Return {
	name := c.expand(c.Name)
	if !filepath.IsAbs(name) {
		return Failf("Specified file %s is not an absolute path", name)
	}
	stamp := func(arg string) (time.Time, bool) {
		v, ok := c.val(arg)
		if !ok {
			return time.Time{}, false
		}
		f, err := strconv.ParseFloat(py.Str(v), 64)
		if err != nil {
			badArg("%s must be a number of seconds", arg)
		}
		return time.Unix(0, int64(f*1e9)), true
	}
	at, hasA := stamp("atime")
	mt, hasM := stamp("mtime")
	there := exists(name)
	if c.Test {
		if !there {
			return Would(py.NewDict("new", name), "File %s is set to be created", name)
		}
		if !hasA && !hasM {
			return OKf("File %s exists and has the correct times", name)
		}
		return Would(py.NewDict("touched", name), "Times set to be updated on file %s", name)
	}
	dir := filepath.Dir(name)
	if !isDir(dir) && c.boolean("makedirs", false) {
		if err := c.makeDirs(dir, owner{}, nil); err != nil {
			return Failf("%s", why(err))
		}
	}
	if !isDir(dir) {
		return Failf("Directory not present to touch file %s", name)
	}
	if !there {
		if err := c.writeNew(name, managed{}); err != nil {
			return Failf("%s", why(err))
		}
	}
	now := c.Host.Now()
	if !hasA && !hasM {
		at, mt = now, now
	} else if !hasA {
		at = mt
	} else if !hasM {
		mt = at
	}
	if err := os.Chtimes(name, at, mt); err != nil {
		return Failf("%s", why(err))
	}
	if !there {
		return Return{Result: True, Comment: "Created empty file " + name, Changes: py.NewDict("new", name)}
	}
	what := "file"
	if isDir(name) {
		what = "directory"
	}
	return Return{Result: True, Comment: "Updated times on " + what + " " + name, Changes: py.NewDict("touched", name)}
}

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

// fileSerialize implements file.serialize for yaml and json. Source: Salt documentation, file state, serialize.
func fileSerialize(c *Call) Return {
	data, ok := c.val("dataset")
	if key := c.str("dataset_pillar", ""); key != "" {
		if ok {
			return Failf("Only one of 'dataset' and 'dataset_pillar' is permitted")
		}
		if data, ok = Traverse(c.Pillar, key, ":"); !ok {
			return Failf("Pillar %s does not exist", key)
		}
	}
	if !ok {
		return Failf("Neither 'dataset' nor 'dataset_pillar' was defined")
	}
	format := strings.TrimSuffix(c.str("serializer", c.str("formatter", "yaml")), "ser")
	opts := py.NewDict()
	opts.Update(c.dict("serializer_opts"))
	name := c.expand(c.Name)
	if c.boolean("merge_if_exists", false) && isFile(name) {
		merged, fail := mergeExisting(name, format, data)
		if fail != "" {
			return Failf("%s", fail)
		}
		data = merged
	}
	var text string
	var err error
	switch format {
	case "yaml":
		text, err = saltyaml.Dump(data, saltyaml.DumpOptions{Flow: saltyaml.BlockStyle, ASCII: !boolOf(opts, "allow_unicode", true)})
	case "json":
		o := py.JSONOptions{Pretty: true, Indent: "  ", SortKeys: boolOf(opts, "sort_keys", true)}
		if v, has := opts.GetStr("indent"); has {
			if n, isInt := v.(int64); isInt && n >= 0 && n < 64 {
				o.Indent = strings.Repeat(" ", int(n))
			}
		}
		text, err = py.ToJSON(data, o)
	case "plist", "python", "configparser", "toml", "ini":
		return Failf("The %s serializer is not supported by the built-in runner", format)
	default:
		return Failf("The %s serializer could not be found. It either does not exist or its prerequisites are not installed.", format)
	}
	if err != nil {
		return Failf("Failed to serialize the data: %s", py.TypeName(data))
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	sub := *c
	sub.Args = c.Args.Copy()
	for _, k := range []string{"dataset", "dataset_pillar", "serializer", "formatter"} {
		sub.Args.Delete(k)
	}
	sub.Args.SetStr("contents", text)
	return guard(fileManaged)(&sub)
}

func boolOf(d *py.Dict, key string, def bool) bool {
	if v, ok := d.GetStr(key); ok {
		return py.Truth(v)
	}
	return def
}

func mergeExisting(name, format string, data any) (any, string) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, why(err)
	}
	var old any
	switch format {
	case "json":
		old, err = py.FromJSON(string(b))
	case "yaml":
		var doc *saltyaml.Doc
		if doc, err = saltyaml.Parse("", b, saltyaml.Options{Private: true}); err == nil {
			old = doc.Value
		}
	default:
		return nil, "merge_if_exists is not supported for the " + format + " serializer"
	}
	if err != nil {
		return nil, "Failed to deserialize existing data"
	}
	if old == nil {
		return data, ""
	}
	od, ok1 := old.(*py.Dict)
	nd, ok2 := data.(*py.Dict)
	if !ok1 || !ok2 {
		return data, ""
	}
	mergeInto(od, nd)
	return od, ""
}

func mergeInto(dst, src *py.Dict) {
	for _, e := range src.Items() {
		if old, ok := dst.Get(e.Key); ok {
			od, ok1 := old.(*py.Dict)
			nd, ok2 := e.Value.(*py.Dict)
			if ok1 && ok2 {
				mergeInto(od, nd)
				continue
			}
		}
		_ = dst.Set(e.Key, e.Value)
	}
}
