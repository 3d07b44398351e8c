package replica

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/cluster/wal"
)

// Source captures what changes on a hub. It is not safe for concurrent use; others may change the files meanwhile.
type Source struct {
	t   *tracker
	wal *wal.Reader
	// closed means that nobody has the database open any more.
	closed bool
	// logs are Logs, and pending those that were named and are not captured yet.
	logs    func() []string
	pending map[string]bool
}

// NewSource returns a source that takes what is there now for known. The database must not be in use, and has no write-ahead log.
func NewSource(ctx context.Context, f Files) (*Source, error) {
	s := &Source{t: newTracker(f), wal: wal.NewReader(f.State.Database())}
	err := s.files(ctx, Scope{All: true})
	s.t.undo = nil
	return s, err
}

// WAL returns the write-ahead log of the database, which the caller may checkpoint between two captures.
func (s *Source) WAL() *wal.Reader { return s.wal }

// Closed says that the database was closed, which emptied its write-ahead log: the next capture has all of it.
func (s *Source) Closed() { s.closed = true }

// Logs tells which event logs to look at in a capture that is not of everything: those that written names, by their paths, and those that it named since the last capture that is done. Without it these are
// all of the projects in the scope, of which there may be many thousands.
func (s *Source) Logs(written func() []string) { s.logs = written }

// Copied says whether another hub copies the files: until it has ended, each capture has what was changed even if it is as before.
func (s *Source) Copied(copied bool) { s.t.copied = copied }

// Scope says what a capture reads. The database, and the state of the server, are always read, and the projects in which something is in progress or whose journals have changed.
type Scope struct {
	// All are all projects.
	All bool
	// Projects are some, by their names.
	Projects []string
}

// Capture is what was captured.
type Capture struct {
	s      *Source
	change *wal.Change
}

// Capture writes what has changed since the last one to a batch. The caller calls Done when the batch is safe, or Undo: then it is captured again.
func (s *Source) Capture(ctx context.Context, scope Scope, b *Batch) (*Capture, error) {
	s.t.b, s.t.undo = b, nil
	defer func() { s.t.b = nil }()
	c := &Capture{s: s}
	var err error
	c.change, err = s.wal.Next()
	if s.closed && errors.Is(err, wal.ErrRestarted) {
		c.change, err = wal.Whole(s.t.State.Database())
	}
	if err == nil && c.change != nil {
		err = b.change(c.change)
	}
	if err == nil {
		err = s.files(ctx, scope)
	}
	if err != nil {
		c.Undo()
		return nil, err
	}
	return c, nil
}

// change writes what has changed in the database.
func (b *Batch) change(c *wal.Change) error {
	err := b.add(record{Kind: pages, PageSize: c.PageSize, Pages: c.Pages, Size: int64(c.Count()) * int64(4+c.PageSize)}, nil)
	if err != nil {
		return err
	}
	return c.Each(func(page uint32, data []byte) error {
		if _, err := b.z.Write(binary.BigEndian.AppendUint32(nil, page)); err != nil {
			return err
		}
		_, err := b.z.Write(data)
		return err
	})
}

// Done says that what was captured need not be captured again.
func (c *Capture) Done() {
	if c.change != nil {
		c.s.wal.Taken(c.change)
	}
	c.s.t.undo, c.s.pending = nil, nil
}

// Undo forgets that it was captured.
func (c *Capture) Undo() {
	for _, undo := range slices.Backward(c.s.t.undo) {
		undo()
	}
	c.s.t.undo = nil
}

// files captures the files: first what refers to others.
func (s *Source) files(ctx context.Context, scope Scope) error {
	t := s.t
	t.journals = map[string]bool{}
	for _, name := range scope.Projects {
		t.journals[name] = true
	}
	// Journals and event logs have a line for each step; the rest of the state refers to them.
	events := stateDir + "/" + eventsDir
	if err := t.walk(ctx, stateDir, func(name string) (capture, below bool) {
		if strings.HasPrefix(name, events+"/") {
			return scope.All, scope.All
		}
		return true, true
	}); err != nil {
		return err
	}
	logs := s.written(scope)
	for name := range logs {
		t.journals[name] = true
	}
	names, err := s.projects(scope)
	if err != nil {
		return err
	}
	there := !scope.All && t.find(events).kids[eventsDir] != nil // before the first deployment there is none
	for _, name := range names {
		if there {
			if err := t.walk(ctx, events+"/"+name, func(at string) (capture, below bool) { return true, logs == nil || at != events+"/"+name }); err != nil {
				return err
			}
			for _, log := range logs[name] {
				if t.find(events + "/" + name).kids[name] == nil {
					break // the folder has gone
				}
				if err := t.walk(ctx, events+"/"+name+"/"+log, all); err != nil {
					return err
				}
			}
		}
		if err := s.project(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// written returns the names of the event logs to look at, by the project, nil for all.
func (s *Source) written(scope Scope) map[string][]string {
	if s.logs == nil || scope.All {
		return nil
	}
	if s.pending == nil {
		s.pending = map[string]bool{}
	}
	for _, p := range s.logs() {
		s.pending[p] = true
	}
	out := map[string][]string{}
	for p := range s.pending {
		name := filepath.Base(filepath.Dir(p))
		out[name] = append(out[name], filepath.Base(p))
	}
	return out
}

// projects returns the names of the projects to capture.
func (s *Source) projects(scope Scope) ([]string, error) {
	t := s.t
	if scope.All {
		names, err := t.FS.ReadDir(t.Root.Projects())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, name := range names {
			t.journals[name] = true
		}
		if n := t.root.kids[projectsDir]; n != nil {
			for name := range n.kids { // removed ones
				t.journals[name] = true
			}
		}
	}
	if n := t.root.kids[stateDir]; n != nil && n.kids[underwayDir] != nil {
		for name := range n.kids[underwayDir].kids {
			t.journals[name] = true
		}
	}
	return slices.Sorted(maps.Keys(t.journals)), nil
}

// project captures one project: refs before the objects that they refer to.
func (s *Source) project(ctx context.Context, name string) error {
	at := projectsDir + "/" + name
	if strings.Contains(name, "/") || !s.t.common(at) {
		return nil
	}
	if err := s.t.walk(ctx, at, func(name string) (capture, below bool) {
		return !inObjects(name), !inObjects(name)
	}); err != nil {
		return err
	}
	if s.t.find(at).kids[name] == nil { // it has no folder
		return nil
	}
	git := at + "/" + filepath.Base(s.t.Root.Project(name).Git())
	return s.t.walk(ctx, git, func(name string) (capture, below bool) {
		if inObjects(name) {
			return true, true
		}
		base := name[strings.LastIndex(name, "/")+1:]
		return false, base != "refs"
	})
}
