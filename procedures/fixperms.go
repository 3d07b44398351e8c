package procedures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// Fixperms enforces owner, group and modes, and changes only what differs:
//
//	project/ data/   <user>:<group>, folders set-group-ID
//	pillar/          root:<group>, nothing for others
//
// As an ordinary user owners stay, and the pillar is closed to everybody else. Symbolic links are
// neither followed nor changed; a file with a further name outside of the tree keeps its owner.
type Fixperms struct{}

// Name implements Procedure.
func (Fixperms) Name() string { return NameFixperms }

// Run implements Procedure.
func (Fixperms) Run(ctx context.Context, env *Env) error {
	uid, gid, root := -1, -1, -1
	var skipped []string
	tail := ""
	if env.ownsFiles() {
		user, group := env.Prepared.Cfg.User(), env.Prepared.Cfg.Group()
		u, err := env.Host.Users.User(user)
		if err != nil {
			return fault.New(fault.Failed, NameFixperms, "user %s: %w", user, err).WithHint("the sync procedure makes the user; run it, or correct `user` in the pillar")
		}
		g, err := env.Host.Users.Group(group)
		if err != nil {
			return fault.New(fault.Failed, NameFixperms, "group %s: %w", group, err).WithHint("the sync procedure makes the group; run it, or correct `group` in the pillar")
		}
		uid, gid, root = u.UID, g.GID, 0
	} else {
		tail = ", " + env.leftOwners()
	}
	rules := []permRule{
		{dir: env.Paths.Live(), repo: project.Code, uid: uid, gid: gid, setgid: env.ownsFiles(), umask: 0},
		{dir: env.Paths.Data(), uid: uid, gid: gid, setgid: env.ownsFiles(), umask: 0},
		{dir: env.Paths.Pillar(), repo: project.PillarRepo, uid: root, gid: gid, groupFromOwner: env.ownsFiles(), umask: 0o007},
	}
	if !env.ownsFiles() {
		rules[2].umask = 0o077
	}
	var right, mended int64
	for _, r := range rules {
		w := permWalk{rule: r, fs: env.FS}
		if err := w.run(ctx); err != nil {
			if errors.Is(err, fs.ErrNotExist) && !exists(r.dir) {
				continue
			}
			return fault.New(fault.Internal, NameFixperms, "%w", err)
		}
		right += w.right.Load()
		mended += w.mended.Load()
		if r.repo != "" && w.mended.Load() > 0 && !env.RemoteLess {
			if err := env.Repos.Refresh(ctx, env.Deployment.Project, r.repo, r.dir); err != nil {
				return fault.New(fault.Internal, NameFixperms, "refresh the index of %s: %w", r.dir, err)
			}
		}
		if n := len(w.foreign); n > 0 {
			skipped = append(skipped, fmt.Sprintf("%s kept: hard links out of the tree, such as %s", event.Plural(n, "owner"), w.foreign[0]))
		}
	}
	switch {
	case mended == 0:
		env.Summarize(skipped, "%s right%s", event.Count(right), tail)
	case right == 0:
		env.Summarize(skipped, "%s mended%s", event.Count(mended), tail)
	default:
		env.Summarize(skipped, "%s right, %s mended%s", event.Count(right), event.Count(mended), tail)
	}
	return nil
}

// permRule is what one tree shall be like; -1 leaves an owner.
type permRule struct {
	dir string
	// repo is the repository that the tree is a working copy of, "" for data.
	repo     project.Repo
	uid, gid int
	// setgid sets the set-group-ID bit of folders.
	setgid bool
	// groupFromOwner gives the group the owner's permissions.
	groupFromOwner bool
	// umask are the bits that nothing may have.
	umask uint32
}

// permWalk applies one rule. Folders are handed to idle workers, so a wide tree is walked by several.
type permWalk struct {
	rule permRule
	fs   vfs.FS

	right, mended atomic.Int64

	wg   sync.WaitGroup
	free chan struct{}

	mu      sync.Mutex
	err     error
	shared  map[uint64]*sharedInode
	foreign []string
}

// sharedInode is a file with several names; all of them must lie in the tree before its owner is changed.
type sharedInode struct {
	nlink uint64
	seen  []string
	st    vfs.Stat
}

