// Package others provides the recipes of other projects to deployments whose files include them.
//
// It owns the private copies of what is live in those projects, each made on first use below a folder that its caller owns and removes. It never reads a working copy.
package others

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/procedures/recipe"
	"corpus-git/procedures/resume"
	"corpus-git/project"
	"corpus-git/sls/fileroot"
)

// other is the recipe of another project as a file system: a private copy of the commit that is live there, made on first use. Its working
// copy is never read: an included file runs with the rights of this deployment, and that project's user can write to the working copy. A
// project without commits, or one that never went live, provides nothing to include.
type other struct {
	ctx  context.Context //nolint:containedctx // of the preparation, without its end: an fs.FS has none
	from Source
	name project.Name
	dir  string

	mu     sync.Mutex
	loaded bool
	closed bool
	files  fs.FS
	err    error
}

// Source provides the projects.
type Source struct {
	Root layout.Root
	// Live returns the commit of a project's newest live deployment, "" if there is none; nil means that no project has one.
	Live func(context.Context, project.Name) (project.Commit, error)
	// Tree returns the files of a commit of a project's code.
	Tree func(context.Context, project.Name, project.Commit) (fs.FS, error)
}

// Roots returns the file roots of all other projects that are linked into salt://, for a deployment of own whose private copies are below dir.
func (f Source) Roots(ctx context.Context, own project.Name, dir string) (fileroot.Roots, error) {
	entries, err := os.ReadDir(filepath.Join(f.Root.Salt(), layout.ProjectsNamespace))
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
			FS:    &other{ctx: context.WithoutCancel(ctx), from: f, name: name, dir: filepath.Join(dir, name.String())},
			Mount: layout.ProjectsNamespace + "/" + name.String(), Foreign: true,
		})
	}
	return out, nil
}

// Open implements fs.FS.
func (o *other) Open(name string) (fs.File, error) {
	files, err := o.once()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return files.Open(name)
}

// once copies the recipe at the first call.
func (o *other) once() (fs.FS, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.loaded && o.closed {
		return nil, fault.New(fault.Refused, "", "the plan that was approved has no file of %s", o.name)
	}
	if !o.loaded {
		o.loaded = true
		o.files, o.err = o.load()
	}
	return o.files, o.err
}

// load copies the recipe.
func (o *other) load() (fs.FS, error) {
	if o.from.Live == nil {
		return Nothing{}, nil
	}
	commit, err := o.from.Live(o.ctx, o.name)
	if err != nil || commit == "" {
		return Nothing{}, err
	}
	ctx, done := context.WithCancel(o.ctx)
	defer done()
	code, err := o.from.Tree(ctx, o.name, commit)
	if err != nil {
		return nil, err
	}
	files, err := recipe.In(code)
	if err != nil {
		return nil, err
	}
	r, err := recipe.Copy(ctx, files, o.dir, o.from.Root.Project(o.name.String()).Salt())
	if err != nil || r == nil {
		return Nothing{}, err
	}
	return r.Files()
}

// Used returns the roots of others whose files were read.
func Used(roots fileroot.Roots) (out fileroot.Roots) {
	for _, r := range roots {
		o, ok := r.FS.(*other)
		if !ok {
			continue
		}
		o.mu.Lock()
		if o.loaded && o.err == nil {
			out = append(out, fileroot.Root{FS: o.files, Mount: r.Mount})
		}
		o.mu.Unlock()
	}
	return out
}

// Read reads the recipes of the projects that are mentioned in some texts, as makina-projects/NAME or makina-projects.NAME.
func Read(roots fileroot.Roots, texts []string) error {
	for _, r := range roots {
		o, ok := r.FS.(*other)
		if !ok || !slices.ContainsFunc(texts, o.mentioned) {
			continue
		}
		if _, err := o.once(); err != nil {
			return err
		}
	}
	return nil
}

func (o *other) mentioned(text string) bool {
	return strings.Contains(text, layout.ProjectsNamespace+"/"+o.name.String()) || strings.Contains(text, layout.ProjectsNamespace+"."+o.name.String())
}

// Digests reads the recipes that are mentioned in some texts (see Read), and those of the given mounts, and returns the mount and the digest of each
// recipe that was read so far.
func Digests(roots fileroot.Roots, texts, mounts []string) (out []string, err error) {
	if err := Read(roots, texts); err != nil {
		return nil, err
	}
	for _, r := range roots {
		if o, ok := r.FS.(*other); ok && slices.Contains(mounts, r.Mount) {
			if _, err := o.once(); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range Used(roots) {
		if _, nothing := r.FS.(Nothing); nothing {
			continue
		}
		sum, err := resume.Files(r.FS)
		if err != nil {
			return nil, err
		}
		out = append(out, r.Mount+" "+sum)
	}
	return out, nil
}

// Changed names the recipes that are no longer as Digests returned them.
func Changed(roots fileroot.Roots, was []string) (differs []string, err error) {
	mounts := make([]string, len(was))
	for i, o := range was {
		mounts[i], _, _ = strings.Cut(o, " ")
	}
	now, err := Digests(roots, nil, mounts)
	for i, o := range was {
		if !slices.Contains(now, o) {
			differs = append(differs, "the recipe of another project has changed: "+mounts[i])
		}
	}
	return differs, err
}

// Close refuses from now on the recipes of roots that have not been read yet.
func Close(roots fileroot.Roots) {
	for _, r := range roots {
		if o, ok := r.FS.(*other); ok {
			o.mu.Lock()
			o.closed = true
			o.mu.Unlock()
		}
	}
}

// Nothing is a file system without files.
type Nothing struct{}

// Open implements fs.FS.
func (Nothing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
