package checkout

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"corpus-git/git/attributes"
	"corpus-git/git/convert"
	"corpus-git/git/index"
	"corpus-git/git/object"
	"corpus-git/git/refs"
	"corpus-git/git/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

// Request describes what to check out, and where.
type Request struct {
	// Objects has the commit and all objects it refers to. Required.
	Objects tree.Objects
	// Repo is the bare repository, an absolute path: the working copy borrows its objects and has it as remote "origin". Required.
	Repo string
	// Commit is the commit, or a tag of one, to check out. Required.
	Commit plumbing.Hash
	// Dir is the working copy, an absolute path. It is created if it is missing; its parent must exist. It must not be a symbolic link. Required.
	Dir string
	// Branch is the full name (refs/heads/…) of the branch that HEAD is set to; origin's remote-tracking branch of the same name is set
	// too. Empty leaves HEAD detached.
	Branch string
	// Tags are written as tags of the working copy: full names (refs/tags/…) and their targets.
	Tags map[string]plumbing.Hash
	// Reason is the message in the reflog. Default "deploy: <commit>".
	Reason string
	// Owner owns what is written, .git included; nil keeps the process's. Modes are 0644, and 0755 for executables and folders, unless
	// Owner.Perm changes them.
	Owner *Owner
	// Workers is the number of readers and of writers. Default 2.
	Workers int
	// MaxFiles is the number of files that a commit may have. Default 1,048,576.
	MaxFiles int
	// LockWait is the time to wait for another git process in the working copy. Default 5 s.
	LockWait time.Duration
	// NoSync leaves it to the caller to make the files durable (syncfs(2)).
	NoSync bool
	// Modules are the submodules to check out; folders of others stay empty.
	Modules []tree.Submodule
	// Snapshot is a recent scan of Dir: tracked files for which there is nothing to do are not read again. If it is nil, Sync scans. What is
	// written or removed is always checked on the disk; a file that changes after the scan and is equal in both commits stays as it is, until
	// the next Sync finds it. Submodules are always scanned.
	Snapshot *vfs.Snapshot
	// Keep leaves files that were changed on the machine as they are, if they are equal in Commit and the last checkout; if they
	// differ, Sync is refused. Files that were deleted are restored, and submodules are not checked.
	Keep bool
	// Now is the clock of the reflog; nil is time.Now.
	Now func() time.Time

	preview bool // plan only
}

func (r *Request) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// short returns the branch without refs/heads/.
func (r *Request) short() string { return strings.TrimPrefix(r.Branch, "refs/heads/") }

func (r *Request) check() error {
	usage := func(format string, args ...any) error { return fault.New(fault.Usage, "checkout", format, args...) }
	switch {
	case r.Objects == nil || r.Commit.IsZero():
		return usage("a request needs objects and a commit")
	case !filepath.IsAbs(r.Dir) || !filepath.IsAbs(r.Repo) || strings.ContainsAny(r.Repo, "\n"):
		return usage("%q and %q must be absolute paths", r.Dir, r.Repo)
	case r.Branch != "" && (!strings.HasPrefix(r.Branch, "refs/heads/") || refs.CheckName(r.Branch) != nil):
		return usage("%q is not a valid branch name", r.Branch)
	}
	if r.Workers <= 0 {
		r.Workers = 2
	}
	return nil
}

// Paths is a list of paths that may be long: all are counted, the first few are named.
type Paths struct {
	Count int      `json:"count"`
	First []string `json:"first,omitempty"`
}

const maxListed = 20

func newPaths(all []string) Paths {
	return Paths{Count: len(all), First: append([]string(nil), all[:min(len(all), maxListed)]...)}
}

// list formats the paths for one line of an error.
func list(all []string) string {
	shown := printable.Lines(all[:min(len(all), 3)])
	if len(all) > 3 {
		return strings.Join(shown, ", ") + " and others"
	}
	return strings.Join(shown, ", ")
}

