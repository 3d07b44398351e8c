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
	"strconv"
	"strings"
	"sync"
	"syscall"

	"corpus-git/internal/vfs"
)

// Commands runs a program and gives its exit status and both its streams. The error tells that it did not run.
type Commands func(ctx context.Context, argv []string, stdin string) (status int, output string, err error)

// Machine is what is changed.
type Machine struct {
	FS vfs.FS
	// Run is for actions.
	Run Commands
	// Boot is another text after each start of the machine (/proc/sys/kernel/random/boot_id). What a file holds after a power cut is
	// nobody's change, but what was not written yet.
	Boot string
}

// Log is the undo log of one deployment while that runs. It is safe for use by several goroutines.
type Log struct {
	fs   vfs.FS
	dir  string
	run  Commands
	boot string
	// inside are real paths whose trees come back by other means.
	inside []string

	mu      sync.Mutex
	journal vfs.File
	size    int64 // of the journal
	seq     int
	state   State
	noted   map[string]*note
	touched []string
	acted   []record
	// listed is what Manual was told before there was a journal.
	listed []record
	// packages: see Packages.
	packages bool
}

// note is what the log has of a path.
type note struct {
	seq   int
	saved bool // its content, where it is a file
	after bool // what a state left there
}

// New is the log of a deployment, in a folder that is made with the first change that is noted, and so is its parent. Changes
// below the paths inside are not noted. A nil *Log notes nothing.
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

// UndoPackages says that packages which states install and remove are to be undone.
func (l *Log) UndoPackages() { l.packages = true }

// Packages reports whether packages that states install and remove are to be undone; a nil *Log notes nothing.
func (l *Log) Packages() bool { return l != nil && l.packages }

// create makes the folder and the journal. It is durable on return.
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
	// Numbers only tell records apart.
	err = l.append(append([]record{{Seq: l.seq, Kind: kindBoot, What: l.boot}}, l.listed...), true)
	l.listed = nil
	if err == nil {
		err = vfs.SyncDir(l.fs, l.dir)
	}
	if err == nil {
		err = vfs.SyncParents(l.fs, l.dir, filepath.Dir(l.dir))
	}
	return err
}

// Empty reports whether nothing was noted.
func (l *Log) Empty() bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.journal == nil
}

// Close gives the journal back. The folder stays.
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

// Enter names the state whose changes follow.
func (l *Log) Enter(s State) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
}

// Before notes what stands at a path, with its content, before a state changes it; folders above that are missing are noted
// as missing. It is durable on return; where it fails, the state must not go on. A path that was noted before stays as noted.
func (l *Log) Before(path string) error { return l.before(path, true, false) }

// BeforeAttributes is Before for a change of owner, mode, times and attributes only: a file's content is not copied.
func (l *Log) BeforeAttributes(path string) error { return l.before(path, false, false) }

// BeforeTree is Before for a path and all below it.
func (l *Log) BeforeTree(path string) error { return l.before(path, true, true) }

// BeforeWhole is Before for a folder that is missing or empty, and of which all that comes to be in it belongs to the state: a clone, a virtual
// environment. It reports whether it noted that; what is not empty cannot be noted so.
func (l *Log) BeforeWhole(path string) (bool, error) {
	if l == nil {
		return true, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	path, err := resolveParent(l.fs, path)
	if err != nil {
		return false, fmt.Errorf("note %s for the undo log: %w", path, err)
	}
	if l.isInside(path) {
		return true, nil
	}
	n, err := l.look(path)
	if err == nil && n.Type != absent {
		names, lerr := l.fs.ReadDir(path)
		if n.Type != folder || lerr != nil || len(names) > 0 {
			return false, nil
		}
	}
	recs, err := l.collect(path, true, false)
	if err == nil && len(recs) > 0 && recs[len(recs)-1].Path == text(path) && recs[len(recs)-1].Node != nil {
		recs[len(recs)-1].Node.Whole = true
	}
	if err == nil {
		err = l.append(recs, true)
	}
	if err != nil {
		l.unnote(recs)
		return false, fmt.Errorf("note %s for the undo log: %w", path, err)
	}
	return true, nil
}

func (l *Log) before(path string, content, tree bool) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	path, err := resolveParent(l.fs, path)
	if err != nil {
		return fmt.Errorf("note %s for the undo log: %w", path, err)
	}
	if l.isInside(path) {
		return nil
	}
	recs, err := l.collect(path, content, tree)
	if err == nil {
		err = l.append(recs, true)
	}
	if err != nil {
		l.unnote(recs)
		return fmt.Errorf("note %s for the undo log: %w", path, err)
	}
	return nil
}

