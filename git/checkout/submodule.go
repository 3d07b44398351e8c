package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
	"golang.org/x/sys/unix"

	"corpus-git/git/object"
	"corpus-git/git/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// module returns the request's submodule at a path, or nil.
func (r *Request) module(path string) *tree.Submodule {
	for i := range r.Modules {
		if r.Modules[i].Path == path {
			return &r.Modules[i]
		}
	}
	return nil
}

// modules are the submodules of one working copy, open as root. A submodule has its own folder .git, as the working copy has, so that
// a copy of the tree, such as an archive, is complete.
type modules struct {
	ctx  context.Context
	root int
	g    *gitFolder
	st   *Stats
}

// release empties the folders of submodules that are no longer in the request: their tracked files and their .git are removed, untracked
// files stay. It runs first, so that files may take their place.
func (m *modules) release(old *pathList) error {
	dirs := newFolders(m.root, 0o755, nil)
	defer dirs.close()
	for i := range indexEntries(old) {
		e := &old.entries[i]
		if e.Mode != object.ModeGitlink || m.g.req.module(e.Path) != nil {
			continue
		}
		fd, err := dirs.get(e.Path, false)
		if missing(err) {
			continue
		}
		var kept int
		if err == nil {
			kept, err = empty(m.ctx, fd)
		}
		if err != nil {
			return rename(err, e.Path)
		}
		if kept > 0 {
			m.st.Notes = append(m.st.Notes, fmt.Sprintf("kept what git does not track of the submodule %s, which is gone", e.Path))
		}
	}
	return nil
}

