package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"golang.org/x/sys/unix"

	"corpus-git/git/refs"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

const (
	gitDir = ".git"
	// ownLock is held with flock(2) while a Sync runs: the kernel releases it when the process dies.
	ownLock = "corpus-git.lock"
	// underway names the commit that is being checked out, from before the first write until the index is written. It is a dangling
	// symbolic link: the target is part of the inode, so a power cut that kept any file of the checkout kept it too.
	underway = "corpus-git.checkout"
	// indexLock keeps other git processes away, and becomes the index, as in git. lockMark in it, or the sticky bit, marks it as ours.
	indexLock = "index.lock"
	lockMark  = "corpus-git\n"
	// foreignLockAge is the age from which another program's index.lock counts as left by a dead process.
	foreignLockAge = time.Hour
	maxIndexFile   = 1 << 30
	maxSmallFile   = 1 << 20
)

// gitFolder is the .git of a working copy, open and locked.
type gitFolder struct {
	req  *Request
	fd   int
	lock int
	// index is the open index.lock; -1 if none is held, or it is already the index.
	index int
	dirs  *folders
	// resumed is the commit of a checkout that did not end, or "".
	resumed string
	notes   []string
	// replaced are the files of .git that were replaced.
	replaced vfs.Held
}

// openGit opens, creates or fixes the .git of the working copy at root, and locks it.
func openGit(ctx context.Context, root int, req *Request) (*gitFolder, error) {
	if err := unix.Mkdirat(root, gitDir, 0o755); err != nil && err != unix.EEXIST {
		return nil, &fs.PathError{Op: "mkdir", Path: gitDir, Err: err}
	}
	fd, err := opendir(root, gitDir)
	if err == nil && req.Owner != nil {
		if err = req.Owner.setOwner(fd, 0o755); err != nil {
			_ = unix.Close(fd)
		}
	}
	if notDir(err) {
		return nil, fault.New(fault.Refused, "checkout", "%s is not a folder", filepath.Join(req.Dir, gitDir)).
			WithHint("a deployed working copy has a repository of its own; move that file away and deploy again")
	}
	if err != nil {
		return nil, err
	}
	g := &gitFolder{req: req, fd: fd, lock: -1, index: -1, dirs: newFolders(fd, 0o755, req.Owner)}
	err = g.acquire(ctx)
	if err == nil {
		g.resumed, err = g.interrupted()
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// begin marks the checkout as running; end removes the mark.
func (g *gitFolder) begin() error {
	if g.resumed == g.req.Commit.String() {
		return nil
	}
	const tmp = tmpPrefix + underway
	err := unix.Symlinkat(g.req.Commit.String(), g.fd, underway)
	if err == unix.EEXIST { // of the checkout that did not end
		if err = ignore(unix.Unlinkat(g.fd, tmp, 0), unix.ENOENT); err == nil {
			err = unix.Symlinkat(g.req.Commit.String(), g.fd, tmp)
		}
		if err == nil {
			err = unix.Renameat(g.fd, tmp, g.fd, underway)
		}
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: path.Join(gitDir, underway), Err: err}
	}
	return nil
}

// interrupted returns the commit that an earlier checkout did not complete, or "".
func (g *gitFolder) interrupted() (string, error) {
	to, err := readlinkat(g.fd, underway, 64)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, unix.EINVAL): // a regular file, written by earlier versions
		to, err = g.file(underway)
	}
	return strings.TrimSpace(to), err
}

func (g *gitFolder) end() error {
	return ignore(unix.Unlinkat(g.fd, underway, 0), unix.ENOENT)
}

func (g *gitFolder) close() {
	if g.index >= 0 {
		if _, ours := g.ours(); ours {
			_ = unix.Unlinkat(g.fd, indexLock, 0)
		}
		_ = unix.Close(g.index)
	}
	if g.lock >= 0 {
		_ = unix.Close(g.lock)
	}
	g.dirs.close()
	g.replaced.Release()
	_ = unix.Close(g.fd)
}

