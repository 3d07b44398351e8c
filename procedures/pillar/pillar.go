package pillar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/redact"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project/schema"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/modules"
	"corpus-git/sls/render"
)

const (
	// maxFile, maxFiles and maxBytes limit the files of a pillar.
	maxFile  = 8 << 20
	maxFiles = 1000
	maxBytes = 64 << 20
	// maxIncludes limits the entries of all include lists.
	maxIncludes = 10_000
)

// tree compiles the pillar of a project: the files that <root>/pillar/top.sls names for this machine, with the project's own pillar
// in its place below makina-projects, and the files that they include. Other projects' pillars are not part of it.
//
// Source: Salt documentation, "The Top File" and "Pillar", and salt.pillar of release 3008.
type tree struct {
	data *Reader
	// own and machine are the project's pillar and <root>/pillar; nil if there is none.
	own, machine fs.FS
	slses        fileroot.Roots // where SLS names are looked up
	templates    fileroot.Roots // where templates find what they import
	done         map[string]*py.Dict
	bytes        int
	includes     int
}

// tree finds the trees; own are the files of the project's repository, nil if there are none.
func (d *Reader) tree(own fs.FS) (*tree, error) {
	t := &tree{data: d, done: map[string]*py.Dict{}}
	if own != nil {
		t.own = vfs.Bounded{FS: own, Max: maxFile}
		t.slses = append(t.slses, fileroot.Root{FS: t.own, Mount: layout.ProjectsNamespace + "/" + d.Name.String()})
	}
	dir := d.Root.Pillar()
	if machine, err := vfs.Beneath(dir); err == nil {
		t.machine = vfs.Bounded{FS: machine, Max: maxFile}
		t.slses = append(t.slses, fileroot.Root{FS: t.machine, Label: dir})
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Internal, "read "+dir, "%w", err)
	}
	t.templates = t.slses
	if t.own != nil { // paths from the top of the repository, for compatibility
		t.templates = append(slices.Clone(t.slses), fileroot.Root{FS: t.own})
	}
	return t, nil
}

// Pillar returns the values of the project's pillar; own are the files of its repository, nil if there are none.
func (d *Reader) Pillar(ctx context.Context, own fs.FS) (*py.Dict, error) {
	self := SLS(d.Name.String())
	t, err := d.tree(own)
	if err != nil {
		return nil, err
	}
	names, err := t.top(ctx)
	if err != nil {
		return nil, err
	}
	if own != nil && !slices.Contains(names, self) {
		names = append(names, self) // a project that is not linked still has its pillar
	}
	out := py.NewDict()
	for _, name := range names {
		if name == self && own == nil {
			continue
		}
		v, err := t.sls(ctx, name, "", nil)
		if err != nil {
			return nil, err
		}
		modules.Merge(out, py.DeepCopy(v).(*py.Dict), false)
	}
	if d.Node == nil {
		return out, nil
	}
	for _, path := range layersOf(d.Node) {
		v, err := t.layer(ctx, path)
		if err != nil {
			return nil, err
		}
		modules.Merge(out, v, false)
	}
	return out, nil
}

// SLS returns the project's pillar as the top file names it.
func SLS(name string) string { return layout.ProjectsNamespace + "." + name }

// foreign reports whether an SLS belongs to another project.
func (t *tree) foreign(sls string) bool {
	self := SLS(t.data.Name.String())
	return (sls == layout.ProjectsNamespace || strings.HasPrefix(sls, layout.ProjectsNamespace+".")) && sls != self && !strings.HasPrefix(sls, self+".")
}