// Stats describes what a Sync did.
type Stats struct {
	// Commit is what is checked out now, Previous what HEAD was before; zero on the first checkout.
	Commit   plumbing.Hash `json:"commit"`
	Previous plumbing.Hash `json:"previous"`
	// Files is the number of tracked ones: Written and Unchanged.
	Files     int `json:"files"`
	Written   int `json:"written"`
	Removed   int `json:"removed"`
	Unchanged int `json:"unchanged"`
	// Untracked counts what git does not track, and what therefore stayed, in tracked folders; an untracked folder counts once.
	Untracked int `json:"untracked"`
	// Bytes is the size of what was written.
	Bytes int64 `json:"bytes"`
	// LocalChanges are tracked files that were changed or deleted on the machine, and are as in the commit now.
	LocalChanges Paths `json:"local_changes"`
	// Kept are files that were changed on the machine and were left unchanged.
	Kept Paths `json:"kept"`
	// Overwritten are untracked files that were replaced by tracked ones.
	Overwritten Paths `json:"overwritten"`
	// Touched are the paths that were written, unless there were more than maxTouched, or the commit has submodules.
	Touched []string `json:"-"`
	// Notes are sentences for people: submodules, LFS, attributes that are not honoured.
	Notes []string `json:"notes,omitempty"`
}

// Sync checks a commit out into a working copy: what differs is written, what the commit no longer has is removed, what git does
// not track stays. Files that were changed on the machine are overwritten, and counted.
//
// Before anything is written it fails with fault.Refused if the commit's tree cannot be written safely, or if an untracked folder is
// in the way of a file, and with fault.Busy if another git process works there. When it returns without an error, files, refs and index
// are durable (unless NoSync is set), and git status is clean. After an interruption at any point the next Sync completes it.
func Sync(ctx context.Context, req Request) (Stats, error) {
	var st Stats
	if err := req.check(); err != nil {
		return st, err
	}
	id, data, err := tree.Peel(req.Objects, req.Commit)
	if err != nil {
		return st, err
	}
	c, err := tree.ParseCommit(id, data)
	if err != nil {
		return st, err
	}
	req.Commit, st.Commit = id, id
	root, err := openRoot(req.Dir)
	if err != nil {
		return st, err
	}
	defer unix.Close(root)
	err = syncAt(ctx, root, &req, c, &st)
	return st, err
}

// Preview reports what Sync would do to an existing working copy, and writes nothing; if Sync would be refused, it returns the same
// error.
func Preview(ctx context.Context, req Request) (Stats, error) {
	req.preview = true
	return Sync(ctx, req)
}

// syncAt is Sync of the folder that is open as root.
func syncAt(ctx context.Context, root int, req *Request, c *object.Commit, st *Stats) error {
	g, err := openGit(ctx, root, req)
	if err != nil {
		return err
	}
	defer g.close()
	err = checkout(ctx, root, g, c, st)
	st.Notes = append(st.Notes, g.notes...)
	if err == nil && !req.preview {
		err = (&modules{ctx: ctx, root: root, g: g, st: st}).populate()
	}
	if len(req.Modules) > 0 {
		st.Touched = nil
	}
	return err
}

func openRoot(dir string) (int, error) {
	if err := unix.Mkdir(dir, 0o755); err != nil && err != unix.EEXIST {
		return -1, fmt.Errorf("mkdir %s: %w", dir, err)
	}
	fd, err := unix.Open(dir, dirFlags, 0)
	switch {
	case notDir(err):
		return -1, fault.New(fault.Refused, "checkout", "%s is a symbolic link or a file; a working copy is a folder", dir)
	case err != nil:
		return -1, fmt.Errorf("open %s: %w", dir, err)
	}
	return fd, nil
}

// fill records what was done.
func (st *Stats) fill(g *gitFolder, p *planner, todo *plan, a *applier, next *pathList) {
	st.Files, st.Written, st.Removed, st.Unchanged = files(next.entries), len(todo.writes), len(todo.removes), todo.unchanged
	st.Untracked, st.Bytes = todo.untracked, a.bytes.Load()
	st.LocalChanges, st.Overwritten, st.Kept = newPaths(todo.local), newPaths(todo.overwritten), newPaths(todo.kept)
	st.Touched = todo.touched(next.entries)
	st.Notes = append(st.Notes, a.notes...)
	st.Notes = append(st.Notes, notes(g.req, next.entries, p.newEOL, a.lfs.paths)...)
	if g.resumed != "" {
		st.Notes = append(st.Notes, fmt.Sprintf("completed a checkout of %.12s that was interrupted", g.resumed))
	}
}

// commit returns the commit that HEAD of the working copy points to, or zero.
func (g *gitFolder) commit() plumbing.Hash {
	h, err := g.ref("HEAD")
	if err != nil {
		return plumbing.ZeroHash
	}
	if to, ok := strings.CutPrefix(h, "ref: "); ok && refs.CheckName(to) == nil {
		h, _ = g.ref(to)
	}
	return plumbing.NewHash(h)
}

