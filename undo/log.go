package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"corpus-git/internal/vfs"
)

// Commands runs a program and returns its exit status and both its streams. The error reports that it did not run.
type Commands func(ctx context.Context, argv []string, stdin string) (status int, output string, err error)

// Machine is what is changed.
type Machine struct {
	FS vfs.FS
	// Run is for actions.
	Run Commands
	// Boot differs after each start of the machine (/proc/sys/kernel/random/boot_id). After a power cut a file may lack writes, which is
	// not a change by someone else.
	Boot string
}

// Log is the undo log of one running deployment. It is safe for use by several goroutines.
type Log struct {
	fs   vfs.FS
	dir  string
	run  Commands
	boot string
	// inside are real paths whose trees are restored by other means.
	inside []string

	mu      sync.Mutex
	journal vfs.File
	size    int64 // of the journal
	seq     int
	state   State
	noted   map[string]*note
	touched []string
	acted   []record
	// listed is what Manual recorded before there was a journal.
	listed []record
	// packages: see Packages.
	packages bool
}

// note is what the log has for a path.
type note struct {
	seq   int
	saved bool // its content, if it is a file
	after bool // what a state left there
}

// New returns the log of a deployment, in a folder that is created with the first recorded change, as is its parent. Changes below the paths
// in inside are not recorded. A nil *Log records nothing.
func New(m Machine, dir string, inside ...string) (*Log, error) {
	l := &Log{fs: m.FS, dir: dir, run: m.Run, boot: m.Boot, noted: map[string]*note{}}
	for _, p := range inside {
		real, err := resolve(m.FS, p)
		if err != nil {
			return nil, err
		}
		l.inside = append(l.inside, real)
	}
	return l, nil
}

// UndoPackages makes the log record packages that states install and remove.
func (l *Log) UndoPackages() { l.packages = true }

// Packages reports whether packages that states install and remove are recorded; a nil *Log records nothing.
func (l *Log) Packages() bool { return l != nil && l.packages }

// create creates the folder and the journal, whose names are durable on return. Its first record becomes durable with the next.
func (l *Log) create() error {
	for _, dir := range []string{filepath.Dir(l.dir), l.dir, filepath.Join(l.dir, filesDir)} {
		if err := l.fs.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	j, err := l.fs.OpenFile(filepath.Join(l.dir, journalFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	l.journal = j
	l.seq++
	// Numbers only distinguish records.
	err = l.append(append([]record{{Seq: l.seq, Kind: kindBoot, What: l.boot}}, l.listed...), false)
	l.listed = nil
	if err == nil {
		err = vfs.SyncDir(l.fs, l.dir)
	}
	if err == nil {
		err = vfs.SyncParents(l.fs, l.dir, filepath.Dir(l.dir))
	}
	return err
}

// Empty reports whether nothing was recorded.
func (l *Log) Empty() bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.journal == nil
}

// Close closes the journal. The folder stays.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.journal == nil {
		return nil
	}
	err := l.journal.Close()
	l.journal = nil
	return err
}

// Enter sets the state whose changes follow.
func (l *Log) Enter(s State) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
}

// append writes records; sync makes them durable.
func (l *Log) append(recs []record, sync bool) error {
	if len(recs) == 0 {
		return nil
	}
	if l.journal == nil {
		if err := l.create(); err != nil {
			return err
		}
	}
	var lines []byte
	for _, r := range recs {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if _, err := l.journal.Write(lines); err != nil {
		// An incomplete record is the last one: the next overwrites it.
		_, serr := l.journal.Seek(l.size, io.SeekStart)
		return errors.Join(err, l.journal.Truncate(l.size), serr)
	}
	l.size += int64(len(lines))
	if sync {
		return l.journal.Sync()
	}
	return nil
}

// After records the results of a state at the paths recorded since the last call. If it is lost in a crash, the present content counts
// as the state's result.
func (l *Log) After(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var recs []record
	slices.Sort(l.touched)
	for _, p := range slices.Compact(l.touched) {
		n, err := l.inspect(p)
		if err != nil {
			return fmt.Errorf("look at %s for the undo log: %w", p, err)
		}
		l.seq++
		l.noted[p].after = true
		recs = append(recs, record{Seq: l.seq, Kind: kindAfter, Of: l.noted[p].seq, Path: text(p), Node: &n})
	}
	l.touched = nil
	for _, r := range l.acted {
		if len(r.Action.Probe) == 0 {
			continue
		}
		out, err := l.probe(ctx, *r.Action)
		if err != nil {
			return fmt.Errorf("look at %s %s for the undo log: %w", r.Action.Noun, r.Action.Name, err)
		}
		l.seq++
		recs = append(recs, record{Seq: l.seq, Kind: kindActed, Of: r.Seq, Output: &out})
	}
	l.acted = nil
	return l.append(recs, false)
}

func (l *Log) inspect(path string) (Node, error) {
	dir, err := openDir(l.fs, filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return Node{Type: absent}, nil
	}
	if err != nil {
		return Node{}, err
	}
	defer dir.Close()
	return inspect(dir, filepath.Base(path), true)
}
