package underway

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// all is the note that every project is to be looked at. It is no project's name.
const all = "*"

// Markers are in-progress markers, one file for each project. A nil Markers keeps none.
type Markers struct {
	dir string
	fs  vfs.FS

	mu sync.Mutex
	// held are the projects in which something is under way; left those whose note the last owner of the state left.
	held map[project.Name]*note
	left map[project.Name]bool
	full bool
}

// note is that of one project while it is held.
type note struct {
	users int
	// mu is held while the file is made: who begins second waits until it is durable too.
	mu   sync.Mutex
	made bool
}

// Open reads what the last owner of the state left below dir, which is made where it is missing. A nil FS is the machine's.
func Open(dir string, f vfs.FS) (*Markers, error) {
	if f == nil {
		f = vfs.OS{}
	}
	b := &Markers{dir: dir, fs: f, held: map[project.Name]*note{}, left: map[project.Name]bool{}}
	names, err := f.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		b.full = true
		return b, b.first()
	}
	if err != nil {
		return nil, fmt.Errorf("notes of what is under way: %w", err)
	}
	for _, n := range names {
		if n == all {
			b.full = true
		} else if name, err := project.ParseName(n); err == nil {
			b.left[name] = true
		}
	}
	return b, nil
}

// first makes the folder. It must not be there without the note that all is to be looked at, so it comes with it.
func (b *Markers) first() error {
	tmp := b.dir + ".new"
	err := vfs.RemoveAll(b.fs, tmp) // a crash may have left it
	if err == nil {
		err = vfs.MkdirAll(b.fs, tmp, 0o700)
	}
	if err == nil {
		err = b.write(filepath.Join(tmp, all))
	}
	if err == nil {
		err = vfs.RenameDurable(b.fs, tmp, b.dir)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("notes of what is under way: %w", err), vfs.RemoveAll(b.fs, tmp))
	}
	return nil
}

// write makes an empty file whose name is durable on return. The file itself needs no sync: it has no content, and a name is never durable
// without its inode.
func (b *Markers) write(path string) error {
	f, err := b.fs.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return vfs.SyncDir(b.fs, filepath.Dir(path))
}

func (b *Markers) path(name project.Name) string { return filepath.Join(b.dir, string(name)) }

// Begin notes that something is about to be done in a project that a crash would leave half done. The note is durable on
// return, and stays until end is called by everybody who began: once each, more than once is once. Where it can't be
// made nothing may be done.
func (b *Markers) Begin(name project.Name) (end func(), err error) {
	if b == nil {
		return func() {}, nil
	}
	if _, err := project.ParseName(string(name)); err != nil {
		return nil, err
	}
	b.mu.Lock()
	n := b.held[name]
	if n == nil {
		n = &note{}
		b.held[name] = n
	}
	n.users++
	b.mu.Unlock()
	n.mu.Lock()
	if !n.made {
		err = b.write(b.path(name))
		n.made = err == nil
	}
	n.mu.Unlock()
	end = sync.OnceFunc(func() { b.end(name, n) })
	if err != nil {
		end()
		return nil, fmt.Errorf("note what is under way: %w", err)
	}
	return end, nil
}

// end lets one user go; with the last one goes the file, unless recovery has not seen to what was left before. Who begins
// anew meanwhile waits for b.mu, and makes it again.
func (b *Markers) end(name project.Name, n *note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n.users--; n.users > 0 {
		return
	}
	delete(b.held, name)
	if !b.left[name] {
		b.remove(b.path(name))
	}
}

// remove takes a note away. One that stays costs a look at the next start, and no more.
func (b *Markers) remove(path string) { _ = b.fs.Remove(path) }

// Left tells what is to be looked at before anything else is done: the projects in which something was under way when the last
// owner of the state ended, in no order. full tells that it may be any project: there were no notes, or a look at all of them did not end.
func (b *Markers) Left() (names []project.Name, full bool) {
	if b == nil {
		return nil, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range b.left {
		names = append(names, n)
	}
	return names, b.full
}

// Settled says that a project of Left has been seen to.
func (b *Markers) Settled(name project.Name) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.left[name] {
		return
	}
	delete(b.left, name)
	if b.held[name] == nil {
		b.remove(b.path(name))
	}
}

// Unsettled says that a project could not be seen to: the next start tries again. Durable on return.
func (b *Markers) Unsettled(name project.Name) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	b.left[name] = true
	b.mu.Unlock()
	return b.write(b.path(name))
}

// SettledAll says that every project was looked at, and those that could not be seen to are Unsettled.
func (b *Markers) SettledAll() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.full = false
	b.remove(filepath.Join(b.dir, all))
}