// Inside reports whether changes at a path are not noted, as they lie in a tree that comes back by other means; on a nil *Log all do.
func (l *Log) Inside(path string) bool {
	if l == nil {
		return true
	}
	path, err := resolveParent(l.fs, path)
	return err == nil && l.isInside(path)
}

func (l *Log) isInside(path string) bool {
	return slices.ContainsFunc(l.inside, func(in string) bool { return path == in || strings.HasPrefix(path, in+"/") })
}

// collect gives the records of a path, of the missing folders above it, and of what is below it.
func (l *Log) collect(path string, content, tree bool) ([]record, error) {
	var recs []record
	above := path
	var missing []string
	for above = filepath.Dir(above); above != "/"; above = filepath.Dir(above) {
		there, err := vfs.Exists(l.fs, above)
		if err != nil {
			return nil, err
		}
		if there {
			break
		}
		missing = append(missing, above)
	}
	slices.Reverse(missing)
	if len(missing) > 0 {
		for _, p := range append(missing, path) {
			l.touched = append(l.touched, p)
			if l.noted[p] == nil {
				recs = append(recs, l.record(p, Node{Type: absent}))
			}
			recs = l.again(recs, p)
		}
		return recs, nil
	}
	dir, err := openDir(l.fs, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return l.walk(recs, dir, filepath.Base(path), path, content, tree)
}

// walk adds the records of a name in an open folder.
func (l *Log) walk(recs []record, dir vfs.Dir, name, path string, content, tree bool) ([]record, error) {
	n, err := inspect(dir, name, false)
	if err != nil {
		return recs, err
	}
	old := l.noted[path]
	if old == nil || content && !old.saved && n.Type == file {
		if content && n.Type == file {
			if n, err = l.save(dir, name, n); err != nil {
				return recs, err
			}
		}
		recs = append(recs, l.record(path, n))
	}
	l.touched = append(l.touched, path)
	recs = l.again(recs, path)
	if !tree || n.Type != folder {
		return recs, nil
	}
	sub, err := dir.OpenDir(name)
	if err != nil {
		return recs, err
	}
	defer sub.Close()
	names, err := sub.ReadDir(".")
	if err != nil {
		return recs, err
	}
	for _, c := range names {
		if p := filepath.Join(path, c); !l.isInside(p) {
			if recs, err = l.walk(recs, sub, c, p, content, tree); err != nil {
				return recs, err
			}
		}
	}
	return recs, nil
}

// record gives a node the next number.
func (l *Log) record(path string, n Node) record {
	l.seq++
	if old := l.noted[path]; old == nil {
		l.noted[path] = &note{seq: l.seq, saved: n.Saved != "" || n.Type != file}
	} else {
		old.saved = true
	}
	return record{Seq: l.seq, Kind: kindBefore, State: l.state, Path: text(path), Node: &n}
}

// unnote forgets records that did not come into the journal: what the next state changes there is noted then.
func (l *Log) unnote(recs []record) {
	for _, r := range recs {
		if r.Kind != kindBefore {
			continue
		}
		switch n := l.noted[string(r.Path)]; {
		case n == nil:
		case n.seq == r.Seq:
			delete(l.noted, string(r.Path))
		default: // its attributes had been noted before
			n.saved = false
		}
	}
	l.touched = slices.DeleteFunc(l.touched, func(p string) bool { return l.noted[p] == nil })
}

// again takes back what was said of a path after an earlier state: it is about to change once more.
func (l *Log) again(recs []record, path string) []record {
	n := l.noted[path]
	if !n.after {
		return recs
	}
	n.after = false
	l.seq++
	return append(recs, record{Seq: l.seq, Kind: kindAgain, Of: n.seq})
}

// maxHoles bounds what of a file that is kept takes no room, in bytes: it is read as the rest is, and nothing but this keeps its owner from making it
// terabytes long.
const maxHoles = 8 << 30

// save copies a file's content into the log; shared extents where the file system can.
func (l *Log) save(dir vfs.Dir, name string, n Node) (Node, error) {
	src, err := dir.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return n, err
	}
	defer src.Close()
	// The folder may be another user's: what was inspected, and what is kept with its owner and mode, is one file.
	if st, err := src.Stat(); err != nil || !st.IsRegular() || st.Ino != n.Ino || st.UID != n.UID || st.GID != n.GID || st.Mode != n.Mode {
		return n, errors.Join(errors.New("it was replaced while it was read"), err)
	}
	if st, err := src.Stat(); err != nil || st.Size-st.Blocks*512 > maxHoles {
		return n, errors.Join(fmt.Errorf("%d bytes of it are holes, which are too many to be kept", st.Size-st.Blocks*512), err)
	}
	if l.journal == nil {
		if err := l.create(); err != nil {
			return n, err
		}
	}
	n.Saved = strconv.Itoa(l.seq + 1)
	to := filepath.Join(l.dir, filesDir, n.Saved)
	dst, err := l.fs.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return n, err
	}
	n.Size, err = dst.CopyFrom(src)
	if err == nil {
		_, err = dst.Seek(0, 0)
	}
	if err == nil {
		n.Sum, err = sumOf(dst)
	}
	if err == nil {
		err = dst.Sync()
	}
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = vfs.SyncDir(l.fs, filepath.Join(l.dir, filesDir))
	}
	return n, err
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
		// A record that was cut short is the last one: the next takes its place.
		_, serr := l.journal.Seek(l.size, io.SeekStart)
		return errors.Join(err, l.journal.Truncate(l.size), serr)
	}
	l.size += int64(len(lines))
	if sync {
		return l.journal.Sync()
	}
	return nil
}