const permWorkers = 4

func (w *permWalk) run(ctx context.Context) error {
	w.free = make(chan struct{}, permWorkers)
	w.shared = map[uint64]*sharedInode{}
	top, err := w.fs.OpenDir(w.rule.dir)
	if err != nil {
		return err
	}
	st, err := top.Lstat(".")
	if err == nil {
		err = w.mend(top, ".", "", st)
	}
	if err != nil {
		_ = top.Close()
		return err
	}
	w.walk(ctx, top, "")
	w.wg.Wait()
	if w.err != nil {
		return w.err
	}
	return w.mendShared()
}

func (w *permWalk) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

func (w *permWalk) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

// walk mends everything in d, whose path below the rule's folder is rel, and closes it.
func (w *permWalk) walk(ctx context.Context, d vfs.Dir, rel string) {
	defer d.Close()
	names, err := d.ReadDir(".")
	if err != nil {
		w.fail(err)
		return
	}
	if err := ctx.Err(); err != nil {
		w.fail(context.Cause(ctx))
		return
	}
	if w.failed() {
		return
	}
	for _, n := range names {
		st, err := d.Lstat(n)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a running program removed it
		}
		if err != nil {
			w.fail(err)
			return
		}
		path := filepath.Join(rel, n)
		if st.IsRegular() && st.Nlink > 1 && w.differs(st) {
			w.share(path, st)
			continue
		}
		if err := w.mend(d, n, path, st); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			w.fail(err)
			return
		}
		if !st.IsDir() {
			continue
		}
		sub, err := d.OpenDir(n)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			w.fail(err)
			return
		}
		select {
		case w.free <- struct{}{}:
			w.wg.Go(func() {
				w.walk(ctx, sub, path)
				<-w.free
			})
		default:
			w.walk(ctx, sub, path)
		}
	}
}

// wanted is what st should be like.
func (w *permWalk) wanted(st vfs.Stat) (uid, gid int, perm uint32) {
	uid, gid, perm = w.rule.uid, w.rule.gid, st.Perm()
	if uid < 0 || uint32(uid) == st.UID {
		uid = -1
	}
	if gid < 0 || uint32(gid) == st.GID {
		gid = -1
	}
	if w.rule.groupFromOwner {
		perm = perm&^0o070 | perm>>3&0o070
	}
	perm &^= w.rule.umask
	if st.IsDir() && w.rule.setgid {
		perm |= syscall.S_ISGID
	}
	return uid, gid, perm
}

func (w *permWalk) differs(st vfs.Stat) bool {
	uid, gid, perm := w.wanted(st)
	return uid >= 0 || gid >= 0 || perm != st.Perm()
}

func (w *permWalk) mend(d vfs.Dir, name, path string, st vfs.Stat) error {
	if !st.IsDir() && !st.IsRegular() {
		return nil
	}
	uid, gid, perm := w.wanted(st)
	if uid < 0 && gid < 0 && perm == st.Perm() {
		w.right.Add(1)
		return nil
	}
	if uid >= 0 || gid >= 0 {
		if err := d.Lchown(name, uid, gid); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	// chown(2) clears the set-ID bits, so the mode comes after it.
	if perm != st.Perm() || ((uid >= 0 || gid >= 0) && perm&0o6000 != 0) {
		if err := d.Chmod(name, perm); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	w.mended.Add(1)
	return nil
}

func (w *permWalk) share(path string, st vfs.Stat) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.shared[st.Ino]
	if s == nil {
		s = &sharedInode{nlink: st.Nlink, st: st}
		w.shared[st.Ino] = s
	}
	s.seen = append(s.seen, path)
}

func (w *permWalk) mendShared() error {
	if len(w.shared) == 0 {
		return nil
	}
	top, err := w.fs.OpenDir(w.rule.dir)
	if err != nil {
		return err
	}
	defer top.Close()
	for _, s := range w.shared {
		if uint64(len(s.seen)) < s.nlink {
			w.foreign = append(w.foreign, s.seen...)
			continue
		}
		if err := w.mend(top, s.seen[0], s.seen[0], s.st); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
