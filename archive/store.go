package archive

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"corpus-git/archive/early"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/changed"
	"corpus-git/layout"
)

// Store holds the archives of one project. New makes one; all of its methods may be called from many goroutines, except that Make,
// Rollback, Restore and Rotate of one project must not overlap: the caller holds the project's lock. Compact may run concurrently with all
// of them.
type Store struct {
	fs      vfs.FS
	project layout.Project
	cfg     Config
	reaper  *vfs.Reaper
	mu      sync.Mutex // records: read, change, write
	// work is held by everything that moves trees: Make, Rollback, Restore, Rotate, Sweep, and Compact while it publishes.
	work       sync.Mutex
	compacting sync.Mutex // one Compact of this store at a time
	gate       gate
	// sparing is held while a spare tree is copied, and while an archive is built from one; it is locked after work. It guards next.
	sparing   sync.Mutex
	next      *next
	tended    atomic.Bool                // Prepare or Compact are called in this process
	copying   interrupt                  // of the next spare tree, after the current files
	spareRead atomic.Pointer[spareFacts] // of the spare tree's manifest when it was read last
	recent    recent
	lookMu    sync.Mutex
	look      *early.Look // under way
	ahead     ahead
	busyMu    sync.Mutex
	busy      map[string]bool // temporary names in use by Compact, which Sweep leaves
}

// Config is what a Store needs from its caller. The zero value of each field is valid.
type Config struct {
	// FS is the file system; nil is the machine's.
	FS vfs.FS
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// FileTime is the clock by which the file system gives files their times: a change after a call gets no earlier one. nil is Now, if that is set,
	// or else the kernel's.
	FileTime func() time.Time
	// Workers copy and stat in parallel; 0 is 8: more than cores, because most of them wait for the disk.
	Workers int
	// SyncEvery is the number of bytes of a copy after which the file system is synced; 0 is 64 MB.
	SyncEvery int64
	// Reserve is the space that stays free on the file system after an archive.
	Reserve Reserve
	// NoSpare keeps no spare tree: each archive is copied in full, and the disk holds one tree less.
	NoSpare bool
	// Files has Make write the trees as files wherever it can, whatever takes less time: other machines have copies of the archives, and could not exchange a folder. It includes NoSpare.
	Files bool
	// AtOnce is the least number of files of a tree that Make packs at once if there is no spare tree; 0 is 200: below that copying takes no
	// longer.
	AtOnce int64
	// User returns the user and group of the process, which decide whose files it can restore; nil is its effective ones.
	User func() (uid, gid int)
	// Looks lets Look note what changes after it; nil means that there are no looks. FS must be the machine's.
	Looks *changed.Notifier
	// LooksAfter is the same for the look right after a deployment, which Prepare begins and the archive of a push soon after it takes.
	LooksAfter *changed.Notifier
	// Background is the slot for background work, shared with the stores of other projects; nil creates one.
	Background *Background
	// Begin is called before Compact works, and before a record is changed or a removed tree deleted in the background; the function that
	// it returns is called afterwards. A crash between the two leaves something for Sweep. Begin may be nil. Callers of the other methods
	// that change something do the same themselves.
	Begin func() (end func(), err error)
}

// Reserve is the space an archive leaves free: the larger of a percentage and a number of bytes. The zero value is 5 % and 512 MB; a
// negative Percent reserves nothing.
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

// New opens the archives of a project. It does not touch the disk.
func New(p layout.Project, cfg Config) *Store {
	if cfg.FS == nil {
		cfg.FS = vfs.OS{}
	}
	if cfg.FileTime == nil {
		if cfg.FileTime = cfg.Now; cfg.Now == nil {
			cfg.FileTime = vfs.FileTime
		}
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
	cfg.NoSpare = cfg.NoSpare || cfg.Files
	if cfg.AtOnce <= 0 {
		cfg.AtOnce = 200
	}
	if cfg.User == nil {
		cfg.User = func() (uid, gid int) { return os.Geteuid(), os.Getegid() }
	}
	if cfg.Background == nil {
		cfg.Background = NewBackground()
	}
	if cfg.Begin == nil {
		cfg.Begin = func() (func(), error) { return func() {}, nil }
	}
	return &Store{fs: cfg.FS, project: p, cfg: cfg, reaper: &vfs.Reaper{FS: cfg.FS, Begin: cfg.Begin}, busy: map[string]bool{}}
}

// Wait returns when every removal in the background has ended, with the first error of one.
func (s *Store) Wait() error { return s.reaper.Wait() }

func (s *Store) dir() string { return s.project.Archives() }

// trees names the folders of a project that an archive holds; each has the same name in the archive.
func trees() []string { return []string{layout.ArchivedPillar, layout.ArchivedTree} }

// use marks a temporary name as in use, so that Sweep leaves it; done undoes that.
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
