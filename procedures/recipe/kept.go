package recipe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
)

// What is kept: of how many projects, and how large their copies are.
const (
	maxKept      = 16
	maxKeptFiles = 200
	maxKeptBytes = 1 << 20
)

// Kept keeps the private copies of deployments that ended, one for each project, for its next deployment. It is used again only if the commit has the same files, byte by
// byte, and if nothing in it was changed since it was made, by a step that ran with the server's rights. What is kept is known only in memory: after a crash the next
// start removes it with the other copies, and Close when the server stops. A nil Kept keeps nothing.
type Kept struct {
	State layout.State

	mu    sync.Mutex
	used  map[string]*kept // by the folder of a deployment
	rests map[project.Name]*kept
}

// kept is a copy as it was made.
type kept struct {
	of   project.Name
	name string                 // of its folder
	at   map[string]unix.Stat_t // what is at each path, "." included
}

// Copy is Copy for a deployment of a project, into the folder to.
func (k *Kept) Copy(ctx context.Context, name project.Name, from fs.FS, to, live string) (*Recipe, error) {
	if k == nil || from == nil {
		return Copy(ctx, from, to, live)
	}
	if c := k.take(name, filepath.Dir(to)); c != nil {
		if c.same(ctx, from, to) {
			return &Recipe{dir: to, live: live}, nil
		}
		k.drop(filepath.Dir(to))
		if err := os.RemoveAll(filepath.Dir(to)); err != nil {
			return nil, fault.New(fault.Internal, "copy "+layout.SaltDir, "%w", err)
		}
	}
	r, err := Copy(ctx, from, to, live)
	if err == nil && r != nil {
		if c := look(name, to); c != nil {
			k.use(filepath.Dir(to), c)
		}
	}
	return r, err
}

// take moves what is kept of a project to the folder of a deployment; nil if there is none.
func (k *Kept) take(name project.Name, to string) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.rests[name]
	delete(k.rests, name)
	if c == nil || os.Rename(k.State.KeptRecipe(name.String()), to) != nil {
		return nil
	}
	k.put(to, c)
	return c
}

func (k *Kept) use(dir string, c *kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(dir, c)
}

func (k *Kept) put(dir string, c *kept) {
	if k.used == nil {
		k.used = map[string]*kept{}
	}
	k.used[dir] = c
}

// drop forgets the copy in the folder of a deployment, and returns it; nil if none may be kept.
func (k *Kept) drop(dir string) *kept {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.used[dir]
	delete(k.used, dir)
	return c
}

// Keep is Drop, except that what the deployment brought may stay for the next one of its project.
func (k *Kept) Keep(id project.ID) error {
	dir := k.State.RecipesOf(string(id))
	c := k.drop(dir)
	if c == nil || c.alone(dir) != nil {
		return Drop(k.State, id)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rests[c.of] != nil || os.Rename(dir, k.State.KeptRecipe(c.of.String())) != nil {
		return Drop(k.State, id)
	}
	if k.rests == nil {
		k.rests = map[project.Name]*kept{}
	}
	for other := range k.rests {
		if len(k.rests) < maxKept {
			break
		}
		delete(k.rests, other)
		_ = os.RemoveAll(k.State.KeptRecipe(other.String())) // the next start does
	}
	k.rests[c.of] = c
	return nil
}

// Drop removes the private copies of a deployment.
func (k *Kept) Drop(id project.ID) error {
	k.drop(k.State.RecipesOf(string(id)))
	return Drop(k.State, id)
}

// Forget removes what is kept of a project.
func (k *Kept) Forget(name project.Name) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.rests, name)
	return os.RemoveAll(k.State.KeptRecipe(name.String()))
}

// Close removes what is kept. What can't be removed the next start removes.
func (k *Kept) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range k.rests {
		_ = os.RemoveAll(k.State.KeptRecipe(name.String()))
	}
	k.rests = nil
}

// look notes what is in a copy that was just made; nil if it is not one to keep: it is large, or has anything but files and folders.
func look(of project.Name, dir string) *kept {
	c := &kept{of: of, name: filepath.Base(dir), at: map[string]unix.Stat_t{}}
	bytes := int64(0)
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(p, &st)
		}
		if err != nil {
			return err
		}
		if e.Type().IsRegular() {
			bytes += st.Size
		}
		if !e.IsDir() && !e.Type().IsRegular() || len(c.at) > maxKeptFiles || bytes > maxKeptBytes {
			return fs.ErrInvalid
		}
		p, err = filepath.Rel(dir, p)
		c.at[p] = st
		return err
	})
	if err != nil {
		return nil
	}
	return c
}

// alone removes what else is in the folder of its deployment.
func (c *kept) alone(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if err == nil && e.Name() != c.name {
			err = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	return err
}

// same reports whether a copy of these files would be as the one in dir, which is as it was made.
func (c *kept) same(ctx context.Context, from fs.FS, dir string) bool {
	seen := 0
	return c.folder(ctx, from, dir, ".", &seen) == nil && seen == len(c.at)
}

// errDiffers ends a comparison.
var errDiffers = errors.New("differs")

func (c *kept) folder(ctx context.Context, from fs.FS, dir, name string, seen *int) error {
	*seen++
	entries, err := fs.ReadDir(from, name)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	names, err := c.names(filepath.Join(dir, name), name)
	if err != nil || names != len(entries) { // a name of its own is missing among the files
		return errors.Join(err, errDiffers)
	}
	for _, e := range entries {
		p := path.Join(name, e.Name())
		switch at, ok := c.at[p]; {
		case ok && e.IsDir() && at.Mode&unix.S_IFMT == unix.S_IFDIR:
			err = c.folder(ctx, from, dir, p, seen)
		case ok && e.Type().IsRegular() && at.Mode&unix.S_IFMT == unix.S_IFREG:
			*seen++
			err = c.file(from, dir, p)
		default:
			err = errDiffers
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// names counts the entries of a folder that is as it was made. They are read, since the times of a file system may be as coarse as some milliseconds.
func (c *kept) names(dir, name string) (int, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = d.Close() }() // it was only read
	if err := c.untouched(int(d.Fd()), name); err != nil {
		return 0, err
	}
	names, err := d.Readdirnames(-1)
	return len(names), err
}

// file compares a file with its copy.
func (c *kept) file(from fs.FS, dir, name string) error {
	r, err := from.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	st, err := r.Stat()
	if err != nil {
		return err
	}
	at := c.at[name]
	if st.Size() != at.Size || modeOf(st.Mode()) != fs.FileMode(at.Mode&0o7777) {
		return errDiffers
	}
	w, err := unix.Open(filepath.Join(dir, name), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(w) }()
	if err := c.untouched(w, name); err != nil || !vfs.Unwritten(w) { // by a process that a step left behind
		return errors.Join(err, errDiffers)
	}
	want := make([]byte, at.Size)
	if _, err := io.ReadFull(r, want); err != nil {
		return err
	}
	have := make([]byte, at.Size+1)
	n, err := unix.Read(w, have)
	if err != nil || !bytes.Equal(have[:max(n, 0)], want) {
		return errors.Join(err, errDiffers)
	}
	return nil
}

// untouched is nil if what is open is what was made, and neither its content nor anything about it was changed since.
func (c *kept) untouched(fd int, name string) error {
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return err
	}
	was := c.at[name]
	now.Atim = was.Atim // reading it
	if now != was {
		return errDiffers
	}
	return nil
}