// acquire takes both locks, waiting up to Request.LockWait.
func (g *gitFolder) acquire(ctx context.Context) error {
	lock, err := openat(g.fd, ownLock, unix.O_RDWR|unix.O_CREAT|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	if err := g.req.Owner.setOwner(lock, 0o600); err != nil {
		_ = unix.Close(lock)
		return err
	}
	wait := g.req.LockWait
	if wait <= 0 {
		wait = 5 * time.Second
	}
	busy := func(name string) error {
		return fault.New(fault.Busy, "checkout", "another process works on %s", g.req.Dir).
			WithHint("if none does, remove %s and try again", filepath.Join(g.req.Dir, gitDir, name))
	}
	deadline := time.Now().Add(wait)
	err = poll(ctx, deadline, func() (bool, error) {
		err := unix.Flock(lock, unix.LOCK_EX|unix.LOCK_NB)
		return err == nil, ignore(err, unix.EWOULDBLOCK)
	})
	if err == errTimeout {
		err = busy(ownLock)
	}
	if err == nil {
		err = poll(ctx, deadline, g.acquireIndex)
		if err == errTimeout {
			err = busy(indexLock)
		}
	}
	if err != nil {
		_ = unix.Close(lock)
		return err
	}
	g.lock = lock
	return nil
}

var errTimeout = errors.New("timeout")

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

func poll(ctx context.Context, deadline time.Time, try func() (bool, error)) error {
	for {
		ok, err := try()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errTimeout
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// file reads a small file below .git; "" if there is none, or something else that put replaces.
func (g *gitFolder) file(name string) (string, error) {
	dir, err := g.dirs.get(strings.Trim(path.Dir(name), "."), false)
	if err == nil {
		var data []byte
		data, _, err = readFileAt(dir, path.Base(name), maxSmallFile)
		if err == nil {
			return string(data), nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
		return "", nil
	}
	return "", rename(err, path.Join(gitDir, name))
}

// put writes a small file below .git if its content differs.
func (g *gitFolder) put(name, text string) error {
	if have, err := g.file(name); err != nil || have == text {
		return err
	}
	dir, err := g.dirs.get(strings.Trim(path.Dir(name), "."), true)
	if err == nil {
		err = writeFileAt(dir, path.Base(name), []byte(text), false, g.req.Owner, &g.replaced)
	}
	if err != nil {
		return rename(err, path.Join(gitDir, name))
	}
	return nil
}

// setup creates what a repository consists of, and leaves what an operator added.
func (g *gitFolder) setup() error {
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if _, err := g.dirs.get(dir, true); err != nil {
			return rename(err, path.Join(gitDir, dir))
		}
	}
	objects := filepath.Join(g.req.Repo, "objects")
	have, err := g.file("objects/info/alternates")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Split(have, "\n"), objects) {
		if err := g.put("objects/info/alternates", objects+"\n"+have); err != nil {
			return err
		}
	}
	if err := g.shallow(); err != nil {
		return err
	}
	return g.config()
}

// config keeps the operator's settings and sets those that this package depends on.
func (g *gitFolder) config() error {
	have, err := g.file("config")
	if err != nil {
		return err
	}
	c := config.New()
	if err := config.NewDecoder(strings.NewReader(have)).Decode(c); err != nil {
		g.notes = append(g.notes, "replaced the working copy's .git/config, which could not be read")
		c = config.New()
	}
	changed := false
	set := func(section, sub, key, value string) {
		var options *config.Options
		if sub == "" {
			options = &c.Section(section).Options
		} else {
			options = &c.Section(section).Subsection(sub).Options
		}
		if all := options.GetAll(key); len(all) != 1 || all[0] != value {
			changed = true
			if sub == "" {
				c.Section(section).SetOption(key, value)
			} else {
				c.Section(section).Subsection(sub).SetOption(key, value)
			}
		}
	}
	set("core", "", "repositoryformatversion", "0")
	set("core", "", "filemode", "false")
	set("core", "", "bare", "false")
	set("core", "", "logallrefupdates", "true")
	set("core", "", "autocrlf", "false")
	set("core", "", "symlinks", "true")
	set("remote", "origin", "url", g.req.Repo)
	set("remote", "origin", "fetch", "+refs/heads/*:refs/remotes/origin/*")
	if b := g.req.short(); b != "" {
		set("branch", b, "remote", "origin")
		set("branch", b, "merge", g.req.Branch)
	}
	// Its url makes git treat a submodule as active: gitsubmodules(7), "Active submodules".
	for _, m := range g.req.Modules {
		set("submodule", m.Name, "url", m.Repo)
	}
	if !dropModules(c, g.req) && !changed {
		return nil
	}
	var out bytes.Buffer
	if err := config.NewEncoder(&out).Encode(c); err != nil {
		return err
	}
	return g.put("config", out.String())
}

// ref resolves a loose or packed ref of the working copy; "" if there is none.
func (g *gitFolder) ref(name string) (string, error) {
	text, err := g.file(name)
	if err != nil || strings.TrimSpace(text) != "" {
		return strings.TrimSpace(text), err
	}
	packed, err := g.file("packed-refs")
	for line := range strings.Lines(packed) {
		if hash, ref, ok := strings.Cut(strings.TrimSpace(line), " "); ok && ref == name {
			return hash, nil
		}
	}
	return "", err
}

// head sets branch, remote-tracking branch, HEAD and tags as requested, writes the reflogs, and ends an operator's unfinished merge or the
// like, as git reset --hard does.
func (g *gitFolder) head() error {
	commit := g.req.Commit.String()
	before, tracking := "", ""
	old, err := g.file("HEAD")
	if err != nil {
		return err
	}
	old = strings.TrimSpace(old)
	if to, ok := strings.CutPrefix(old, "ref: "); ok && refs.CheckName(to) == nil {
		if before, err = g.ref(to); err != nil {
			return err
		}
		tracking = "refs/remotes/origin/" + strings.TrimPrefix(to, "refs/heads/")
	} else if plumbing.IsHash(old) {
		before = old
	}
	if tracking != "" && plumbing.IsHash(before) {
		if last, err := g.ref(tracking); err != nil {
			return err
		} else if last != "" && last != before && before != commit {
			g.notes = append(g.notes, fmt.Sprintf("the working copy had commits of its own: %.12s is left to its reflog", before))
		}
	}
	if b := g.req.Branch; b != "" {
		if err := errors.Join(g.put(b, commit+"\n"), g.put("refs/remotes/origin/"+g.req.short(), commit+"\n"), g.put("HEAD", "ref: "+b+"\n")); err != nil {
			return err
		}
	} else if err := g.put("HEAD", commit+"\n"); err != nil {
		return err
	}
	if before != commit {
		if plumbing.IsHash(before) {
			if err := g.put("ORIG_HEAD", before+"\n"); err != nil {
				return err
			}
		}
		if err := g.reflog(before, commit); err != nil {
			return err
		}
	}
	for _, name := range []string{"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "AUTO_MERGE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		switch err := unix.Unlinkat(g.fd, name, 0); err {
		case nil:
			if strings.HasSuffix(name, "_HEAD") {
				g.notes = append(g.notes, "ended what an operator had begun in the working copy ("+name+")")
			}
		case unix.ENOENT:
		default:
			return &fs.PathError{Op: "remove", Path: path.Join(gitDir, name), Err: err}
		}
	}
	return g.tags()
}

func (g *gitFolder) reflog(before, commit string) error {
	if !plumbing.IsHash(before) {
		before = plumbing.ZeroHash.String()
	}
	why := g.req.Reason
	if why == "" {
		why = "deploy: " + commit
	}
	why = strings.Join(strings.Fields(why), " ")
	line := fmt.Sprintf("%s %s corpus-git <corpus-git@localhost> %d +0000\t%s\n", before, commit, g.req.now().Unix(), why)
	logs := []string{"logs/HEAD"}
	if g.req.Branch != "" {
		logs = append(logs, "logs/"+g.req.Branch)
	}
	for _, name := range logs {
		dir, err := g.dirs.get(path.Dir(name), true)
		if err != nil {
			return rename(err, path.Join(gitDir, name))
		}
		fd, err := openat(dir, path.Base(name), unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_NONBLOCK, 0o644)
		if err == nil {
			_, err = fdWriter(fd).Write([]byte(line))
			err = errors.Join(err, g.req.Owner.setOwner(fd, 0o644), unix.Close(fd))
		}
		if err != nil {
			return rename(err, path.Join(gitDir, name))
		}
	}
	return nil
}

// tags writes the request's tags into packed-refs, beside existing refs: builds ask git describe for a version.
func (g *gitFolder) tags() error {
	if len(g.req.Tags) == 0 {
		return nil
	}
	have, err := g.file("packed-refs")
	if err != nil {
		return err
	}
	all := map[string]string{}
	for line := range strings.Lines(have) {
		hash, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && plumbing.IsHash(hash) {
			all[name] = hash
		}
	}
	for name, hash := range g.req.Tags {
		// The store of refs checks new names. An invalid name here was written by another program, and must not stop the checkout.
		if err := refs.CheckName(name); err != nil || !strings.HasPrefix(name, "refs/tags/") {
			g.notes = append(g.notes, "left out of the working copy: the tag "+printable.Line(name)+", whose name git does not take")
			continue
		}
		all[name] = hash.String()
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("# pack-refs with: sorted \n")
	for _, name := range names {
		fmt.Fprintf(&b, "%s %s\n", all[name], name)
	}
	return g.put("packed-refs", b.String())
}
