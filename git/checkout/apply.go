package checkout

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"corpus-git/git/attributes"
	"corpus-git/git/convert"
	"corpus-git/git/index"
	"corpus-git/git/object"
	"corpus-git/git/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

// Owner is the owner of a written file or folder; -1 leaves user or group unset. Perm maps the permissions that git records, 0644 or 0755,
// to those to set; nil keeps them.
type Owner struct {
	UID, GID int
	Perm     func(folder bool, perm uint32) uint32
}

// setOwner sets owner and mode of a file below .git. Without an owner the mode is that of the umask.
func (o *Owner) setOwner(fd int, mode uint32) error {
	if o == nil {
		return nil
	}
	_, err := o.apply(fd, mode)
	return err
}

// apply sets the exact mode of an open file, whatever the umask is, and its owner. It returns the inode's facts afterwards.
func (o *Owner) apply(fd int, mode uint32) (st unix.Stat_t, err error) {
	if err := unix.Fstat(fd, &st); err != nil {
		return st, err
	}
	if o != nil && o.Perm != nil {
		mode = o.Perm(st.Mode&unix.S_IFMT == unix.S_IFDIR, mode)
	}
	give := o != nil && (o.UID >= 0 && st.Uid != uint32(o.UID) || o.GID >= 0 && st.Gid != uint32(o.GID))
	if give {
		if err := unix.Fchown(fd, o.UID, o.GID); err != nil {
			return st, err
		}
	}
	set := st.Mode&0o7777 != mode
	if set {
		if err := unix.Fchmod(fd, mode); err != nil {
			return st, err
		}
	}
	if give || set {
		err = unix.Fstat(fd, &st)
	}
	return st, err
}

// applier carries out a plan.
type applier struct {
	ctx     context.Context
	objs    tree.Objects
	root    int
	new     []entry
	eol     *attributes.Attributes
	owner   *Owner
	workers int

	bytes atomic.Int64
	lfs   pointers     // files of git-lfs that were written
	names atomic.Int64 // for temporary names
	notes []string
}

// clear removes what the commit does not have and what is in the way, and then the folders that are empty.
func (a *applier) clear(p *plan, leftovers []string) error {
	dirs := newFolders(a.root, 0o755, a.owner)
	defer dirs.close()
	for _, l := range [][]string{p.tempFiles, p.removes, p.obstacles} {
		for _, name := range l {
			if err := a.ctx.Err(); err != nil {
				return err
			}
			if err := unlink(dirs, name, 0); err != nil {
				return err
			}
		}
	}
	for _, name := range p.gone {
		err := unlink(dirs, name, unix.AT_REMOVEDIR)
		switch {
		case notEmpty(err):
			a.notes = append(a.notes, "kept the files of the removed submodule "+printable.Line(name))
		case err != nil:
			return err
		}
		a.prune(dirs, name)
	}
	for _, l := range [][]string{p.removes, leftovers} {
		for _, name := range l {
			a.prune(dirs, name)
		}
	}
	for _, name := range p.emptyFolders {
		up, base := path.Split(name)
		dir, err := dirs.get(strings.TrimSuffix(up, "/"), false)
		if err == nil {
			err = removeEmptyFolders(dir, base, 0)
		}
		if err != nil && !missing(err) {
			return fault.New(fault.Failed, "checkout", "%s: somebody put files in the way while it was being replaced: %w", printable.Line(name), err)
		}
	}
	return nil
}

func notEmpty(err error) bool {
	return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EBUSY)
}

// unlink removes a path that may not exist.
func unlink(dirs *folders, name string, flags int) error {
	up, base := path.Split(name)
	dir, err := dirs.get(strings.TrimSuffix(up, "/"), false)
	if err == nil {
		err = retry(func() error { return unix.Unlinkat(dir, base, flags) })
	}
	// A folder replaced a file, before or after the walk; it is untracked and stays.
	if err == nil || missing(err) || flags == 0 && errors.Is(err, unix.EISDIR) {
		return nil
	}
	return rename(&fs.PathError{Op: "remove", Err: err}, name)
}

// prune removes the folders above a removed path that are empty and not in the commit.
func (a *applier) prune(dirs *folders, name string) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if lo, hi := under(a.new, dir+"/"); lo != hi || find(a.new, dir) != nil {
			return
		}
		up, base := path.Split(dir)
		fd, err := dirs.get(strings.TrimSuffix(up, "/"), false)
		if err != nil {
			continue // already gone
		}
		if err := unix.Unlinkat(fd, base, unix.AT_REMOVEDIR); err != nil && err != unix.ENOENT {
			return
		}
	}
}

