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

// all is the note that every project must be examined. It is not a valid name of a project.
const all = "*"

// Markers are in-progress markers, one file for each project. A nil Markers keeps none.
type Markers struct {
	dir string
	fs  vfs.FS

	mu sync.Mutex
	// held are the projects with work in progress; left those with a note of the state's last owner.
	held map[project.Name]*note
	left map[project.Name]bool
	full bool
}

// note is the note of one project while it is held.
type note struct {
	users int
	// mu is held while the file is created: a second Begin also waits until it is durable.
	mu   sync.Mutex
	made bool
}

// Open reads the notes that the last owner of the state left in dir, which is created if it is missing. A nil FS means the machine's.
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

// first creates the folder together with the note that all projects must be examined, without which it must not exist.
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

// write creates an empty file whose name is durable on return. The file needs no sync: it has no content, and a name is never durable
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

// Begin records that work begins in a project that a crash would leave incomplete. The note is durable on return, and stays until end has been
// called for each Begin; calling end again does nothing. If Begin fails, the work must not begin.
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

// end removes a holder; with the last one it removes the file, unless earlier work is not recovered yet. A concurrent Begin waits for b.mu,
// and creates the file again.
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

// remove removes a note. A note that stays behind only makes the next start examine the project.
func (b *Markers) remove(path string) { _ = b.fs.Remove(path) }

// Pending returns what must be examined before anything else is done: the projects with work in progress when the state's last owner ended, in
// no order. full reports that it may be any project: there were no notes, or a full examination did not finish.
func (b *Markers) Pending() (names []project.Name, full bool) {
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

// MarkRecovered removes a project of Pending that was recovered.
func (b *Markers) MarkRecovered(name project.Name) {
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

// MarkUnrecovered records that a project could not be recovered: the next start tries again. Durable on return.
func (b *Markers) MarkUnrecovered(name project.Name) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	b.left[name] = true
	b.mu.Unlock()
	return b.write(b.path(name))
}

// MarkAllRecovered ends the recovery: every project was examined. Those of MarkUnrecovered stay.
func (b *Markers) MarkAllRecovered() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.full = false
	b.remove(filepath.Join(b.dir, all))
}
