package permissions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/permission"
)

// Tree is one tree of a project with its rules.
type Tree struct {
	Name, Dir string
	// Repo is the repository that the tree is a working copy of, "" for data.
	Repo  project.Repo
	rules *node
}

// Defaults returns the rules of the three trees, before those of the project's own. owner is the owner of the files, nil if owners must not be
// changed.
func Defaults(owner *project.Owner) (live, data, pillar Rule) {
	uid, gid, root := -1, -1, -1
	owns := owner != nil
	if owns {
		uid, gid, root = owner.UID, owner.GID, 0
	}
	pillar = Rule{uid: root, gid: gid, groupFromOwner: owns, umask: 0o007}
	if !owns {
		pillar.umask = 0o077
	}
	return Rule{uid: uid, gid: gid, setgid: owns}, Rule{uid: uid, gid: gid, setgid: owns, others: owns}, pillar
}

// Trees returns the trees of a project and their rules: Defaults, and below them those of the project. The accounts in them must exist, or look
// reports which do not.
func Trees(at layout.Project, owner *project.Owner, own []permission.Rule, look Accounts) ([]Tree, error) {
	live, data, pillar := Defaults(owner)
	trees := []Tree{
		{"project", at.Live(), project.Code, &node{rule: &live}},
		{"data", at.Data(), "", &node{rule: &data}},
		{"pillar", at.Pillar(), project.PillarRepo, &node{rule: &pillar}},
	}
	for _, p := range own { // folders come before what is in them
		for _, t := range trees {
			if p.Path != t.Name && !strings.HasPrefix(p.Path, t.Name+"/") {
				continue
			}
			if err := t.rules.place(p, owner != nil, look); err != nil {
				return nil, err
			}
		}
	}
	return trees, nil
}

// WalkResult is the result of a walk, or of a dry one.
type WalkResult struct {
	// Unchanged and Fixed count files and folders.
	Unchanged, Fixed int64
	// Foreign are files that were skipped because they also have a name outside the tree.
	Foreign []string
	// Differ are the first paths that differ in a dry walk, each with what differs.
	Differ []string
	// Unsure reports that something was left out whose turn only a walk of the whole tree shows: a file with several names, or one that was
	// replaced or linked meanwhile.
	Unsure bool
	// Inodes are the numbers of the inodes of everything below the tree that was walked, if How asks for them.
	Inodes []uint64
}

// How says what a walk does besides applying the rules.
type How struct {
	// Dry: it only reports what differs.
	Dry bool
	// Inodes: it collects WalkResult.Inodes.
	Inodes bool
}

// Walk applies the rules of a tree, or of a part of it if that is not nil. No symbolic link is followed. It may be run again after any error.
func (t Tree) Walk(ctx context.Context, f vfs.FS, part *Part, how How) (WalkResult, error) {
	w := &walker{dir: t.Dir, rules: t.rules, fs: f, part: part, how: how}
	err := w.run(ctx)
	return WalkResult{Unchanged: w.right.Load(), Fixed: w.fixed.Load(), Foreign: w.foreign, Differ: w.differ, Unsure: len(w.shared) > 0 || w.missed, Inodes: w.inodes}, err
}

// walker applies the rules of one tree. Folders are passed to idle workers, so that several walk a wide tree in parallel, unless there is little to
// look at.
type walker struct {
	dir   string
	rules *node
	fs    vfs.FS
	part  *Part // nil means everything
	how   How

	right, fixed atomic.Int64

	wg   sync.WaitGroup
	free chan struct{}

	mu      sync.Mutex
	err     error
	shared  map[inode]*sharedInode
	foreign []string
	differ  []string // the first paths that differ, in a dry walk
	inodes  []uint64
	missed  bool // apply left something out
}

type inode struct{ dev, ino uint64 }

// sharedInode is a file with several names; all of them must be in the tree before it is changed.
type sharedInode struct {
	nlink uint64
	seen  []sharedName
	st    vfs.Stat
}

type sharedName struct {
	path string
	rule *Rule
}

