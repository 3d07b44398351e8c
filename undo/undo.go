package undo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"corpus-git/internal/vfs"
)

// Item is one thing that was changed.
type Item struct {
	// Noun is file, folder, link, or that of an action; Name its path or name.
	Noun string `json:"noun,omitempty"`
	Name string `json:"name"`
	// State made the change.
	State State `json:"state,omitzero"`
	// Why says what kept it from being undone.
	Why string `json:"why,omitempty"`
}

// Report is what became of an undo log.
type Report struct {
	// Undone were brought back and proved by this call; Unchanged were as before already.
	Undone    []Item `json:"undone,omitempty"`
	Unchanged []Item `json:"unchanged,omitempty"`
	// Left were changed by somebody else since, and stay as they are.
	Left []Item `json:"left,omitempty"`
	// Failed could not be brought back.
	Failed []Item `json:"failed,omitempty"`
	// Manual cannot be undone by itself.
	Manual []Item `json:"manual,omitempty"`
}

// Whole reports whether everything is as it was, as far as it can be undone at all.
func (r Report) Whole() bool { return len(r.Left) == 0 && len(r.Failed) == 0 }

// Undo takes back what a log holds but its last actions, the last change first, and proves each. It goes on where something cannot be taken
// back. What is in the report as undone is durable, and so is that all of it was gone through: a later call changes nothing, and reports what
// could not be taken back and what is as before. The error tells that the log could not be read or written, or is ctx's cause. No log is
// nothing to undo.
func Undo(ctx context.Context, m Machine, dir string) (Report, error) {
	u, list, err := open(m, dir)
	if err != nil {
		return Report{}, err
	}
	if u.done != nil {
		return *u.done, nil
	}
	for _, c := range list {
		if c.last() {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return u.report, err
		}
		u.change(ctx, c)
	}
	if len(list) == 0 {
		return u.report, nil
	}
	return u.report, u.finish()
}

// Reverse is Undo of a deployment that went live, whose changes are all on the disk, since: a restart of the machine explains no
// difference. It is not noted that the log was gone through; to go through it again changes nothing. Before a path is changed into is told, which may be
// nil: what that notes, undone, makes the paths again what the deployment left.
func Reverse(ctx context.Context, m Machine, dir string, into *Log) (Report, error) {
	u, list, err := open(m, dir)
	if err != nil {
		return Report{}, err
	}
	u.cut, u.into = false, into
	for _, c := range list {
		if c.last() {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return u.report, err
		}
		u.change(ctx, c)
	}
	return u.report, into.After(ctx)
}

// Reversible reports whether a log holds a change that can be undone.
func Reversible(m Machine, dir string) (bool, error) {
	_, list, err := open(m, dir)
	return slices.ContainsFunc(list, func(c *change) bool { return c.Kind != kindManual && !c.last() }), err
}

// Last runs the last actions of logs, each once, in the order in which they were noted first. The error is as Undo's.
func Last(ctx context.Context, m Machine, dirs ...string) (Report, error) {
	var all Report
	seen := map[[2]string]bool{}
	for _, dir := range dirs {
		u, list, err := open(m, dir)
		if err != nil {
			return all, err
		}
		slices.Reverse(list)
		for _, c := range list {
			if !c.last() || seen[[2]string{c.Action.Noun, c.Action.Name}] {
				continue
			}
			seen[[2]string{c.Action.Noun, c.Action.Name}] = true
			if err := context.Cause(ctx); err != nil {
				return all, err
			}
			u.action(ctx, c)
		}
		all.Undone, all.Failed = append(all.Undone, u.report.Undone...), append(all.Failed, u.report.Failed...)
	}
	return all, nil
}

// HasLast reports whether a log has last actions.
func HasLast(m Machine, dir string) (bool, error) {
	_, list, err := open(m, dir)
	return slices.ContainsFunc(list, (*change).last), err
}

// open reads a log: its changes, the last first.
func open(m Machine, dir string) (*undoing, []*change, error) {
	recs, err := readRecords(m.FS, dir)
	if err != nil {
		return nil, nil, fmt.Errorf("undo log %s: %w", dir, err)
	}
	u := &undoing{fs: m.FS, dir: dir, run: m.Run, folders: map[string]*change{}}
	if len(recs) > 0 && recs[0].Kind == kindBoot {
		u.cut = recs[0].What != m.Boot
	}
	for _, r := range recs {
		if r.Kind == kindUndone {
			u.done = r.Report
		}
	}
	list := changesOf(recs)
	for _, c := range list {
		if c.Kind == kindBefore && c.Node.Type == folder {
			u.folders[string(c.Path)] = c
		}
	}
	return u, list, nil
}

