// Package filestep makes the step that writes the files of cfg (the key files): a step without a file in .salt, which the built-in runner applies like an SLS
// file, so that a plan, the undo log and the report of changes are those of other steps. It reads the configuration and a commit, and writes nothing.
package filestep

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/layout"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/project/files"
	"corpus-git/sls/fileroot"
)

// Name is the name of the step.
const Name = recipe.ToolFiles

// mount is the folder of salt:// with the step's SLS file.
const mount = "corpus-files"

// SLS is the dotted name of the step's SLS file.
const SLS = mount + "." + Name

// Step is the step.
func Step() recipe.Step { return recipe.Step{Name: Name, Tool: recipe.ToolFiles} }

// First puts the step before all others, if the configuration has files. A step of the recipe with the same name is fault.Failed.
func First(all []recipe.Step, list []files.File) ([]recipe.Step, error) {
	if len(list) == 0 {
		return all, nil
	}
	for _, s := range all {
		if s.Name == Name {
			return nil, fault.New(fault.Failed, "", "the step that writes the files of cfg has this name").
				WithPos(fault.Pos{File: path.Join(layout.SaltDir, s.File)}).WithHint("rename it")
		}
	}
	return slices.Insert(slices.Clone(all), 0, Step()), nil
}

// Tracked returns an error if a file belongs to the commit, which would write it, too. code is nil without a commit.
func Tracked(cfg *project.Cfg, code fs.FS) error {
	if code == nil {
		return nil
	}
	for _, f := range cfg.Files() {
		if path.IsAbs(f.Path) {
			continue
		}
		if _, err := fs.Stat(code, f.Path); err == nil {
			return cfg.FileError(&files.Error{Keys: []string{files.Key, f.Declared}, Text: "git tracks this file: the commit would write it, too", Hint: "git rm --cached " + f.Path + ", or choose another path"})
		}
	}
	return nil
}

// Text returns the SLS file of the step. at is where the project is; user and group own what is in its tree, "" leaves that to whoever runs the step.
func Text(list []files.File, at layout.Project, user, group string) (string, error) {
	doc := py.NewDict()
	for _, f := range list {
		name, args := f.Path, py.NewList()
		user, group := user, group
		arg := func(key string, value any) { args.Append(py.NewDict(key, value)) }
		if !path.IsAbs(name) {
			name = path.Join(at.Live(), name)
			arg("within", at.Live())
		} else {
			user, group = "", ""
		}
		arg("name", name)
		if f.Absent {
			doc.SetStr(f.Declared, py.NewDict("file.absent", py.NewList(py.NewDict("name", name))))
			continue
		}
		for key, value := range map[string]*string{"text": f.Content, "base64": f.Base64, "jinja": f.Template} {
			if value != nil {
				arg(key, *value)
			}
		}
		if f.Format != "" {
			arg("format", string(f.Format))
			arg("values", f.Values)
			arg("existing", f.Existing)
			remove := py.NewList()
			for _, keys := range f.Remove {
				one := py.NewList()
				for _, k := range keys {
					one.Append(k)
				}
				remove.Append(one)
			}
			arg("remove", remove)
		}
		for _, a := range []struct{ key, value, or string }{{"user", f.User, user}, {"group", f.Group, group}, {"mode", f.Mode, ""}} {
			if a.value == "" {
				a.value = a.or
			}
			if a.value != "" {
				arg(a.key, a.value)
			}
		}
		arg("makedirs", true)
		if f.Secret {
			arg("show_changes", false)
		}
		doc.SetStr(f.Declared, py.NewDict("corpus.file", args))
	}
	text, err := saltyaml.Dump(doc, saltyaml.DumpOptions{KeepOrder: true, Strict: true})
	if err != nil {
		return "", fault.New(fault.Failed, "", "the files of cfg: %w", err)
	}
	return "#!yaml\n" + text, nil
}

// Root returns the file root with the text.
func Root(text string) fileroot.Root {
	return fileroot.Root{FS: single{Name + ".sls", text}, Mount: mount}
}

// single is a file system with one file.
type single struct{ name, text string }

// Open implements fs.FS.
func (s single) Open(name string) (fs.File, error) {
	if name != s.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &opened{single: s, rest: strings.NewReader(s.text)}, nil
}

// opened is the file.
type opened struct {
	single
	rest *strings.Reader
}

func (o *opened) Stat() (fs.FileInfo, error) { return o, nil }
func (o *opened) Read(b []byte) (int, error) { return o.rest.Read(b) }
func (o *opened) Close() error               { return nil }
func (o *opened) Name() string               { return o.name }
func (o *opened) Size() int64                { return int64(len(o.text)) }
func (o *opened) Mode() fs.FileMode          { return 0o400 }
func (o *opened) ModTime() time.Time         { return time.Time{} }
func (o *opened) IsDir() bool                { return false }
func (o *opened) Sys() any                   { return nil }