// empty removes what a Sync created in the submodule that is open as dir. It does nothing if .git is not ours. kept counts what stays in
// its top folder.
func empty(ctx context.Context, dir int) (kept int, err error) {
	git, err := opendir(dir, gitDir)
	if missing(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer closeDir(git)
	if _, err := lstatat(git, ownLock); err != nil {
		return 0, ignore(err, fs.ErrNotExist)
	}
	g := &gitFolder{req: &Request{}, fd: git, lock: -1}
	f, err := g.readIndex()
	if err != nil {
		return 0, err
	}
	x := g.parse(f)
	dirs := newFolders(dir, 0o755, nil)
	defer dirs.close()
	a := &applier{ctx: ctx, root: dir}
	for i := range indexEntries(x) {
		e := &x.entries[i]
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		flags := 0
		if e.Mode == object.ModeGitlink {
			if fd, err := dirs.get(e.Path, false); err == nil {
				if _, err := empty(ctx, fd); err != nil {
					return 0, err
				}
			}
			flags = unix.AT_REMOVEDIR
		}
		if err := unlink(dirs, e.Path, flags); err != nil && !notEmpty(err) {
			return 0, err
		}
	}
	for i := range indexEntries(x) {
		a.prune(dirs, x.entries[i].Path)
	}
	// A .git without its index is still recognised as ours after a crash here.
	if err := removeAll(dir, gitDir, 0); err != nil {
		return 0, err
	}
	err = dirents(dir, make([]byte, 4096), func(string, byte) { kept++ })
	return kept, err
}

func indexEntries(x *pathList) []entry {
	if x == nil {
		return nil
	}
	return x.entries
}

// removeAll removes a folder and its content, and follows no link.
func removeAll(dir int, name string, depth int) error {
	if depth > tree.MaxDepth {
		return unix.ENAMETOOLONG
	}
	err := retry(func() error { return unix.Unlinkat(dir, name, 0) })
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	fd, err := opendir(dir, name)
	if err != nil {
		return err
	}
	var inner []string
	err = dirents(fd, make([]byte, 4096), func(name string, _ byte) { inner = append(inner, name) })
	for _, n := range inner {
		if err == nil {
			err = removeAll(fd, n, depth+1)
		}
	}
	closeDir(fd)
	if err != nil {
		return err
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}

// populate checks the request's submodules out.
func (m *modules) populate() error {
	req := m.g.req
	dirs := newFolders(m.root, 0o755, req.Owner)
	defer dirs.close()
	for i := range req.Modules {
		mod := &req.Modules[i]
		if err := m.one(dirs, mod); err != nil {
			return fault.New(fault.KindOf(err), "submodule "+printable.Line(mod.Path), "%w", err).WithHint("%s", fault.HintOf(err))
		}
	}
	return nil
}

func (m *modules) one(dirs *folders, mod *tree.Submodule) error {
	req := m.g.req
	sub := *req
	sub.Objects, sub.Repo, sub.Commit, sub.Modules = mod.Objects, mod.Repo, mod.Commit, mod.Modules
	sub.Dir, sub.Branch, sub.Tags, sub.Snapshot = filepath.Join(req.Dir, mod.Path), "", nil, nil
	if err := sub.check(); err != nil {
		return err
	}
	c, err := tree.ReadCommit(mod.Objects, mod.Commit)
	if err != nil {
		return err
	}
	fd, err := dirs.get(mod.Path, true)
	if err != nil {
		return obstacleError(err)
	}
	// "git submodule update" leaves a file here that names a folder in the superproject's .git.
	if st, err := lstatat(fd, gitDir); err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
		if err := unix.Unlinkat(fd, gitDir, 0); err != nil {
			return &fs.PathError{Op: "remove", Path: path.Join(mod.Path, gitDir), Err: err}
		}
	}
	var st Stats
	st.Commit = mod.Commit
	err = syncAt(m.ctx, fd, &sub, c, &st)
	m.st.add(mod.Path, &st)
	return err
}

// add adds a submodule's statistics to the total.
func (st *Stats) add(at string, sub *Stats) {
	st.Files += sub.Files
	st.Written += sub.Written
	st.Removed += sub.Removed
	st.Unchanged += sub.Unchanged
	st.Untracked += sub.Untracked
	st.Bytes += sub.Bytes
	st.LocalChanges.add(at, sub.LocalChanges)
	st.Overwritten.add(at, sub.Overwritten)
	for _, n := range sub.Notes {
		st.Notes = append(st.Notes, at+": "+n)
	}
}

func (p *Paths) add(at string, q Paths) {
	p.Count += q.Count
	for _, f := range q.First {
		if len(p.First) < maxListed {
			p.First = append(p.First, path.Join(at, f))
		}
	}
}

// shallow copies the shallow boundary of the repository that is borrowed from, which alternates do not carry (gitrepository-layout(5)).
func (g *gitFolder) shallow() error {
	data, err := os.ReadFile(filepath.Join(g.req.Repo, "shallow"))
	if errors.Is(err, fs.ErrNotExist) {
		return ignore(unix.Unlinkat(g.fd, "shallow", 0), unix.ENOENT)
	}
	if err != nil {
		return err
	}
	return g.put("shallow", string(data))
}

// dropModules removes submodules from a configuration that this package wrote if the request no longer has them: their url is a folder
// below that of the project's repositories.
func dropModules(c *config.Config, req *Request) (changed bool) {
	if !c.HasSection("submodule") {
		return false
	}
	s := c.Section("submodule")
	ours := filepath.Dir(req.Repo) + "/"
	for i := 0; i < len(s.Subsections); {
		sub := s.Subsections[i]
		known := false
		for _, m := range req.Modules {
			known = known || m.Name == sub.Name
		}
		if known || !strings.HasPrefix(sub.Option("url"), ours) {
			i++
			continue
		}
		s.Subsections = append(s.Subsections[:i], s.Subsections[i+1:]...)
		changed = true
	}
	return changed
}

// refreshModule is Refresh of a submodule that was checked out.
func refreshModule(ctx context.Context, dirs *folders, path, dir string) (int, error) {
	fd, err := dirs.get(path, false)
	if err != nil {
		return 0, nil //nolint:nilerr // no folder, nothing to refresh
	}
	git, err := opendir(fd, gitDir)
	if err != nil {
		return 0, nil //nolint:nilerr // an empty folder, or none of ours
	}
	_, err = lstatat(git, ownLock)
	closeDir(git)
	if err != nil {
		return 0, nil //nolint:nilerr // none of ours
	}
	return refreshAt(ctx, fd, filepath.Join(dir, path))
}
