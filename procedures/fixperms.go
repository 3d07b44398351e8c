package procedures

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

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// Fixperms enforces owner, group and modes, and changes only what differs:
//
//	project/   <user>:<group>, folders set-group-ID
//	data/      the same of what belongs to root or to the project; what other accounts own stays, and pid files of root
//	pillar/    root:<group>, nothing for others
//
// and what the project's own `permissions` say of paths below (project.Permission). As an ordinary user owners stay, and
// the pillar is closed to everybody else. Symbolic links are neither followed nor changed; a file with a further name
// outside of the tree stays as it is. It may be run again after any error.
type Fixperms struct {
	// Early is true where steps are still to run, or have been undone: an account that a rule names may be missing then.
	// Its part of the rule is left out, and said so.
	Early bool
	// Synced is true right after release-sync: what it told of the trees is believed for as long as the checkout believes the archive's walk.
	Synced bool
}

// Name implements Procedure.
func (Fixperms) Name() string { return NameFixperms }

// Run implements Procedure.
func (f Fixperms) Run(ctx context.Context, env *Env) error {
	known := env.takeSynced()
	if !f.Synced {
		known = nil
	}
	look := permAccounts{users: env.Host.Users}
	var kept []string
	if f.Early {
		look.missing = &kept
	}
	trees, err := permTrees(env, look)
	if err != nil {
		return err
	}
	tail := ""
	if !env.ownsFiles() {
		tail = ", " + env.leftOwners()
	}
	var right, fixed int64
	for _, t := range trees {
		part, seen := known.partOf(t)
		w, err := t.walk(ctx, env, part, false)
		if err != nil {
			return err
		}
		right += seen + w.right.Load()
		fixed += w.fixed.Load()
		if t.repo != "" && w.fixed.Load() > 0 && !env.RemoteLess {
			if err := env.Repository(env.Deployment.Project, t.repo).Refresh(ctx, t.dir); err != nil {
				return fault.New(fault.Internal, NameFixperms, "refresh the index of %s: %w", t.dir, err)
			}
		}
		if n := len(w.foreign); n > 0 {
			kept = append(kept, fmt.Sprintf("%s kept: hard links out of the tree, such as %s", humanize.Plural(n, "owner"), w.foreign[0]))
		}
	}
	switch {
	case fixed == 0:
		env.Summarize(kept, "%s unchanged%s", humanize.Count(right), tail)
	case right == 0:
		env.Summarize(kept, "%s fixed%s", humanize.Count(fixed), tail)
	default:
		env.Summarize(kept, "%s unchanged, %s fixed%s", humanize.Count(right), humanize.Count(fixed), tail)
	}
	return nil
}

// permTree is one tree with its rules.
type permTree struct {
	name, dir string
	// repo is the repository that the tree is a working copy of, "" for data.
	repo  project.Repo
	rules *permNode
}

// permTrees are the trees and their rules. The accounts that they name must be there.
func permTrees(env *Env, look permAccounts) ([]permTree, error) {
	owns := env.ownsFiles()
	live, data, pillar, err := env.treeRules()
	if err != nil {
		return nil, err
	}
	trees := []permTree{
		{"project", env.Paths.Live(), project.Code, &permNode{rule: &live}},
		{"data", env.Paths.Data(), "", &permNode{rule: &data}},
		{"pillar", env.Paths.Pillar(), project.PillarRepo, &permNode{rule: &pillar}},
	}
	for _, p := range env.Prepared.Cfg.Permissions() { // folders come before what lies in them
		for _, t := range trees {
			if p.Path != t.name && !strings.HasPrefix(p.Path, t.name+"/") {
				continue
			}
			if err := t.rules.place(p, owns, look); err != nil {
				return nil, err
			}
		}
	}
	return trees, nil
}

// treeRules are the rules of the three trees, before those of the project's own.
func (e *Env) treeRules() (live, data, pillar permRule, err error) {
	uid, gid, root := -1, -1, -1
	owns := e.ownsFiles()
	if owns {
		o, err := e.owner()
		if err != nil {
			return live, data, pillar, err
		}
		uid, gid, root = o.UID, o.GID, 0
	}
	pillar = permRule{uid: root, gid: gid, groupFromOwner: owns, umask: 0o007}
	if !owns {
		pillar.umask = 0o077
	}
	return permRule{uid: uid, gid: gid, setgid: owns}, permRule{uid: uid, gid: gid, setgid: owns, others: owns}, pillar, nil
}

// owner is the user and the group that the project's files belong to. They must be there.
func (e *Env) owner() (o project.Owner, err error) {
	user, group := e.Prepared.Cfg.User(), e.Prepared.Cfg.Group()
	u, err := e.Host.Users.User(user)
	if err != nil {
		return o, fault.New(fault.Failed, NameFixperms, "user %s: %w", user, err).WithHint("the sync procedure makes the user; run it, or correct `user` in the pillar")
	}
	g, err := e.Host.Users.Group(group)
	if err != nil {
		return o, fault.New(fault.Failed, NameFixperms, "group %s: %w", group, err).WithHint("the sync procedure makes the group; run it, or correct `group` in the pillar")
	}
	return project.Owner{UID: u.UID, GID: g.GID}, nil
}

// walk applies the rules of a tree, or of the part of it that is not nil, or, dry, only tells what differs. A tree that is not there is right.
func (t permTree) walk(ctx context.Context, env *Env, part *permPart, dry bool) (*permWalk, error) {
	w := &permWalk{dir: t.dir, rules: t.rules, fs: env.FS, part: part, dry: dry}
	err := w.run(ctx)
	if err == nil {
		return w, nil
	}
	if there, xerr := vfs.Exists(env.FS, t.dir); xerr == nil && !there {
		return w, nil
	}
	if ctx.Err() != nil {
		return w, err
	}
	f := withDiskHint(fault.New(fault.Internal, NameFixperms, "%s: %w", t.dir, err))
	if f.Hint == "" {
		f = f.WithHint("nothing but owners and modes was being changed: push again to go on")
	}
	return w, f
}