// removeEmptyFolders removes a folder that holds only folders and our own temporary files.
func removeEmptyFolders(dir int, name string, depth int) error {
	if depth > tree.MaxDepth {
		return unix.ENAMETOOLONG
	}
	fd, err := opendir(dir, name)
	if err != nil {
		return err
	}
	var inner []string
	err = dirents(fd, make([]byte, 4096), func(name string, _ byte) { inner = append(inner, name) })
	for _, n := range inner {
		if err == nil && strings.HasPrefix(n, tmpPrefix) {
			err = unix.Unlinkat(fd, n, 0)
		} else if err == nil {
			err = removeEmptyFolders(fd, n, depth+1)
		}
	}
	closeDir(fd)
	if err != nil {
		return err
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}

// perWorker is how many files are worth another goroutine.
const perWorker = 2

// maxKept is the size of a file up to which the one that it replaces may take its space a little longer (vfs.Held).
const maxKept = 1 << 20

// write writes every file of the plan, in parallel. The folders are made first, while the objects are looked up: on a first checkout a
// folder takes as long as a file.
func (a *applier) write(p *plan) error {
	hashes, at := make([]plumbing.Hash, 0, len(p.writes)), make([]int, 0, len(p.writes))
	for _, i := range p.writes {
		if e := &a.new[i]; e.Mode != object.ModeGitlink {
			hashes, at = append(hashes, e.Hash), append(at, i)
		}
	}
	if len(p.writes) == 0 {
		return nil
	}
	// Equal content is read once for each file: the forest passes it to both.
	workers := max(1, min(a.workers, len(p.writes)/perWorker))
	cache, replaced := make([]*folders, workers), make([]vfs.Held, workers)
	for w := range cache {
		cache[w] = newFolders(a.root, 0o755, a.owner)
		defer cache[w].close()
		defer replaced[w].Release()
	}
	var made map[string]bool
	folders := func() (err error) {
		made, err = a.makeFolders(p, cache)
		for _, c := range cache {
			c.there = made
		}
		return err
	}
	return eachBlob(a.ctx, a.objs, hashes, workers, folders, func(w, i int, b blob) error {
		e := &a.new[at[i]]
		up, base := split(e.Path)
		dir, err := cache[w].get(up, true)
		if err == nil {
			err = a.put(dir, base, e, b, made[up], &replaced[w])
		}
		return obstacleError(err)
	})
}

// split returns a path's folder, without its slash, and its last name.
func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// foldersAtOnce is how many folders a goroutine creates per batch.
const foldersAtOnce = 64

// makeFolders creates the folders of all files to write, and reports which did not exist.
func (a *applier) makeFolders(p *plan, dirs []*folders) (map[string]bool, error) {
	var all []string
	for _, i := range p.writes {
		e := &a.new[i]
		dir, _ := split(e.Path)
		if e.Mode == object.ModeGitlink {
			dir = e.Path
		}
		if dir != "" && (len(all) == 0 || all[len(all)-1] != dir) {
			all = append(all, dir)
		}
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, len(dirs))
	for w := range dirs {
		work := func() {
			for errs[w] == nil {
				lo := int(next.Add(foldersAtOnce)) - foldersAtOnce
				if lo >= len(all) {
					return
				}
				for _, dir := range all[lo:min(lo+foldersAtOnce, len(all))] {
					if errs[w] = a.ctx.Err(); errs[w] == nil {
						_, errs[w] = dirs[w].get(dir, true)
					}
					if errs[w] != nil {
						break
					}
				}
			}
		}
		if w == len(dirs)-1 {
			work()
		} else {
			wg.Go(work)
		}
	}
	wg.Wait()
	made := map[string]bool{}
	for _, d := range dirs {
		maps.Copy(made, d.made)
	}
	return made, obstacleError(cmp.Or(errs...))
}

// obstacleError explains errors of a tree that changes during the checkout.
func obstacleError(err error) error {
	if err != nil && notDir(err) {
		return fault.New(fault.Failed, "checkout", "a folder was replaced while it was being written: %w", err).
			WithHint("something else changes the working copy; stop it, and push again")
	}
	return err
}

// put writes one file or link: under a temporary name, then renamed, so that readers of the tree see the old one or the new one. In a
// folder that this checkout created (fresh) it is created under its own name.
func (a *applier) put(dir int, name string, e *entry, b blob, fresh bool, old *vfs.Held) (err error) {
	tmp := tmpPrefix + strconv.FormatInt(a.names.Add(1), 36)
	if e.Mode == object.ModeSymlink {
		return a.link(dir, name, tmp, e, b)
	}
	mode := uint32(0o644)
	if e.Mode == object.ModeExecutable {
		mode = 0o755
	}
	if fresh {
		tmp = name
	}
	fd, err := openat(dir, tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) && fresh {
		return a.put(dir, name, e, b, false, old)
	}
	if err != nil {
		return rename(err, e.Path)
	}
	defer func() {
		err = errors.Join(err, unix.Close(fd))
		if err != nil {
			_ = unix.Unlinkat(dir, tmp, 0)
			err = rename(err, e.Path)
		}
	}()
	size, err := a.fill(fd, e, b)
	if err != nil {
		return err
	}
	st, err := a.owner.apply(fd, mode)
	if err != nil {
		return err
	}
	if !fresh {
		if size <= maxKept {
			old.KeepAt(dir, name)
		}
		if err := retry(func() error { return unix.Renameat(dir, tmp, dir, name) }); err != nil {
			return &fs.PathError{Op: "rename", Path: name, Err: err}
		}
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
	}
	e.SetStat(index.NewStat(&st))
	if st.Size != size {
		// Another process is already writing to it: the next checkout compares the content.
		e.SetStat(index.Stat{})
	}
	a.bytes.Add(size)
	return nil
}

// fill writes a blob's content to fd and returns its size.
func (a *applier) fill(fd int, e *entry, b blob) (int64, error) {
	how := convert.Of(a.eol, e.Path)
	if b.stream != nil && how != convert.AsIs && b.size <= maxConverted {
		data := make([]byte, b.size)
		if _, err := io.ReadFull(b.stream, data); err != nil {
			return 0, err
		}
		b = blob{data: data}
	}
	if b.stream != nil {
		n, err := io.CopyBuffer(fdWriter(fd), struct{ io.Reader }{b.stream}, make([]byte, 256<<10))
		if err == nil && n != b.size {
			err = io.ErrUnexpectedEOF
		}
		return n, err
	}
	if isLFS(b.data) {
		a.lfs.add(e.Path)
	}
	data := b.data
	if len(data) <= maxConverted {
		data = how.Apply(e.Hash, data)
	}
	_, err := fdWriter(fd).Write(data)
	return int64(len(data)), err
}

// fdWriter writes to a descriptor without the runtime's poller, which files do not need.
type fdWriter int

func (w fdWriter) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Write(int(w), b[done:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, os.NewSyscallError("write", err)
		}
		done += n
	}
	return done, nil
}