// sls returns the values of one SLS file and of the files that it includes. by is the file that includes it, vars the variables passed to
// it.
func (t *tree) sls(ctx context.Context, name, by string, vars *py.Dict) (*py.Dict, error) {
	refuse := func(format string, args ...any) *fault.Error {
		e := fault.New(fault.Failed, "read the pillar", format, args...)
		if by == "" {
			return e.WithPos(fault.Pos{File: t.data.Root.PillarTop()})
		}
		return e.WithPos(fault.Pos{File: by})
	}
	if t.foreign(name) {
		return nil, refuse("%s is the pillar of another project", name)
	}
	f, err := t.slses.SLS(name)
	if err != nil && name == SLS(t.data.Name.String()) {
		return nil, fault.New(fault.Failed, "read the pillar", "there is no %s", layout.PillarFile).
			WithHint("the pillar repository needs a file  %s  at its top level", layout.PillarFile)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, refuse("%s not found, neither in the project's pillar nor in %s", name, t.data.Root.Pillar()).
			WithHint("include files of the project's own pillar as  .NAME")
	}
	if err != nil {
		return nil, refuse("%s cannot be read: %v", name, err)
	}
	return t.from(ctx, f, name, vars)
}

// from returns the values of a file that was found, and of the files that it includes.
func (t *tree) from(ctx context.Context, f fileroot.File, name string, vars *py.Dict) (*py.Dict, error) {
	display := t.display(f)
	doc, err := t.file(ctx, f, name, display, vars)
	if err != nil {
		return nil, err
	}
	include, has := doc.Pop("include")
	t.done[name] = doc
	if !has {
		return doc, nil
	}
	list, ok := include.(*py.List)
	if !ok {
		return nil, fault.New(fault.Failed, "read "+display, "include must be a list").WithPos(fault.Pos{File: display})
	}
	if t.includes += list.Len(); t.includes > maxIncludes {
		return nil, fault.New(fault.Failed, "read "+display, "more than %d files are included", maxIncludes).WithPos(fault.Pos{File: display})
	}
	out := py.NewDict()
	for _, item := range list.Items() {
		inc, err := t.include(item, name, f, display)
		if err != nil {
			return nil, err
		}
		for _, sub := range inc.names {
			v := t.done[sub]
			if v == nil {
				if v, err = t.sls(ctx, sub, display, inc.vars); err != nil {
					return nil, err
				}
			}
			v = py.DeepCopy(v).(*py.Dict)
			if inc.key != "" {
				for _, k := range slices.Backward(strings.Split(inc.key, ":")) {
					v = py.NewDict(k, v)
				}
			}
			modules.Merge(out, v, false)
		}
	}
	// The file's own values override included ones.
	modules.Merge(out, py.DeepCopy(doc).(*py.Dict), false)
	return out, nil
}

type inclusion struct {
	names []string
	key   string
	vars  *py.Dict
}

// include reads one entry of an include list: a name, or a name with defaults and key.
func (t *tree) include(item any, by string, f fileroot.File, display string) (inclusion, error) {
	var out inclusion
	bad := fault.New(fault.Failed, "read "+display, "an entry of include must be a name, or a name with defaults and key").WithPos(fault.Pos{File: display})
	name, ok := item.(string)
	if d, isDict := item.(*py.Dict); isDict && d.Len() == 1 {
		e := d.Items()[0]
		name, ok = e.Key.(string)
		if opts, isDict := e.Value.(*py.Dict); isDict {
			if v, has := opts.GetStr("defaults"); has {
				if out.vars, isDict = v.(*py.Dict); !isDict {
					return out, bad
				}
			}
			if v, has := opts.GetStr("key"); has && v != nil {
				out.key = py.Str(v)
			}
		}
	}
	if !ok || name == "" {
		return out, bad
	}
	if rel, isRel := strings.CutPrefix(name, "."); isRel {
		dir := strings.Split(by, ".")
		if !strings.HasSuffix(f.Path, "/init.sls") {
			dir = dir[:len(dir)-1]
		}
		name = strings.Join(append(dir, rel), ".")
	} else {
		name = strings.ReplaceAll(name, "/", ".")
	}
	out.names = []string{name}
	if strings.ContainsAny(name, "*?[") {
		var err error
		if out.names, err = t.named(name); err != nil {
			return out, err
		}
	}
	return out, nil
}

// display returns the name of a file in messages: for the project's own files the path in the repository.
func (t *tree) display(f fileroot.File) string {
	if f.Root.Mount != "" {
		return "pillar " + f.Rel
	}
	return filepath.Join(t.data.Root.Pillar(), filepath.FromSlash(f.Rel))
}

