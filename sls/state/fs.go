package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
)

// owner is a wanted user and group; nil leaves it as it is.
type owner struct {
	user, group       *int
	userName, grpName string
	// userArg and grpArg are the arguments as they were given, a number or a name.
	userArg, grpArg any
}

// shownUser and shownGroup are what changes show: the argument as it was given.
func (o owner) shownUser() any {
	if o.userArg != nil {
		return o.userArg
	}
	return o.userName
}

func (o owner) shownGroup() any {
	if o.grpArg != nil {
		return o.grpArg
	}
	return o.grpName
}

// owner reads the arguments user and group. The text is Salt's complaint, "" where both exist.
func (c *Call) owner() (owner, string) {
	var o owner
	var errs []string
	if v, ok := c.val("user"); ok && py.Truth(v) {
		o.userName, o.userArg = py.Str(v), v
		u, err := c.Host.Users.User(o.userName)
		switch {
		case err == nil:
			o.user = &u.UID
		case isNumber(o.userName):
			n, _ := strconv.Atoi(o.userName)
			o.user = &n
		default:
			errs = append(errs, "User "+o.userName+" is not available ")
		}
	}
	if v, ok := c.val("group"); ok && py.Truth(v) {
		o.grpName, o.grpArg = py.Str(v), v
		g, err := c.Host.Users.Group(o.grpName)
		switch {
		case err == nil:
			o.group = &g.GID
		case isNumber(o.grpName):
			n, _ := strconv.Atoi(o.grpName)
			o.group = &n
		default:
			errs = append(errs, "Group "+o.grpName+" is not available")
		}
	}
	if c.Test { // an earlier state may make the account
		return o, ""
	}
	return o, strings.Join(errs, "")
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 31)
	return err == nil
}

// mode reads a mode: 644, "0644", 0644 (which YAML makes 644) and "0o644" are the same. nil leaves it as it is.
func (c *Call) mode(name string) *fs.FileMode {
	v, ok := c.val(name)
	if !ok {
		return nil
	}
	s := strings.ReplaceAll(strings.Trim(py.Str(v), `"'`), "0o", "0")
	if s == "" {
		return nil
	}
	n, err := strconv.ParseUint(s, 8, 16)
	if err != nil || n > 0o7777 {
		badArg("The argument %q must be an octal mode such as '0644'", name)
	}
	m := fs.FileMode(n) & 0o777
	if n&0o4000 != 0 {
		m |= fs.ModeSetuid
	}
	if n&0o2000 != 0 {
		m |= fs.ModeSetgid
	}
	if n&0o1000 != 0 {
		m |= fs.ModeSticky
	}
	return &m
}

// octal writes a mode as Salt does: 0644.
func octal(m fs.FileMode) string {
	n := m.Perm()
	if m&fs.ModeSetuid != 0 {
		n |= 0o4000
	}
	if m&fs.ModeSetgid != 0 {
		n |= 0o2000
	}
	if m&fs.ModeSticky != 0 {
		n |= 0o1000
	}
	return fmt.Sprintf("%04o", uint32(n))
}

const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// enforce gives a path its owner and mode, and tells what it changed (or would, in a test run).
func (c *Call) enforce(path string, o owner, mode *fs.FileMode, follow bool) (*py.Dict, error) {
	stat, chown := os.Stat, os.Chown
	if !follow {
		stat, chown = os.Lstat, os.Lchown
	}
	st, err := stat(path)
	if err != nil {
		return nil, err
	}
	changes := py.NewDict()
	sys := st.Sys().(*syscall.Stat_t)
	uid, gid := -1, -1
	if o.user != nil && uint32(*o.user) != sys.Uid {
		uid = *o.user
		changes.SetStr("user", o.shownUser())
	}
	if o.group != nil && uint32(*o.group) != sys.Gid {
		gid = *o.group
		changes.SetStr("group", o.shownGroup())
	}
	want := st.Mode() & modeBits
	isLink := st.Mode()&fs.ModeSymlink != 0
	if mode != nil && !isLink && *mode != want {
		want = *mode
		changes.SetStr("mode", octal(want))
	}
	if c.Test || changes.Len() == 0 {
		return changes, nil
	}
	if uid >= 0 || gid >= 0 {
		if err := chown(path, uid, gid); err != nil {
			return changes, err
		}
	}
	// chown clears setuid and setgid, so the mode comes last.
	if !isLink && (changes.Has("mode") || (uid >= 0 || gid >= 0) && st.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0) {
		if err := os.Chmod(path, want); err != nil {
			return changes, err
		}
	}
	return changes, nil
}