// finish notes durably that the log was gone through, and what could not be taken back.
func (u *undoing) finish() error {
	rep := Report{Unchanged: slices.Concat(u.report.Undone, u.report.Unchanged), Left: u.report.Left, Failed: u.report.Failed, Manual: u.report.Manual}
	line, err := json.Marshal(record{Kind: kindUndone, Report: &rep})
	if err != nil {
		return err
	}
	path := filepath.Join(u.dir, journalFile)
	data, err := vfs.ReadFile(u.fs, path)
	if err == nil {
		// A last line that was cut short goes.
		err = vfs.WriteFileAtomic(u.fs, path, append(append(data[:bytes.LastIndexByte(data, '\n')+1], line...), '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("undo log %s: %w", u.dir, err)
	}
	return nil
}

// Drop removes a log; none is no error.
func Drop(f vfs.FS, dir string) error {
	if err := vfs.RemoveAll(f, dir); err != nil {
		return err
	}
	return vfs.SyncDir(f, filepath.Dir(dir))
}

// change is one thing to take back: what stood there at first, and what the last state left.
type change struct {
	record
	after  *Node
	output *string
	early  bool // undone already, for what lies below
}

// last reports whether it is an action that comes after everything else.
func (c *change) last() bool { return c.Kind == kindAction && c.Action.Last }

// changesOf joins the records of a journal, the last change first.
func changesOf(recs []record) []*change {
	var list []*change
	paths, seqs := map[text]*change{}, map[int]*change{}
	for _, r := range recs {
		switch r.Kind {
		case kindBefore:
			if c := paths[r.Path]; c != nil {
				// Attributes had been noted, the content came later.
				c.Node.Saved, c.Node.Sum, c.Node.Size = r.Node.Saved, r.Node.Sum, r.Node.Size
				continue
			}
			c := &change{record: r}
			paths[r.Path], seqs[r.Seq] = c, c
			list = append(list, c)
		case kindAction, kindManual:
			c := &change{record: r}
			seqs[r.Seq] = c
			list = append(list, c)
		case kindAfter:
			if c := seqs[r.Of]; c != nil {
				c.after = r.Node
			}
		case kindAgain:
			if c := seqs[r.Of]; c != nil {
				c.after = nil
			}
		case kindActed:
			if c := seqs[r.Of]; c != nil {
				c.output = r.Output
			}
		}
	}
	slices.Reverse(list)
	return list
}

// undoing is one run of Undo.
type undoing struct {
	fs  vfs.FS
	dir string
	run Commands
	cut bool // the machine started anew since
	// into is told of each path before it is changed.
	into *Log
	// done is what an earlier undoing came to that was not cut off.
	done *Report
	// folders are what was a folder, by path.
	folders map[string]*change
	report  Report
}

func (u *undoing) change(ctx context.Context, c *change) {
	switch c.Kind {
	case kindManual:
		u.report.Manual = append(u.report.Manual, Item{Name: c.What, State: c.State})
	case kindAction:
		u.action(ctx, c)
	default:
		u.path(c)
	}
}

func (u *undoing) path(c *change) {
	item := Item{Noun: c.Node.noun(), Name: string(c.Path), State: c.State}
	if c.Node.Type == absent && c.after != nil {
		item.Noun = c.after.noun()
	}
	now, err := u.look(string(c.Path))
	cleared := false
	if err == nil && c.Node.Whole && now.Type == folder {
		item.Noun = folder
		if err = u.into.BeforeTree(string(c.Path)); err == nil {
			cleared, err = u.clear(string(c.Path))
		}
	}
	switch {
	case err != nil:
		item.Why = err.Error()
		u.report.Failed = append(u.report.Failed, item)
		return
	case now.same(*c.Node) && c.early:
		return
	case now.same(*c.Node) && cleared:
		u.report.Undone = append(u.report.Undone, item)
		return
	case now.same(*c.Node) && (now.Type != file || now.Mtime == c.Node.Mtime):
		u.report.Unchanged = append(u.report.Unchanged, item)
		return
	case c.after != nil && !u.cut && now.Type != absent && !u.ours(c, now):
		item.Why = "it was changed since by somebody else"
		u.report.Left = append(u.report.Left, item)
		return
	}
	err = u.into.Before(string(c.Path))
	if err == nil {
		err = u.restore(string(c.Path), *c.Node, now)
	}
	if err != nil {
		if errors.Is(err, syscall.ENOTEMPTY) {
			item.Why = "it holds what no state made"
			u.report.Left = append(u.report.Left, item)
			return
		}
		item.Why = err.Error()
		u.report.Failed = append(u.report.Failed, item)
		return
	}
	if now, err = u.look(string(c.Path)); err != nil || !now.same(*c.Node) {
		item.Why = "it is not as it was before"
		if err != nil {
			item.Why = err.Error()
		}
		u.report.Failed = append(u.report.Failed, item)
		return
	}
	u.report.Undone = append(u.report.Undone, item)
}

// ours reports whether what stands there is what the state left, or what an undoing that was cut off made of it: attributes are changed one
// by one where they alone are undone.
func (u *undoing) ours(c *change, now Node) bool {
	inPlace := c.Node.Type == folder || c.Node.Type == file && c.Node.Saved == ""
	return now.same(*c.after) || now.Type == folder && c.after.Type == folder || now.sameContent(*c.Node) && (inPlace || now.sameAttributes(*c.Node))
}

// clear removes all that is in a folder, and reports whether there was anything.
func (u *undoing) clear(path string) (bool, error) {
	dir, err := openDir(u.fs, path)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	names, err := dir.ReadDir(".")
	for _, n := range names {
		if err == nil {
			err = vfs.RemoveAll(dir, n)
		}
	}
	if err == nil {
		err = vfs.SyncDir(dir, ".")
	}
	return len(names) > 0, err
}

func (u *undoing) look(path string) (Node, error) {
	return (&Log{fs: u.fs}).look(path)
}

// restore makes a path what it was. It is durable on return.
func (u *undoing) restore(path string, was, now Node) error {
	dir, err := u.parent(path, was.Type != absent)
	if errors.Is(err, fs.ErrNotExist) && was.Type == absent {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(path)
	switch was.Type {
	case absent:
		err = dir.Remove(name)
		if errors.Is(err, syscall.ENOTEMPTY) {
			err = removeSwept(dir, name)
		}
	case file:
		err = u.file(dir, name, was, now)
	case folder:
		if now.Type != folder {
			err = removed(dir, name)
			if err == nil {
				err = dir.Mkdir(name, 0o700)
			}
		}
		if err == nil {
			err = attributes(dir, name, was)
		}
		if err == nil {
			err = vfs.SyncDir(dir, name)
		}
	case link:
		err = put(dir, name, now, func(tmp string) error {
			if err := dir.Symlink(string(was.Target), tmp); err != nil {
				return err
			}
			return owned(dir, tmp, was)
		})
	default:
		err = put(dir, name, now, func(tmp string) error {
			if err := dir.Mknod(tmp, was.Mode, was.Dev); err != nil {
				return err
			}
			return attributes(dir, tmp, was)
		})
	}
	if err != nil {
		return err
	}
	return vfs.SyncDir(dir, ".")
}

// parent opens the folder above a path, through no link. Where something is to be brought back, the folders above that a state removed or
// replaced come back first; one that is missing and not in the log is made.
func (u *undoing) parent(path string, wanted bool) (vfs.Dir, error) {
	at, err := u.fs.OpenDir("/")
	if err != nil {
		return nil, err
	}
	full := ""
	for name := range strings.SplitSeq(strings.Trim(filepath.Dir(path), "/"), "/") {
		if name == "" {
			continue
		}
		full += "/" + name
		next, err := at.OpenDir(name)
		if err != nil && wanted {
			if c := u.folders[full]; c != nil && !c.early {
				c.early = true
				u.path(c)
			} else if errors.Is(err, fs.ErrNotExist) {
				if err := at.Mkdir(name, 0o700); err != nil {
					return nil, errors.Join(err, at.Close())
				}
			}
			next, err = at.OpenDir(name)
		}
		if cerr := at.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// removeSwept removes a folder that holds nothing but temporary files of what died.
func removeSwept(dir vfs.Dir, name string) error {
	sub, err := dir.OpenDir(name)
	if err != nil {
		return err
	}
	err = vfs.SweepTemps(sub, ".")
	if cerr := sub.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return dir.Remove(name)
}

// put makes something under another name and gives it its own at once. A folder that stands there must be empty.
func put(dir vfs.Dir, name string, now Node, make func(tmp string) error) error {
	tmp := vfs.TempName(name)
	err := make(tmp)
	if err == nil && now.Type == folder {
		err = dir.Remove(name)
	}
	if err == nil {
		err = dir.Rename(tmp, name)
	}
	if err != nil {
		_ = dir.Remove(tmp)
	}
	return err
}

// syncFile makes a file's attributes durable.
func syncFile(dir vfs.Dir, name string) error {
	h, err := dir.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	err = h.Sync()
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	return err
}

func removed(dir vfs.Dir, name string) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// file brings content and attributes back; attributes alone where the content is still the same.
func (u *undoing) file(dir vfs.Dir, name string, was, now Node) error {
	if now.Type == file && (was.Saved == "" || now.Sum != "" && now.Sum == was.Sum) {
		if err := attributes(dir, name, was); err != nil {
			return err
		}
		return syncFile(dir, name)
	}
	if was.Saved == "" {
		return errors.New("its content was not kept: only its attributes were to be changed")
	}
	return put(dir, name, now, func(tmp string) error {
		src, err := u.fs.OpenFile(filepath.Join(u.dir, filesDir, was.Saved), os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer src.Close()
		if sum, err := sumOf(src); err != nil || sum != was.Sum {
			return errors.Join(errors.New("the copy in the undo log is damaged"), err)
		}
		dst, err := dir.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if _, err = src.Seek(0, 0); err == nil {
			_, err = dst.CopyFrom(src)
		}
		if err == nil {
			err = attributes(dir, tmp, was)
		}
		if err == nil {
			err = dst.Sync()
		}
		if cerr := dst.Close(); err == nil {
			err = cerr
		}
		return err
	})
}

// owned gives a name its owner; a process that is not root leaves one that is right already.
func owned(dir vfs.Dir, name string, was Node) error {
	st, err := dir.Lstat(name)
	if err != nil || st.UID == was.UID && st.GID == was.GID {
		return err
	}
	return dir.Lchown(name, int(was.UID), int(was.GID))
}

// attributes gives a name owner, mode, extended attributes and times: the owner first, as a change of it clears modes.
func attributes(dir vfs.Dir, name string, was Node) error {
	if err := owned(dir, name, was); err != nil {
		return err
	}
	if err := dir.Chmod(name, was.Mode&0o7777); err != nil {
		return err
	}
	have, err := dir.Xattrs(name)
	if err != nil {
		return err
	}
	for _, x := range have {
		if !slices.ContainsFunc(was.Xattrs, func(w vfs.Xattr) bool { return w.Name == x.Name }) {
			if err := dir.SetXattr(name, vfs.Xattr{Name: x.Name}); err != nil {
				return err
			}
		}
	}
	for _, x := range was.Xattrs {
		if x.Value == nil {
			x.Value = []byte{}
		}
		if err := dir.SetXattr(name, x); err != nil {
			return err
		}
	}
	return dir.Lutimes(name, was.Mtime)
}

func (u *undoing) action(ctx context.Context, c *change) {
	a := *c.Action
	item := Item{Noun: a.Noun, Name: a.Name, State: c.State}
	fail := func(why string) {
		item.Why = why
		u.report.Failed = append(u.report.Failed, item)
	}
	if len(a.Probe) > 0 && !a.Last {
		now, err := answer(ctx, u.run, a)
		switch {
		case err != nil:
			fail(err.Error())
			return
		case now == a.Before:
			u.report.Unchanged = append(u.report.Unchanged, item)
			return
		case c.output != nil && now != *c.output:
			item.Why = "it was changed since by somebody else"
			u.report.Left = append(u.report.Left, item)
			return
		}
	}
	status, out, err := u.run(ctx, a.Undo, a.Stdin)
	if err != nil {
		fail(err.Error())
		return
	}
	if status != 0 {
		line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
		fail(strings.TrimSuffix(fmt.Sprintf("%s: exit status %d: %s", a.Undo[0], status, line), ": "))
		return
	}
	if len(a.Probe) > 0 && !a.Last {
		if now, err := answer(ctx, u.run, a); err != nil || now != a.Before {
			fail("it is not as it was before")
			return
		}
	}
	u.report.Undone = append(u.report.Undone, item)
}