// file renders and reads one file. No line of it is ever quoted.
func (t *tree) file(ctx context.Context, f fileroot.File, name, display string, vars *py.Dict) (*py.Dict, error) {
	src, err := f.Read()
	if err != nil {
		return nil, fault.New(fault.Failed, "read "+display, "%w", err).WithPos(fault.Pos{File: display})
	}
	if t.bytes += len(src); t.bytes > maxBytes || len(t.done) > maxFiles {
		return nil, fault.New(fault.Failed, "read "+display, "the pillar is larger than %d files or %d MiB", maxFiles, maxBytes>>20).WithPos(fault.Pos{File: display})
	}
	jinja := true
	if line, _, _ := strings.Cut(string(src), "\n"); strings.HasPrefix(line, "#!") {
		switch strings.ReplaceAll(strings.TrimSpace(line[2:]), " ", "") {
		case "jinja|yaml":
		case "yaml":
			jinja = false
		default:
			return nil, fault.New(fault.Refused, "read "+display, "only jinja|yaml and yaml are rendered in a pillar").WithPos(fault.Pos{File: display, Line: 1})
		}
	}
	v := render.Vars(f.Path, name)
	v.Update(vars)
	return t.data.parse(ctx, dataFile{display: display, src: src, roots: t.templates, vars: v, jinja: jinja, private: true})
}

// included is a line of an include list: the name of a file.
var included = regexp.MustCompile(`^\s*-\s+[\w./*-]+:?\s*$`)

// declared returns the values in a pillar that the recipes declare as secret, numbers included.
func (d *Reader) declared(pillar *py.Dict) (out []redact.Secret) {
	section, _ := pillar.GetStr(layout.ProjectsNamespace + "." + d.Name.String())
	for _, in := range d.Declared {
		if in == nil {
			continue
		}
		for _, f := range in.Fields {
			v, ok := py.Traverse(section, "data:"+strings.Join(f.Path(), ":"), ":")
			if f.Secret && ok {
				out = append(out, schema.Secrets("input", "data."+f.Name, v)...)
			}
		}
	}
	return out
}

// Secrets returns the values of a pillar that must not be shown, except those that are in code (redact.NotIn), and those that it lists as
// shown. If a pillar can't be read, everything that looks like a value, in all of its files, is a secret.
func (d *Reader) Secrets(ctx context.Context, own fs.FS) (secrets []redact.Secret, shown map[string]bool) {
	all, err := d.each(ctx, own)
	if err == nil {
		shown = map[string]bool{}
		for _, v := range all {
			secrets = append(secrets, redact.Secrets(v)...)
			maps.Copy(shown, redact.Shown(v))
		}
		for _, v := range all {
			for _, s := range d.declared(v) {
				secrets = append(secrets, s)
				delete(shown, s.Value)
			}
		}
		return secrets, shown
	}
	loose := py.NewDict()
	t, err := d.tree(own)
	if err != nil {
		t = &tree{own: vfs.Bounded{FS: own, Max: maxFile}}
	}
	left := maxFiles
	for _, files := range []fs.FS{t.own, t.machine} {
		if files == nil {
			continue
		}
		_ = fs.WalkDir(files, ".", func(p string, e fs.DirEntry, err error) error {
			switch {
			case err != nil || left <= 0:
				return fs.SkipDir
			case e.IsDir():
				if e.Name() == ".git" {
					return fs.SkipDir
				}
				return nil
			}
			src, err := fs.ReadFile(files, p)
			if err != nil || t.bytes+len(src) > maxBytes {
				return nil
			}
			left, t.bytes = left-1, t.bytes+len(src)
			if p == topFile+".sls" {
				return nil // names of files and machines
			}
			including := false
			for i, line := range strings.Split(string(src), "\n") {
				if including = strings.TrimSpace(line) == "include:" || including && included.MatchString(line); including {
					continue
				}
				for j, tok := range valuesIn(line) {
					loose.SetStr(fmt.Sprintf("%s line %d value %d", path.Base(p), i+1, j+1), tok)
				}
			}
			return nil
		})
	}
	return redact.Secrets(loose), nil
}