// checkout is Sync once everything is open and locked.
func checkout(ctx context.Context, root int, g *gitFolder, c *object.Commit, st *Stats) error {
	req := g.req
	in, err := g.readIndex()
	if err != nil {
		return err
	}
	p := &planner{ctx: ctx, objs: req.Objects, snapshot: req.Snapshot, keepLocal: req.Keep}
	trees := newTreeLister(ctx, req.Objects, req.Workers, req.MaxFiles)
	old := p.begin(g, in, trees, c.Tree)
	if !req.preview {
		if err := (&modules{ctx: ctx, root: root, g: g, st: st}).release(old); err != nil {
			return err
		}
	}
	st.Previous = g.commit()
	next, err := p.lists(trees, old, c.Tree)
	if err == nil && p.collapsed && !p.mayCollapse() {
		old = p.expand(g, in)
		next, err = p.lists(trees, old, c.Tree)
	}
	if err != nil {
		return err
	}
	resume(ctx, g, p)
	todo, err := p.makePlan(root, req.Workers)
	if err != nil {
		return err
	}
	if err := todo.refuse(); err != nil {
		return err
	}
	if req.preview {
		st.LocalChanges, st.Kept = newPaths(todo.local), newPaths(todo.kept)
		return nil
	}
	if err := g.setup(); err != nil {
		return err
	}
	changed := len(todo.writes)+len(todo.removes)+len(todo.obstacles)+len(todo.emptyFolders)+len(todo.gone) > 0
	if changed {
		if err := g.begin(); err != nil {
			return err
		}
	}
	a := &applier{ctx: ctx, objs: req.Objects, root: root, new: next.entries, eol: p.newEOL, owner: req.Owner, workers: req.Workers}
	if err := a.clear(todo, p.leftovers()); err != nil {
		return err
	}
	if err := a.write(todo); err != nil {
		return err
	}
	st.fill(g, p, todo, a, next)
	if err := g.head(); err != nil {
		return err
	}
	if !req.NoSync {
		// One syncfs makes all files, folders and refs durable, in fewer commits of the journal than one call for each.
		if err := retry(func() error { return syncfs(root, changed || st.Previous != st.Commit) }); err != nil {
			return fmt.Errorf("syncfs %s: %w", req.Dir, err)
		}
	}
	if old == nil || changed || in.marked || todo.refreshed > 0 || old.tree == nil || old.tree.Hash != next.tree.Hash || old.tree.Count < 0 {
		if err := g.writeIndex(next); err != nil {
			return fmt.Errorf("write index: %w", err)
		}
		p.counted = nil
	} else {
		next.id = in.id
	}
	// Record which folders were read again, too, so that the next Sync can skip them.
	if p.counted == nil || len(p.dirty) > 0 || !slices.Equal(p.counted.list, todo.counts) {
		if err := g.writeFolderCounts(&folderCounts{at: p.countedAt(g.fd), list: todo.counts}, next.id); err != nil {
			return fmt.Errorf("write %s: %w", countsFile, err)
		}
	}
	return g.end()
}

// resume tells the planner what an interrupted checkout may have written. If its commit is gone, for example that of a discarded push, its
// files count as local changes.
func resume(ctx context.Context, g *gitFolder, p *planner) {
	if !plumbing.IsHash(g.resumed) {
		return
	}
	c, err := tree.ReadCommit(p.objs, plumbing.NewHash(g.resumed))
	if err != nil {
		return
	}
	x, err := newTreeLister(ctx, p.objs, g.req.Workers, g.req.MaxFiles).list(c.Tree, nil)
	if err != nil {
		return
	}
	if eol, err := attributesOf(p.objs, x.entries); err == nil {
		p.interrupted(x.entries, eol)
	}
}

func syncfs(fd int, need bool) error {
	if !need {
		return nil
	}
	return unix.Syncfs(fd)
}

// sameAttributes reports whether two lists have the same .gitattributes.
func sameAttributes(a, b []entry) bool {
	next := func(l []entry) ([]entry, *entry) {
		for i := range l {
			if l[i].attrs {
				return l[i+1:], &l[i]
			}
		}
		return nil, nil
	}
	for {
		var x, y *entry
		a, x = next(a)
		b, y = next(b)
		if x == nil || y == nil {
			return x == y
		}
		if x.Path != y.Path || x.Hash != y.Hash || !object.SameType(x.Mode, y.Mode) {
			return false
		}
	}
}

