package procedures

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/sls/fileroot"
)

// other is the recipe of another project as a file system: a private copy of the commit that is live there, made when something of it is
// first asked for. Its working copy is never read: what an include names there would run with the rights of this deployment, and that
// project's user can write it. A project without commits has nothing to include, nor has one that never was live.
type other struct {
	ctx   context.Context // of the preparation, without its end
	tools *Tools
	name  project.Name
	dir   string

	once  sync.Once
	files fs.FS
	err   error
}

// others are the file roots of all other projects that are linked into salt://, for a deployment whose private copies lie below dir.
func (t *Tools) others(ctx context.Context, own project.Name, dir string) (fileroot.Roots, error) {
	entries, err := os.ReadDir(filepath.Join(t.Root.Salt(), layout.ProjectsNamespace))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "read the links of projects", "%w", err)
	}
	var out fileroot.Roots
	for _, e := range entries {
		name, err := project.ParseName(e.Name())
		if err != nil || name == own || e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		out = append(out, fileroot.Root{
			FS:    &other{ctx: context.WithoutCancel(ctx), tools: t, name: name, dir: filepath.Join(dir, name.String())},
			Mount: layout.ProjectsNamespace + "/" + name.String(), Foreign: true,
		})
	}
	return out, nil
}

// Open implements fs.FS.
func (o *other) Open(name string) (fs.File, error) {
	o.once.Do(func() { o.files, o.err = o.load() })
	if o.err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: o.err}
	}
	return o.files.Open(name)
}

// load copies the recipe.
func (o *other) load() (fs.FS, error) {
	if o.tools.Live == nil {
		return nothing{}, nil
	}
	commit, err := o.tools.Live(o.ctx, o.name)
	if err != nil || commit == "" {
		return nothing{}, err
	}
	ctx, done := context.WithCancel(o.ctx)
	defer done()
	code, err := o.tools.Repository(o.name, project.Code).Tree(ctx, commit, nil)
	if err != nil {
		return nil, err
	}
	files, err := recipe.In(code)
	if err != nil {
		return nil, err
	}
	r, err := recipe.Copy(ctx, files, o.dir, o.tools.Root.Project(o.name.String()).Salt())
	if err != nil || r == nil {
		return nothing{}, err
	}
	return r.Files()
}
