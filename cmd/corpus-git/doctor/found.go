package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"corpus-git/layout"
	"corpus-git/project/status"
	"corpus-git/sls/host"
)

// Finding is the result of one check. Fix describes how to fix it and Do does so, if it can be fixed; findings with the same Once are fixed together, once.
type Finding struct {
	status.Check
	Fix, Once string
	Do        func(ctx context.Context) error
}

type adder func(name, status, hint, format string, args ...any) *Finding

// adderTo returns a function that appends to a list; the returned pointer is valid until the next call.
func adderTo(out *[]Finding) adder {
	return func(name, st, hint, format string, args ...any) *Finding {
		*out = append(*out, Finding{Check: status.Check{Name: name, Status: st, Text: fmt.Sprintf(format, args...), Hint: hint}})
		return &(*out)[len(*out)-1]
	}
}

// setFix sets how a finding is fixed.
func (f *Finding) setFix(do func() error, format string, args ...any) {
	f.Fix = fmt.Sprintf(format, args...)
	f.Once = f.Fix
	f.Do = func(context.Context) error { return do() }
}

// Checks returns the findings without their fixes.
func Checks(found []Finding) []status.Check {
	out := make([]status.Check, len(found))
	for i, f := range found {
		out[i] = f.Check
	}
	return out
}

func ownerOf(fi fs.FileInfo) uint32 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return st.Uid
	}
	return 0
}

func gone(user string) bool {
	_, err := host.FileUsers{}.User(user)
	return err != nil
}

// stateOwners looks for files in the state that another user owns, so that the server cannot write them, mostly after a command was run as root.
func (d Doctor) stateOwners(add adder, state layout.State) {
	dir, err := os.Stat(state.Path())
	if err != nil {
		return // said above
	}
	entries, err := os.ReadDir(state.Path())
	if err != nil {
		return
	}
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || ownerOf(fi) == ownerOf(dir) || strings.HasPrefix(e.Name(), ".doctor-") {
			continue
		}
		path, to := filepath.Join(state.Path(), e.Name()), fi.Mode()
		f := add("owner", "failed", fmt.Sprintf("chown -R --no-dereference %d:%d %s", ownerOf(dir), groupOf(dir), path), "%s belongs to user %d, the state to user %d", path, ownerOf(fi), ownerOf(dir))
		if os.Geteuid() == 0 && (to.IsRegular() || to.IsDir()) {
			f.setFix(func() error { return give(path, dir) }, "change the owner of %s to user %d", path, ownerOf(dir))
		}
	}
}

func groupOf(fi fs.FileInfo) uint32 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return st.Gid
	}
	return 0
}

// give changes the owner of everything below path, which only the server and root can write to, to that of like.
func give(path string, like fs.FileInfo) error {
	return filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, int(ownerOf(like)), int(groupOf(like)))
	})
}

// staleLock is the age from which a lock file that no process has open counts as stale, as in git/checkout.
const staleLock = time.Hour

// locks looks for stale git lock files in working copies and repositories, because of which git refuses to work.
func (d Doctor) locks(add adder, root layout.Root) {
	var all []string
	for _, pattern := range []string{"project/.git/*.lock", "pillar/.git/*.lock", "project/.git/refs/heads/*.lock", "git/*.git/*.lock", "git/*.git/refs/heads/*.lock", "git/*.git/refs/tags/*.lock"} {
		more, _ := filepath.Glob(filepath.Join(root.Projects(), "*", pattern))
		all = append(all, more...)
	}
	for _, path := range all {
		fi, err := os.Lstat(path)
		// corpus-git.lock is held by flock(2) and stays.
		if err != nil || !fi.Mode().IsRegular() || filepath.Base(path) == "corpus-git.lock" || time.Since(fi.ModTime()) < staleLock {
			continue
		}
		if pid := holder(path); pid != "" {
			add("lock", "skipped", "", "%s is open in process %s", path, pid)
			continue
		}
		add("lock", "warning", "rm "+path, "%s is %s old and not open in any process", path, time.Since(fi.ModTime()).Round(time.Hour)).setFix(func() error {
			now, err := os.Lstat(path)
			if err != nil {
				return err
			}
			if !os.SameFile(fi, now) || !now.ModTime().Equal(fi.ModTime()) || holder(path) != "" {
				return fmt.Errorf("%s is in use again", path)
			}
			return os.Remove(path)
		}, "remove %s", path)
	}
}

// holder returns a process that has a file open, "" if none is found.
func holder(path string) string {
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == path {
			return strings.Split(fd, "/")[2]
		}
	}
	return ""
}