// notes returns what people should know about a commit's files.
func notes(req *Request, entries []entry, a *attributes.Attributes, pointers []string) []string {
	var out []string
	var subs, encoded, filtered []string
	var lfs []*entry
	for i := range entries {
		e := &entries[i]
		if e.Mode == object.ModeGitlink {
			if req.module(e.Path) == nil {
				subs = append(subs, e.Path)
			}
			continue
		}
		if !object.SameType(e.Mode, object.ModeFile) || !a.MayNote(e.Path) {
			continue
		}
		at := a.Of(e.Path)
		if v := at[attributes.AttrEncoding]; v.State == attributes.HasValue && v.Text != "" && !convert.Supported(v.Text) {
			encoded = append(encoded, e.Path)
		}
		switch v := at[attributes.AttrFilter]; {
		case v.Is("lfs"):
			lfs = append(lfs, e)
		case v.State == attributes.HasValue:
			filtered = append(filtered, e.Path)
		}
	}
	add := func(l []string, format string) {
		if len(l) > 0 {
			out = append(out, fmt.Sprintf(format, len(l), list(l)))
		}
	}
	if len(subs) > 0 {
		out = append(out, "submodules left as empty folders: "+list(subs)+" (no entry in .gitmodules, update = none there, or  submodules: empty  in the configuration)")
	}
	if n := lfsNote(req.Objects, lfs, pointers); n != "" {
		out = append(out, n)
	}
	add(filtered, "%d files have a filter in .gitattributes, which is not run: %s")
	add(encoded, "%d files have a working-tree-encoding that is not known here, and are written as UTF-8: %s")
	return out
}

// Refresh updates the inode facts in the index for files whose owner or mode the deployment itself changed after Sync (fixperms): same
// file, size and modification time, different change time. Without it the next Sync, and an operator's git status, would read those files
// again. It changes only the index, and writes the index only if something differs.
func Refresh(ctx context.Context, dir string) (refreshed int, err error) {
	if !filepath.IsAbs(dir) {
		return 0, fault.New(fault.Usage, "refresh", "%q must be an absolute path", dir)
	}
	root, err := unix.Open(dir, dirFlags, 0)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", dir, err)
	}
	defer unix.Close(root)
	var st unix.Stat_t
	if err := unix.Fstatat(root, gitDir+"/index", &st, unix.AT_SYMLINK_NOFOLLOW); errors.Is(err, unix.ENOENT) || notDir(err) {
		return 0, nil // not checked out by Sync: there is nothing to refresh, and no .git to create
	}
	return refreshAt(ctx, root, dir)
}

// refreshAt is Refresh of the folder that is open as root, and of its submodules.
func refreshAt(ctx context.Context, root int, dir string) (refreshed int, err error) {
	g, err := openGit(ctx, root, &Request{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer g.close()
	in, err := g.readIndex()
	if err != nil {
		return 0, err
	}
	x := g.parse(in)
	if x == nil {
		return 0, nil
	}
	inner, err := refreshModules(ctx, root, x, dir)
	if err != nil {
		return inner, err
	}
	var n atomic.Int64
	l := statScan{root: root, entries: x.entries, see: func(i int, now *unix.Stat_t) bool {
		e := &x.entries[i]
		if !object.SameType(e.Mode, now.Mode) || e.Stat.Racy(&in.written) {
			return false
		}
		is := index.NewStat(now)
		same := is.SameContent(e.Stat)
		if same && is != e.Stat {
			e.SetStat(is)
			n.Add(1)
		}
		return same
	}}
	if _, err := l.statAll(ctx, 2); err != nil || n.Load() == 0 {
		return inner, err
	}
	for i := range x.entries {
		if e := &x.entries[i]; e.Stat.Racy(&in.written) {
			// A newer index would hide that such a file may have changed: git's "smudging".
			e.SetStat(index.Stat{})
		}
	}
	if err := g.writeIndex(x); err != nil {
		return inner, err
	}
	if in.counts != nil {
		err = g.writeFolderCounts(in.counts, x.id)
	}
	return int(n.Load()) + inner, err
}

// refreshModules is Refresh for the submodules in an index.
func refreshModules(ctx context.Context, root int, x *pathList, dir string) (refreshed int, err error) {
	dirs := newFolders(root, 0o755, nil)
	defer dirs.close()
	for i := range x.entries {
		if e := &x.entries[i]; e.Mode == object.ModeGitlink {
			n, err := refreshModule(ctx, dirs, e.Path, dir)
			if refreshed += n; err != nil {
				return refreshed, err
			}
		}
	}
	return refreshed, nil
}