// link makes a symbolic link. Its target may be anything: no link is followed here.
func (a *applier) link(dir int, name, tmp string, e *entry, b blob) error {
	to := b.data
	if b.stream != nil || len(to) == 0 || len(to) > tree.MaxPath || strings.IndexByte(string(to), 0) >= 0 {
		return fault.New(fault.Refused, "checkout", "%s: a symbolic link to %d bytes that are not a path", printable.Line(e.Path), b.size)
	}
	_ = unix.Unlinkat(dir, tmp, 0)
	if err := unix.Symlinkat(string(to), dir, tmp); err != nil {
		return rename(&fs.PathError{Op: "symlink", Err: err}, e.Path)
	}
	if o := a.owner; o != nil {
		if err := unix.Fchownat(dir, tmp, o.UID, o.GID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return errors.Join(rename(&fs.PathError{Op: "chown", Err: err}, e.Path), unix.Unlinkat(dir, tmp, 0))
		}
	}
	if err := unix.Renameat(dir, tmp, dir, name); err != nil {
		return errors.Join(rename(&fs.PathError{Op: "rename", Err: err}, e.Path), unix.Unlinkat(dir, tmp, 0))
	}
	st, err := lstatat(dir, name)
	if err != nil {
		return rename(err, e.Path)
	}
	e.SetStat(index.NewStat(&st))
	a.bytes.Add(int64(len(to)))
	return nil
}
