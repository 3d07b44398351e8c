package archive

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// Store holds the archives of one project. Make one with New; all of its methods may be called from many goroutines,
// but Make, Rollback, Restore and Rotate of one project must not overlap: the project's lock is the caller's. Compact may run
// beside all of them.
type Store struct {
	fs      vfs.FS
	project layout.Project
	cfg     Config
	reaper  *vfs.Reaper
	mu      sync.Mutex // records: read, change, write
	// work is held by what moves trees: Make, Rollback, Restore, Rotate, Sweep, and the moments of Compact that publish.
	work       sync.Mutex
	compacting sync.Mutex // one Compact of this store at a time
	gate       gate
	// sparing is held while a spare tree is copied, and by who builds from one; after work. next is guarded by it.
	sparing     sync.Mutex
	next        *next
	stopSparing atomic.Pointer[context.CancelFunc] // interrupts the copying under way
	spareRead   atomic.Pointer[spareFacts]         // of the spare tree's manifest when it was read last
	recent      recent
	busyMu      sync.Mutex
	busy        map[string]bool // temporary names that Compact writes to: no leftovers
}

// Config is what a Store needs of the outside. The zero value of each field has a meaning.
type Config struct {
	// FS is the file system; nil is the machine's.
	FS vfs.FS
	// Now is the clock; nil is time.Now. It is compared with times of the file system.
	Now func() time.Time
	// Workers copy and stat in parallel; 0 is 8: more than cores, since most of them wait for the disk.
	Workers int
	// SyncEvery is how many bytes a copy writes before the file system is synced beside it; 0 is 64 MB.
	SyncEvery int64
	// Reserve is what stays free on the file system after an archive.
	Reserve Reserve
	// NoSpare keeps no recyclable tree: each archive is copied in full, and one tree less lies on the disk.
	NoSpare bool
	// HandOver is how many files a tree has at least that Make packs in order to build from it, see handOver; 0 is 200: below that copying takes no longer.
	HandOver int64
	// Background is the slot for background work, shared with the stores of other projects; nil is one of its own.
	Background *Background
	// Begin is called before Compact works, a record is changed or a removed tree deleted in the background, and what it returns when that has
	// ended: a crash in it leaves something for Sweep. nil for nothing. Who calls the other methods that change something has seen to that.
	Begin func() (end func(), err error)
}

// Reserve is the space an archive leaves free: the larger of a share and a number of bytes, never less than nothing.
// The zero value is 5 % and 512 MB; Percent below zero reserves nothing.
type Reserve struct {
	Percent int
	Bytes   uint64
}

func (r Reserve) of(total uint64) uint64 {
	switch {
	case r.Percent < 0:
		return 0
	case r == Reserve{}:
		r = Reserve{Percent: 5, Bytes: 512 << 20}
	}
	return max(total/100*uint64(r.Percent), r.Bytes)
}

// New opens the archives of a project. Nothing is touched on disk.
func New(p layout.Project, cfg Config) *Store {
	if cfg.FS == nil {
		cfg.FS = vfs.OS{}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Workers <= 0 {
		cfg.Workers = 8
	}
	if cfg.SyncEvery <= 0 {
		cfg.SyncEvery = 64 << 20
	}
	if cfg.HandOver <= 0 {
		cfg.HandOver = 200
	}
	if cfg.Background == nil {
		cfg.Background = NewBackground()
	}
	if cfg.Begin == nil {
		cfg.Begin = func() (func(), error) { return func() {}, nil }
	}
	return &Store{fs: cfg.FS, project: p, cfg: cfg, reaper: &vfs.Reaper{FS: cfg.FS, Begin: cfg.Begin}, busy: map[string]bool{}}
}

// Wait returns when every removal in the background is over, with the first error of one.
func (s *Store) Wait() error { return s.reaper.Wait() }

func (s *Store) dir() string { return s.project.Archives() }

// trees names the folders of a project that an archive holds; each has the same name in the archive.
func trees() []string { return []string{layout.ArchivedPillar, layout.ArchivedTree} }

// use marks a temporary name as in use, so that Sweep leaves it; done ends that.
func (s *Store) use(path string) (done func()) {
	s.busyMu.Lock()
	defer s.busyMu.Unlock()
	s.busy[path] = true
	return func() {
		s.busyMu.Lock()
		defer s.busyMu.Unlock()
		delete(s.busy, path)
	}
}

func (s *Store) inUse(path string) bool {
	s.busyMu.Lock()
	defer s.busyMu.Unlock()
	return s.busy[path]
}
