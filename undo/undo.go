package undo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"corpus-git/internal/vfs"
)

// Undo undoes what a log holds except its last actions, the last change first, and verifies each. It continues after failures. What the
// report lists as undone is durable, as is the fact that the log was processed: a later call changes nothing, and reports what could not be
// undone and what is unchanged. The error reports that the log could not be read or written, or is ctx's cause. A missing log is an empty
// one.
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
	if err := context.Cause(ctx); err != nil { // the last one, possibly incomplete
		return u.report, err
	}
	return u.report, u.finish()
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

// failed and left report what stays as the deployment left it.
func (u *undoing) failed(c *change, i Item) {
	u.report.Failed, u.stays = append(u.report.Failed, i), append(u.stays, c)
}

func (u *undoing) left(c *change, i Item) {
	u.report.Left, u.stays = append(u.report.Left, i), append(u.stays, c)
}

// spread writes previous contents that were not restored beside the copies, for people to read: named by the number of the path's record.
func (u *undoing) spread() error {
	for _, c := range u.stays {
		if c.Node.Saved != inJournal {
			continue
		}
		if err := vfs.WriteFileAtomic(u.fs, filepath.Join(u.dir, filesDir, strconv.Itoa(c.Seq)), c.Node.Content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// finish records durably that the log was processed, and what could not be undone.
func (u *undoing) finish() error {
	rep := Report{Unchanged: slices.Concat(u.report.Undone, u.report.Unchanged), Left: u.report.Left, Failed: u.report.Failed, Manual: u.report.Manual}
	line, err := json.Marshal(record{Kind: kindUndone, Report: &rep})
	if err != nil {
		return err
	}
	path := filepath.Join(u.dir, journalFile)
	data, err := vfs.ReadFile(u.fs, path)
	if err == nil {
		err = u.spread()
	}
	if err == nil {
		// An incomplete last line is removed.
		err = vfs.WriteFileAtomic(u.fs, path, append(append(data[:bytes.LastIndexByte(data, '\n')+1], line...), '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("undo log %s: %w", u.dir, err)
	}
	return nil
}

// Drop removes a log; a missing one is not an error.
func Drop(f vfs.FS, dir string) error {
	if err := vfs.RemoveAll(f, dir); err != nil {
		return err
	}
	return vfs.SyncDir(f, filepath.Dir(dir))
}

// change is one thing to undo: its first state, and what the last state left.
type change struct {
	record
	after  *Node
	output *string
	early  bool // already undone, for what is below
}

// last reports whether it is an action that comes after everything else.
func (c *change) last() bool { return c.Kind == kindAction && c.Action.Last }

// changesOf combines the records of a journal, the last change first.
func changesOf(recs []record) []*change {
	var list []*change
	paths, seqs := map[text]*change{}, map[int]*change{}
	for _, r := range recs {
		switch r.Kind {
		case kindBefore:
			if c := paths[r.Path]; c != nil {
				// Attributes had been noted, the content came later.
				c.Node.Saved, c.Node.Content, c.Node.Sum, c.Node.Size = r.Node.Saved, r.Node.Content, r.Node.Sum, r.Node.Size
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

// undoing is the state of one Undo.
type undoing struct {
	fs  vfs.FS
	dir string
	run Commands
	cut bool // the machine has restarted since then
	// into is called with each path before it is changed.
	into *Log
	// done are the results of an earlier undo that was not interrupted.
	done *Report
	// folders are what was a folder, by path.
	folders map[string]*change
	report  Report
	// stays are the paths that were not restored.
	stays []*change
}

func (u *undoing) change(ctx context.Context, c *change) {
	switch c.Kind {
	case kindManual:
		u.report.Manual = append(u.report.Manual, Item{Name: c.What, State: c.State})
	case kindAction:
		u.action(ctx, c)
	default:
		u.path(ctx, c)
	}
}

func (u *undoing) path(ctx context.Context, c *change) {
	item := Item{Noun: c.Node.noun(), Name: string(c.Path), State: c.State}
	if c.Node.Type == absent && c.after != nil {
		item.Noun = c.after.noun()
	}
	u.sweep(string(c.Path))
	now, err := u.inspect(string(c.Path))
	cleared := false
	if err == nil && c.Node.Whole && now.Type == folder {
		item.Noun = folder
		if err = u.into.BeforeTree(ctx, string(c.Path)); err == nil {
			cleared, err = u.clear(string(c.Path))
		}
	}
	switch {
	case err != nil:
		item.Why = err.Error()
		u.failed(c, item)
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
		item.Why = "it has been changed since by somebody else"
		u.left(c, item)
		return
	}
	if u.into != nil && c.Node.Type != absent {
		u.above(ctx, string(c.Path)) // otherwise into would note what a link on the way leads to
	}
	err = u.into.Before(ctx, string(c.Path))
	if err == nil {
		err = u.restore(ctx, string(c.Path), *c.Node, now)
	}
	if err != nil {
		if errors.Is(err, syscall.ENOTEMPTY) {
			item.Why = "it holds what no state made"
			u.left(c, item)
			return
		}
		item.Why = err.Error()
		u.failed(c, item)
		return
	}
	if now, err = u.inspect(string(c.Path)); err != nil || !now.same(*c.Node) {
		item.Why = "it is not as it was before"
		if err != nil {
			item.Why = err.Error()
		}
		u.failed(c, item)
		return
	}
	u.report.Undone = append(u.report.Undone, item)
}

// ours reports whether the present content is what the state left, or what an interrupted undo made of it: if only attributes are undone
// they change one by one.
func (u *undoing) ours(c *change, now Node) bool {
	inPlace := c.Node.Type == folder || c.Node.Type == file && c.Node.Saved == ""
	return now.same(*c.after) || now.Type == folder && c.after.Type == folder || now.sameContent(*c.Node) && (inPlace || now.sameAttributes(*c.Node))
}

// clear removes everything in a folder, and reports whether there was anything.
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

func (u *undoing) inspect(path string) (Node, error) {
	return (&Log{fs: u.fs}).inspect(path)
}
