// Package early looks at the trees of a project before it is certain that an archive of them is made: while a push is still arriving, or right after a deployment. From before that look the
// kernel notes what changes, so that the archive looks again only at that (ADR 13).
//
// Invariant: a look that was taken is what a scan would find at that moment. Everything that can't be told is an answer of "no", and the caller scans.
package early

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/changed"
)

// MaxAge is how long a look can be taken after it began: what a process writes to a file that it has mapped is not noted while it keeps the file open.
const MaxAge = 2 * time.Second

// Request says what to look at.
type Request struct {
	// Notifier notes changes. Required.
	Notifier *changed.Notifier
	FS       vfs.FS
	// Dir is the folder that has the trees, and Trees their names.
	Dir     string
	Trees   []string
	Workers int
	// Now is the clock by which the file system gives files their times.
	Now func() time.Time
	// Known returns the names that the newest archive knows, nil if they are not in memory. It is called while the scan has begun, and may be nil.
	Known func() *tree.Known
}

// Look is one look. Only Found may be called beside another method.
type Look struct {
	req   Request
	stop  context.CancelFunc
	done  chan struct{} // closed when what follows is there
	begun time.Time
	watch *changed.Watch
	found *tree.Scanned
	err   error
	mu    sync.Mutex // held while found is used
	taken bool
}

// Begin begins to look in the background. Take it, or drop it.
func Begin(ctx context.Context, r Request) *Look {
	ctx, stop := context.WithCancel(ctx)
	l := &Look{req: r, stop: stop, done: make(chan struct{}), begun: r.Now()}
	go func() {
		defer close(l.done)
		l.err = l.look(ctx)
	}()
	return l
}

func (l *Look) dir(name string) string { return filepath.Join(l.req.Dir, name) }

func (l *Look) look(ctx context.Context) (err error) {
	var dirs []string
	for _, t := range l.req.Trees {
		dirs = append(dirs, l.dir(t))
	}
	if l.watch, err = l.req.Notifier.BeginAll(dirs...); err != nil {
		return err
	}
	src, err := l.req.FS.OpenDir(l.req.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // opened for reading
	var known atomic.Pointer[tree.Known]
	var finding sync.WaitGroup
	defer finding.Wait()
	if l.req.Known != nil {
		finding.Go(func() { known.Store(l.req.Known()) }) // the folders until then are listed
	}
	l.found, err = tree.ScanKnown(ctx, src, l.req.Trees, l.req.Workers, known.Load)
	return err
}

// Age returns how long ago the look began.
func (l *Look) Age() time.Duration { return l.req.Now().Sub(l.begun) }

// Drop ends the look. It does not wait for it.
func (l *Look) Drop() {
	l.stop()
	go l.close()
}

func (l *Look) close() {
	<-l.done
	l.watch.Close()
}

// errOld is a look that can't be taken any more.
var errOld = errors.New("too old")

// Take waits for the look, and returns what a scan that began then would find now, and when it began. An error means that it can't tell. It ends the look.
func (l *Look) Take(ctx context.Context, src vfs.Dir) (t *tree.Scanned, begun time.Time, err error) {
	select {
	case <-l.done:
	case <-ctx.Done():
		l.Drop()
		return nil, begun, ctx.Err()
	}
	defer l.stop()
	defer l.watch.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = true
	if l.err != nil {
		return nil, begun, l.err
	}
	if age := l.Age(); age < 0 || age > MaxAge {
		return nil, begun, errOld
	}
	t, err = l.again(ctx, src)
	return t, l.begun, err
}

// Found waits for the look, and returns a copy of what it found, as Scan would have at its beginning, which is the second result. It does not end the look. An
// error means that it failed, was dropped or taken.
func (l *Look) Found(ctx context.Context) (t *tree.Scanned, begun time.Time, err error) {
	select {
	case <-l.done:
	case <-ctx.Done():
		return nil, begun, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || l.taken {
		return nil, begun, errors.Join(errTaken, l.err)
	}
	t = &tree.Scanned{Entries: slices.Clone(l.found.Entries), Vanished: l.found.Vanished, Cold: l.found.Cold}
	return t, l.begun, nil
}

// errTaken is a look that somebody else used.
var errTaken = errors.New("it was taken")

// again looks again at what has changed.
func (l *Look) again(ctx context.Context, src vfs.Dir) (*tree.Scanned, error) {
	if err := l.watch.End(); err != nil {
		return nil, err
	}
	var paths []string
	was := tree.NewSnapshot(l.begun, l.found.Entries)
	for _, name := range l.req.Trees {
		top := l.found.Find(name)
		st, err := src.Lstat(name)
		if tree.Vanished(err) && top == nil {
			continue
		}
		if err != nil || top == nil || st.Dev != top.Live.Dev || st.Ino != top.Live.Ino {
			return nil, errors.Join(changed.ErrUnknown, err)
		}
		in, err := l.watch.In(l.dir(name), func(yield func(uint64) bool) {
			for _, e := range was.Tree(name) {
				if !yield(e.Live.Ino) {
					return
				}
			}
		})
		if err != nil {
			return nil, err
		}
		for _, p := range in {
			if p == "." {
				return nil, changed.ErrUnknown
			}
			paths = append(paths, path.Join(name, p))
		}
	}
	t, ok, err := l.found.Again(ctx, src, paths, l.req.Workers)
	if err == nil && !ok {
		err = changed.ErrUnknown
	}
	return t, err
}