const (
	workers     = 4
	little      = 100 // entries: looking at so many takes less time than to wait for another worker
	shownDiffer = 20
)

func (w *walker) run(ctx context.Context) error {
	w.free = make(chan struct{}, workers)
	w.shared = map[inode]*sharedInode{}
	top, err := w.fs.OpenDir(w.dir)
	if err != nil {
		return err
	}
	st, err := top.Lstat(".")
	if err == nil {
		err = w.fix(top, ".", ".", st, w.rules.rule)
	}
	if err != nil {
		_ = top.Close()
		return err
	}
	w.walk(ctx, top, "", w.rules, w.rules.rule, w.part)
	w.wg.Wait()
	if w.err != nil {
		return w.err
	}
	return w.fixShared()
}

func (w *walker) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

func (w *walker) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

// walk fixes everything in d, whose path below the tree is rel, and closes it.
func (w *walker) walk(ctx context.Context, d vfs.Dir, rel string, node *node, rule *Rule, part *Part) {
	defer d.Close()
	names, err := part.names(d)
	if errors.Is(err, fs.ErrNotExist) {
		return // removed by a running program
	}
	if err != nil {
		w.fail(fmt.Errorf("%s: %w", rel, err))
		return
	}
	if err := ctx.Err(); err != nil {
		w.fail(context.Cause(ctx))
		return
	}
	if w.failed() {
		return
	}
	var inodes []uint64
	if w.how.Inodes {
		inodes = make([]uint64, 0, len(names))
	}
	for _, n := range names {
		ino, err := w.one(ctx, d, n, rel, node, rule, part.at(n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.fail(err)
			return
		}
		if w.how.Inodes {
			inodes = append(inodes, ino)
		}
	}
	if w.how.Inodes {
		w.mu.Lock()
		w.inodes = append(w.inodes, inodes...)
		w.mu.Unlock()
	}
}

// one fixes one name in d, and everything below it, and returns its inode. If a running program removes it meanwhile, the error is
// fs.ErrNotExist.
func (w *walker) one(ctx context.Context, d vfs.Dir, n, rel string, node *node, rule *Rule, part *Part) (uint64, error) {
	st, err := d.Lstat(n)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", rel, err)
	}
	sub, rule := node.at(n, rule)
	if st.IsRegular() && st.Nlink > 1 {
		w.share(filepath.Join(rel, n), st, rule)
		return st.Ino, nil
	}
	if err := w.fix(d, n, rel, st, rule); err != nil {
		return st.Ino, err
	}
	if !st.IsDir() {
		return st.Ino, nil
	}
	if !rule.all && rule.leaves(n, st) {
		below := *rule
		below.all, rule = true, &below
	}
	in, err := d.OpenDir(n)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return st.Ino, nil // no longer a folder
	}
	if err != nil {
		return st.Ino, fmt.Errorf("%s: %w", rel, err)
	}
	path := filepath.Join(rel, n)
	if w.right.Load()+w.fixed.Load() < little {
		w.walk(ctx, in, path, sub, rule, part)
		return st.Ino, nil
	}
	select {
	case w.free <- struct{}{}:
		w.wg.Go(func() {
			w.walk(ctx, in, path, sub, rule, part)
			<-w.free
		})
	default:
		w.walk(ctx, in, path, sub, rule, part)
	}
	return st.Ino, nil
}

// fix changes one entry, name in d, as its rule requires; rel is the path of d.
func (w *walker) fix(d vfs.Dir, name, rel string, st vfs.Stat, rule *Rule) error {
	if !st.IsDir() && !st.IsRegular() {
		return nil
	}
	want, err := rule.want(name, st, func() ([]vfs.Xattr, error) { return d.Xattrs(name) })
	if err == nil {
		if want.nothing() {
			w.right.Add(1)
			return nil
		}
		if w.how.Dry {
			w.fixed.Add(1)
			w.show(filepath.Join(rel, name), st, want)
			return nil
		}
		err = apply(d, name, st, want)
	}
	if errors.Is(err, fs.ErrNotExist) {
		w.mu.Lock()
		w.missed = true
		w.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", rel, err)
	}
	w.fixed.Add(1)
	return nil
}