// rewrite replaces the content of an existing file and keeps its owner and mode.
func (c *Call) rewrite(path string, data []byte) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	uid, gid := -1, -1
	if sys := st.Sys().(*syscall.Stat_t); int(sys.Uid) != c.Host.EUID || int(sys.Gid) != c.Host.EGID {
		uid, gid = int(sys.Uid), int(sys.Gid)
		if c.Host.EUID != 0 {
			// Without root the file is written in place: a new one could not have the old owner.
			return os.WriteFile(real, data, st.Mode().Perm())
		}
	}
	return c.replaceFile(real, data, st.Mode()&modeBits, uid, gid)
}

// newMode is the mode of a file that is made without one.
func (c *Call) newMode(base fs.FileMode) fs.FileMode {
	mask := 0o022
	if c.Umask != nil {
		mask = *c.Umask
	} else {
		mask = c.once("umask", func() any {
			if m, ok := processUmask(); ok {
				return m
			}
			return mask
		}).(int)
	}
	return base &^ fs.FileMode(mask)
}

// processUmask reads the umask of this process without changing it. Source: proc(5), /proc/pid/status.
func processUmask() (int, bool) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	for _, l := range strings.Split(string(b), "\n") {
		if v, ok := strings.CutPrefix(l, "Umask:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(v), 8, 32)
			return int(n), err == nil
		}
	}
	return 0, false
}

// makeDirs makes a directory and those above it, each with owner and mode as given. Salt gives those that it
// makes the same owner and mode as the last one.
func (c *Call) makeDirs(dir string, o owner, mode *fs.FileMode) error {
	if st, err := os.Stat(dir); err == nil {
		if st.IsDir() {
			return nil
		}
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := c.makeDirs(parent, o, mode); err != nil {
			return err
		}
	}
	return c.makeDir(dir, o, mode)
}

func (c *Call) makeDir(dir string, o owner, mode *fs.FileMode) error {
	m := c.newMode(0o777)
	if mode != nil {
		m = *mode
	}
	if err := os.Mkdir(dir, m.Perm()); err != nil {
		return err
	}
	uid, gid := -1, -1
	if o.user != nil {
		uid = *o.user
	}
	if o.group != nil {
		gid = *o.group
	}
	if uid >= 0 || gid >= 0 {
		if err := os.Chown(dir, uid, gid); err != nil {
			return err
		}
	}
	if st, err := os.Stat(dir); err == nil && mode == nil && st.Mode()&fs.ModeSetgid != 0 {
		return nil // inherited
	}
	return os.Chmod(dir, m)
}

// expand replaces a leading ~ as os.path.expanduser does.
func (c *Call) expand(p string) string {
	if !strings.HasPrefix(p, "~") {
		return p
	}
	user, rest, _ := strings.Cut(p[1:], "/")
	home := ""
	if user == "" {
		for _, kv := range c.Host.Environ {
			if v, ok := strings.CutPrefix(kv, "HOME="); ok {
				home = v
			}
		}
		if home == "" {
			user = strconv.Itoa(c.Host.EUID)
		}
	}
	if home == "" {
		u, err := c.Host.Users.User(user)
		if err != nil {
			return p
		}
		home = u.Home
	}
	if rest == "" && !strings.HasSuffix(p, "/") {
		return home
	}
	return strings.TrimSuffix(home, "/") + "/" + rest
}

func exists(p string) bool  { _, err := os.Stat(p); return err == nil }
func lexists(p string) bool { _, err := os.Lstat(p); return err == nil }
func isDir(p string) bool   { st, err := os.Stat(p); return err == nil && st.IsDir() }
func isFile(p string) bool  { st, err := os.Stat(p); return err == nil && st.Mode().IsRegular() }
func isLink(p string) bool {
	st, err := os.Lstat(p)
	return err == nil && st.Mode()&fs.ModeSymlink != 0
}

// why is the short cause of a file error.
func why(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err.Error()
	}
	return err.Error()
}

// backup keeps the old file where backup is minion. Source: Salt documentation, "File State Backups".
func (c *Call) backup(path string) error {
	mode, ok := c.val("backup")
	if !ok {
		return nil
	}
	if s := py.Str(mode); s != "minion" && s != "both" {
		return nil
	}
	if c.Backups == "" || !isFile(path) {
		return nil
	}
	data, err := vfs.ReadFollowed(path, vfs.MaxRead)
	if err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	dir := filepath.Join(c.Backups, filepath.Dir(path))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	stamp := c.Host.Now().Format("Mon_Jan_02_15:04:05_000000_2006")
	dst := filepath.Join(dir, filepath.Base(path)+"_"+stamp)
	if err := os.WriteFile(dst, data, 0o600); err != nil {
		return err
	}
	sys := st.Sys().(*syscall.Stat_t)
	if c.Host.EUID == 0 {
		if err := os.Chown(dst, int(sys.Uid), int(sys.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(dst, st.Mode()&modeBits)
}