// permWalk applies the rules of one tree. Folders are handed to idle workers, so a wide tree is walked by several.
type permWalk struct {
	dir   string
	rules *permNode
	fs    vfs.FS
	part  *permPart // nil is all
	dry   bool

	right, fixed atomic.Int64

	wg   sync.WaitGroup
	free chan struct{}

	mu      sync.Mutex
	err     error
	shared  map[inode]*sharedInode
	foreign []string
	differ  []string // the first paths that differ, of a dry walk
}

type inode struct{ dev, ino uint64 }

// sharedInode is a file with several names; all of them must lie in the tree before it is changed.
type sharedInode struct {
	nlink uint64
	seen  []sharedName
	st    vfs.Stat
}

type sharedName struct {
	path string
	rule *permRule
}

const (
	permWorkers = 4
	permShown   = 20
)

func (w *permWalk) run(ctx context.Context) error {
	w.free = make(chan struct{}, permWorkers)
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

// walk fixes everything in d, whose path below the tree is rel, and closes it.
func (w *permWalk) walk(ctx context.Context, d vfs.Dir, rel string, node *permNode, rule *permRule, part *permPart) {
	defer d.Close()
	names, err := part.names(d)
	if errors.Is(err, fs.ErrNotExist) {
		return // a running program removed it
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
	for _, n := range names {
		if err := w.one(ctx, d, n, rel, node, rule, part.at(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.fail(err)
			return
		}
	}
}

// one fixes one name in d, and all below it. What a running program removes meanwhile is fs.ErrNotExist.
func (w *permWalk) one(ctx context.Context, d vfs.Dir, n, rel string, node *permNode, rule *permRule, part *permPart) error {
	st, err := d.Lstat(n)
	if err != nil {
		return fmt.Errorf("%s: %w", rel, err)
	}
	sub, rule := node.at(n, rule)
	if st.IsRegular() && st.Nlink > 1 {
		w.share(filepath.Join(rel, n), st, rule)
		return nil
	}
	if err := w.fix(d, n, rel, st, rule); err != nil {
		return err
	}
	if !st.IsDir() {
		return nil
	}
	if !rule.all && rule.leaves(n, st) {
		below := *rule
		below.all, rule = true, &below
	}
	in, err := d.OpenDir(n)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil // no longer a folder
	}
	if err != nil {
		return fmt.Errorf("%s: %w", rel, err)
	}
	path := filepath.Join(rel, n)
	select {
	case w.free <- struct{}{}:
		w.wg.Go(func() {
			w.walk(ctx, in, path, sub, rule, part)
			<-w.free
		})
	default:
		w.walk(ctx, in, path, sub, rule, part)
	}
	return nil
}

// fix makes one entry, name in d, what its rule says; rel is the path of d.
func (w *permWalk) fix(d vfs.Dir, name, rel string, st vfs.Stat, rule *permRule) error {
	if !st.IsDir() && !st.IsRegular() {
		return nil
	}
	want, err := rule.want(name, st, func() ([]vfs.Xattr, error) { return d.Xattrs(name) })
	if err == nil {
		if want.nothing() {
			w.right.Add(1)
			return nil
		}
		if w.dry {
			w.fixed.Add(1)
			w.show(filepath.Join(rel, name), st, want)
			return nil
		}
		err = apply(d, name, st, want)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", rel, err)
	}
	w.fixed.Add(1)
	return nil
}

// apply changes the entry that st described, and no other: who may write to the folder could have put another file in
// its place, or given it a name elsewhere. It is fs.ErrNotExist then. The mode comes last: chown(2) clears bits of it, and
// an access control list has it in it.
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

// applyByName is for a file that its owner can't open: an ordinary user, who can't give away what is another's.
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

func (w *permWalk) show(path string, st vfs.Stat, want wanted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.differ) == permShown {
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

// share keeps a file with several names for the end.
func (w *permWalk) share(path string, st vfs.Stat, rule *permRule) {
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

func (w *permWalk) mendShared() error {
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

// planFixperms tells what fixperms would change in the trees as they are now. Accounts that sync would make are no error.
func (e *Env) planFixperms(ctx context.Context) (int, error) {
	say := func(st event.Status, lines []string, format string, args ...any) {
		e.Report.Append(event.Event{Kind: event.Plan, Status: st, Procedure: NameFixperms, Text: NameFixperms + "  " + fmt.Sprintf(format, args...), Lines: lines})
	}
	var lines []string
	trees, err := permTrees(e, permAccounts{users: e.Host.Users, missing: &lines})
	if err != nil {
		say(event.Changed, nil, "decided when its turn comes: %v", err)
		return 0, nil
	}
	missing := len(lines)
	var right, n int64
	for _, t := range trees {
		w, err := t.walk(ctx, e, nil, true)
		if err != nil {
			return 0, err
		}
		right, n = right+w.right.Load(), n+w.fixed.Load()
		slices.Sort(w.differ)
		for _, l := range w.differ {
			lines = append(lines, "~ "+filepath.Join(t.name, l))
		}
	}
	if n == 0 {
		say(event.OK, lines, "%s unchanged", humanize.Count(right))
		return 0, nil
	}
	if more := n - int64(len(lines)-missing); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	say(event.Changed, lines, "%s would change", humanize.Plural(n, "permission"))
	return int(n), nil
}
