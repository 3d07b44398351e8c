package checkout

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/git/index"
)

// acquireIndex creates index.lock. An existing one with our mark is from a dead process, because we hold the other lock. A power cut may have kept its name and lost its
// content, and a process may have died while it wrote the index, so the sticky bit, which git never sets, is a mark too.
func (g *gitFolder) acquireIndex() (bool, error) {
	fd, err := openat(g.fd, indexLock, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, unix.S_ISVTX|0o644)
	if err == nil {
		g.index = fd
		_, err = unix.Pwrite(fd, []byte(lockMark), 0) // the index overwrites it
		return true, err
	}
	if !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	data, st, err := readFileAt(g.fd, indexLock, maxIndexFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) { // anything but a regular file stays: the hint is to remove it
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch {
	case st.Mode&unix.S_ISVTX != 0:
	case string(data) == lockMark, len(data) < len(lockMark) && len(data) > 0 && strings.HasPrefix(lockMark, string(data)):
	case g.req.now().Sub(time.Unix(st.Mtim.Unix())) > foreignLockAge:
		g.notes = append(g.notes, "removed .git/index.lock, which some git process left behind more than an hour ago")
	default:
		return false, nil
	}
	return false, ignore(unix.Unlinkat(g.fd, indexLock, 0), unix.ENOENT)
}

// writeIndex puts the index in place, durably unless NoSync is set. As in git, what holds the lock becomes the index.
func (g *gitFolder) writeIndex(x *pathList) error {
	content := func(fd int) error {
		return x.write(func(parts [][]byte) error { return index.WriteParts(fd, parts) })
	}
	if lock, ours := g.ours(); !ours || lock.Mode&unix.S_ISVTX == 0 {
		// Somebody has removed our lock; or a file system without the mark.
		return writeFileWith(g.fd, "index", !g.req.NoSync, g.req.Owner, &g.replaced, content)
	}
	if err := content(g.index); err != nil {
		return err
	}
	if err := g.lockBecomes("index"); err != nil {
		return fmt.Errorf("rename %s: %w", indexLock, err)
	}
	return nil
}

// ours returns the facts of our lock, and whether it still has the name index.lock.
func (g *gitFolder) ours() (lock unix.Stat_t, ours bool) {
	st, err := lstatat(g.fd, indexLock)
	ours = err == nil && unix.Fstat(g.index, &lock) == nil && st.Dev == lock.Dev && st.Ino == lock.Ino
	return lock, ours
}

// lockBecomes renames index.lock. The mark is removed last: a lock that a crash leaves has it. If the index has it, the next Sync writes it again.
func (g *gitFolder) lockBecomes(name string) error {
	have := g.req.Owner.orOf(g.fd, name)
	marked := &Owner{UID: -1, GID: -1, Perm: func(_ bool, perm uint32) uint32 { return perm | unix.S_ISVTX }}
	var st unix.Stat_t
	err := unix.Fstat(g.index, &st)
	if have != nil && err == nil {
		marked.UID, marked.GID = have.UID, have.GID
		st.Mode = 0o644
		if have.Perm != nil {
			st.Mode = have.Perm(false, st.Mode)
		}
	}
	mode := st.Mode & 0o777
	if err == nil {
		_, err = marked.apply(g.index, mode)
	}
	if err == nil && !g.req.NoSync {
		err = unix.Fsync(g.index)
	}
	if err != nil {
		return err
	}
	g.replaced.KeepAt(g.fd, name)
	if err := unix.Renameat(g.fd, indexLock, g.fd, name); err != nil {
		return err
	}
	fd := g.index
	g.index = -1 // another git may take the lock
	err = unix.Fchmod(fd, mode)
	if err == nil && !g.req.NoSync {
		err = unix.Fsync(g.fd)
	}
	return errors.Join(err, unix.Close(fd))
}