// Action is a change that is no file: how to see it, and how to take it back.
type Action struct {
	// Noun and Name say what was changed: crontab, www-data.
	Noun string `json:"noun"`
	Name string `json:"name"`
	// Probe prints the state of it; what it prints and its exit status are compared. Empty: it cannot be seen, and is undone always.
	Probe []string `json:"probe,omitempty"`
	// Before is what Probe answered before the change; Note fills it in.
	Before string `json:"before,omitempty"`
	// Last actions come after everything else is back, each once, in the order in which they were noted first, whatever Probe says: a
	// service is restarted so that it runs what is back.
	Last bool `json:"last,omitempty"`
	// Undo takes the change back, with Stdin as its input. It must be harmless where the change was not made.
	Undo  []string `json:"undo"`
	Stdin string   `json:"stdin,omitempty"`
}

// BeforeAction notes a change that is no file before it is made. It is durable on return.
func (l *Log) BeforeAction(ctx context.Context, a Action) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(a.Probe) > 0 {
		var err error
		if a.Before, err = l.probe(ctx, a); err != nil {
			return fmt.Errorf("note %s %s for the undo log: %w", a.Noun, a.Name, err)
		}
	}
	l.seq++
	r := record{Seq: l.seq, Kind: kindAction, State: l.state, Action: &a}
	l.acted = append(l.acted, r)
	if err := l.append([]record{r}, true); err != nil {
		return fmt.Errorf("note %s %s for the undo log: %w", a.Noun, a.Name, err)
	}
	return nil
}

func (l *Log) probe(ctx context.Context, a Action) (string, error) { return answer(ctx, l.run, a) }

func answer(ctx context.Context, run Commands, a Action) (string, error) {
	status, out, err := run(ctx, a.Probe, "")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(status) + "\n" + out, nil
}

// Manual notes a change that cannot be undone by itself: Undo lists it. It is not durable, and makes no log where nothing else does:
// Listed has it then.
func (l *Log) Manual(what string) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	r := record{Seq: l.seq, Kind: kindManual, State: l.state, What: what}
	if l.journal == nil {
		if len(l.listed) < maxListed {
			l.listed = append(l.listed, r)
		}
		return nil
	}
	return l.append([]record{r}, false)
}

// maxListed bounds what is remembered of what cannot be undone.
const maxListed = 1000

// Listed are the changes that cannot be undone by themselves, the last first, where nothing else was noted.
func (l *Log) Listed() []Item {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Item
	for _, r := range l.listed {
		out = append(out, Item{Name: r.What, State: r.State})
	}
	slices.Reverse(out)
	return out
}

// After looks what the state left at what was noted since the last call. Where it is lost in a crash, what stands there then
// counts as what the state left.
func (l *Log) After(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var recs []record
	slices.Sort(l.touched)
	for _, p := range slices.Compact(l.touched) {
		n, err := l.look(p)
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

func (l *Log) look(path string) (Node, error) {
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