// apply changes only the entry that st describes: a user who may write to the folder could have replaced it, or linked it elsewhere, in which
// case it returns fs.ErrNotExist. The mode is set last: chown(2) clears bits of it, and an access control list contains it.
func apply(d vfs.Dir, name string, st vfs.Stat, want wanted) error {
	f, err := d.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrPermission) {
		return applyByName(d, name, want)
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if now.Dev != st.Dev || now.Ino != st.Ino || now.Type() != st.Type() || (!st.IsDir() && now.Nlink > st.Nlink) {
		return fs.ErrNotExist
	}
	if want.uid >= 0 || want.gid >= 0 {
		if err := f.Chown(want.uid, want.gid); err != nil {
			return err
		}
	}
	for _, x := range want.xattrs {
		if err := f.SetXattr(x); err != nil && (x.Value != nil || !errors.Is(err, syscall.ENODATA)) {
			return err
		}
	}
	if want.chmod {
		return f.Chmod(want.perm)
	}
	return nil
}

// applyByName is used for a file that its owner can't open: an ordinary user, who can't change files of others.
func applyByName(d vfs.Dir, name string, want wanted) error {
	if want.uid >= 0 || want.gid >= 0 {
		if err := d.Lchown(name, want.uid, want.gid); err != nil {
			return err
		}
	}
	if want.chmod {
		if err := d.Chmod(name, want.perm); err != nil {
			return err
		}
	}
	for _, x := range want.xattrs {
		if err := d.SetXattr(name, x); err != nil && (x.Value != nil || !errors.Is(err, syscall.ENODATA)) {
			return err
		}
	}
	return nil
}

func (w *walker) show(path string, st vfs.Stat, want wanted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.differ) == shownDiffer {
		return
	}
	var what []string
	if want.uid >= 0 || want.gid >= 0 {
		uid, gid := int(st.UID), int(st.GID)
		if want.uid >= 0 {
			uid = want.uid
		}
		if want.gid >= 0 {
			gid = want.gid
		}
		what = append(what, fmt.Sprintf("owner %d:%d to %d:%d", st.UID, st.GID, uid, gid))
	}
	if want.perm != st.Perm() {
		what = append(what, fmt.Sprintf("mode %04o to %04o", st.Perm(), want.perm))
	}
	if len(want.xattrs) > 0 {
		what = append(what, "acl")
	}
	w.differ = append(w.differ, fmt.Sprintf("%s  %s", path, strings.Join(what, ", ")))
}

// share defers a file with several names to the end.
func (w *walker) share(path string, st vfs.Stat, rule *Rule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := inode{st.Dev, st.Ino}
	s := w.shared[id]
	if s == nil {
		s = &sharedInode{nlink: st.Nlink, st: st}
		w.shared[id] = s
	}
	s.seen = append(s.seen, sharedName{path, rule})
}

func (w *walker) fixShared() error {
	if len(w.shared) == 0 {
		return nil
	}
	top, err := w.fs.OpenDir(w.dir)
	if err != nil {
		return err
	}
	defer top.Close()
	for _, s := range w.shared {
		slices.SortFunc(s.seen, func(a, b sharedName) int { return strings.Compare(a.path, b.path) })
		first := s.seen[0] // of names under different rules the first decides
		if uint64(len(s.seen)) < s.nlink {
			if want, err := first.rule.want(filepath.Base(first.path), s.st, func() ([]vfs.Xattr, error) { return top.Xattrs(first.path) }); err == nil && want.nothing() {
				w.right.Add(1)
				continue
			}
			for _, n := range s.seen {
				w.foreign = append(w.foreign, n.path)
			}
			continue
		}
		if err := w.fix(top, first.path, ".", s.st, first.rule); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	slices.Sort(w.foreign)
	return nil
}
