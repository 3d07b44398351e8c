package core

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
)

// Owner is a requested user and group; nil keeps the current one.
type Owner struct {
	User, Group       *int
	UserName, GrpName string
	// userArg and grpArg are the arguments as they were given, a number or a name.
	userArg, grpArg any
}

// ShownUser and shownGroup are what changes show: the argument as it was given.
func (o Owner) ShownUser() any {
	if o.userArg != nil {
		return o.userArg
	}
	return o.UserName
}

// ShownGroup returns what changes show of the group.
func (o Owner) ShownGroup() any {
	if o.grpArg != nil {
		return o.grpArg
	}
	return o.GrpName
}

// Owner reads the arguments user and group. The string is Salt's error message, "" if both exist.
func (c *Call) Owner() (Owner, string) {
	var o Owner
	var errs []string
	if v, ok := c.Value("user"); ok && py.Truth(v) {
		o.UserName, o.userArg = py.Str(v), v
		u, err := c.Host.Users.User(o.UserName)
		switch {
		case err == nil:
			o.User = &u.UID
		case IsNumber(o.UserName):
			n, _ := strconv.Atoi(o.UserName)
			o.User = &n
		default:
			errs = append(errs, "User "+o.UserName+" is not available ")
		}
	}
	if v, ok := c.Value("group"); ok && py.Truth(v) {
		o.GrpName, o.grpArg = py.Str(v), v
		g, err := c.Host.Users.Group(o.GrpName)
		switch {
		case err == nil:
			o.Group = &g.GID
		case IsNumber(o.GrpName):
			n, _ := strconv.Atoi(o.GrpName)
			o.Group = &n
		default:
			errs = append(errs, "Group "+o.GrpName+" is not available")
		}
	}
	if c.Test { // an earlier state may make the account
		return o, ""
	}
	return o, strings.Join(errs, "")
}

// IsNumber reports whether a user or group is given by its ID.
func IsNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 31)
	return err == nil
}

// Mode reads a mode: 644, "0644", 0644 (which YAML makes 644) and "0o644" are the same. nil keeps the current
// mode.
func (c *Call) Mode(name string) *fs.FileMode {
	v, ok := c.Value(name)
	if !ok {
		return nil
	}
	s := strings.ReplaceAll(strings.Trim(py.Str(v), `"'`), "0o", "0")
	if s == "" {
		return nil
	}
	n, err := strconv.ParseUint(s, 8, 16)
	if err != nil || n > 0o7777 {
		BadArg("The argument %q must be an octal mode such as '0644'", name)
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

// Octal writes a mode as Salt does: 0644.
func Octal(m fs.FileMode) string {
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

// ModeBits are the bits of a mode that chmod(2) sets.
const ModeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// Enforce sets the owner and mode of a path, and reports what it changed (or would, in a test run).
func (c *Call) Enforce(path string, o Owner, mode *fs.FileMode, follow bool) (*py.Dict, error) {
	p, err := vfs.OpenPlace(path, follow)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	f, err := p.Open(unix.O_PATH, 0) // the file that is checked is the one that is changed
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	changes := py.NewDict()
	sys := st.Sys().(*syscall.Stat_t)
	uid, gid := -1, -1
	if o.User != nil && uint32(*o.User) != sys.Uid {
		uid = *o.User
		changes.SetStr("user", o.ShownUser())
	}
	if o.Group != nil && uint32(*o.Group) != sys.Gid {
		gid = *o.Group
		changes.SetStr("group", o.ShownGroup())
	}
	want := st.Mode() & ModeBits
	isLink := st.Mode()&fs.ModeSymlink != 0
	if mode != nil && !isLink && *mode != want {
		want = *mode
		changes.SetStr("mode", Octal(want))
	}
	if c.Test || changes.Len() == 0 {
		return changes, nil
	}
	if err := c.Undo.BeforeAttributes(c.Ctx, p); err != nil {
		return changes, err
	}
	if uid >= 0 || gid >= 0 {
		if err := unix.Fchownat(int(f.Fd()), "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
			return changes, &fs.PathError{Op: "chown", Path: path, Err: err}
		}
	}
	// chown clears setuid and setgid, so the mode comes last.
	if !isLink && (changes.Has("mode") || (uid >= 0 || gid >= 0) && st.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0) {
		if err := chmodOpen(f, path, want); err != nil {
			return changes, err
		}
	}
	return changes, nil
}

// chmodOpen is chmod(2) of an open file, also if opened with O_PATH.
func chmodOpen(f *os.File, path string, mode fs.FileMode) error {
	err := os.Chmod("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), mode)
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return &fs.PathError{Op: "chmod", Path: path, Err: e.Err}
	}
	return err
}

// Rewrite replaces the content of an existing file and keeps its owner and mode.
func (c *Call) Rewrite(path string, data []byte) error {
	return at(path, true, func(p *vfs.Place) error {
		st, err := os.Lstat(p.Path())
		if err != nil {
			return err
		}
		if st.Mode()&fs.ModeSymlink != 0 {
			return &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP} // it was not one when the path was checked
		}
		uid, gid := -1, -1
		if sys := st.Sys().(*syscall.Stat_t); int(sys.Uid) != c.Host.EUID || int(sys.Gid) != c.Host.EGID {
			uid, gid = int(sys.Uid), int(sys.Gid)
			if c.Host.EUID != 0 {
				// Without root the file is written in place: a new one could not have the old owner.
				return c.WriteFile(path, data, st.Mode().Perm())
			}
		}
		return c.replaceAt(p, path, data, st.Mode()&ModeBits, uid, gid)
	})
}

// NewMode returns the mode of a file that is created without one.
func (c *Call) NewMode(base fs.FileMode) fs.FileMode {
	mask := 0o022
	if c.Umask != nil {
		mask = *c.Umask
	} else {
		mask = c.Once("umask", func() any {
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

// MakeDirs makes a directory and those above it, each with the given owner and mode. Salt gives the ones that
// it creates the same owner and mode as the last one.
func (c *Call) MakeDirs(dir string, o Owner, mode *fs.FileMode) error {
	if st, err := os.Stat(dir); err == nil {
		if st.IsDir() {
			return nil
		}
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := c.MakeDirs(parent, o, mode); err != nil {
			return err
		}
	}
	return c.MakeDir(dir, o, mode)
}

// MakeDir makes one directory with the given owner and mode; without a mode it gets that of the umask.
func (c *Call) MakeDir(dir string, o Owner, mode *fs.FileMode) error {
	m := c.NewMode(0o777)
	if mode != nil {
		m = *mode
	}
	return at(dir, false, func(p *vfs.Place) error {
		if err := c.Undo.BeforePlace(c.Ctx, p); err != nil {
			return err
		}
		if err := os.Mkdir(p.Path(), m.Perm()); err != nil {
			return err
		}
		f, err := p.Open(unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		uid, gid := -1, -1
		if o.User != nil {
			uid = *o.User
		}
		if o.Group != nil {
			gid = *o.Group
		}
		if uid >= 0 || gid >= 0 {
			if err := unix.Fchownat(int(f.Fd()), "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
				return &fs.PathError{Op: "chown", Path: dir, Err: err}
			}
		}
		if st, err := f.Stat(); err == nil && mode == nil && st.Mode()&fs.ModeSetgid != 0 {
			return nil // inherited
		}
		return chmodOpen(f, dir, m)
	})
}

// ExpandUser replaces a leading ~ as os.path.expanduser does.
func (c *Call) ExpandUser(p string) string {
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
	}
	if home == "" {
		u, err := c.Host.Users.UserByID(c.Host.EUID)
		if user != "" {
			u, err = c.Host.Users.User(user)
		}
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

// Exists reports whether a path exists, following links; a dangling link does not.
func Exists(p string) bool { _, err := os.Stat(p); return err == nil }

// Lexists reports whether a path exists, even if it is a dangling link.
func Lexists(p string) bool { _, err := os.Lstat(p); return err == nil }

// IsDir reports whether a path is a directory, following links.
func IsDir(p string) bool { st, err := os.Stat(p); return err == nil && st.IsDir() }

// IsFile reports whether a path is a regular file, following links.
func IsFile(p string) bool { st, err := os.Stat(p); return err == nil && st.Mode().IsRegular() }

// IsLink reports whether a path is a symbolic link.
func IsLink(p string) bool {
	st, err := os.Lstat(p)
	return err == nil && st.Mode()&fs.ModeSymlink != 0
}

// Cause returns the short cause of a file error.
func Cause(err error) string {
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

// Backup keeps the old file if backup is minion. Source: Salt documentation, "File State Backups".
func (c *Call) Backup(path string) error {
	mode, ok := c.Value("backup")
	if !ok {
		return nil
	}
	if s := py.Str(mode); s != "minion" && s != "both" {
		return nil
	}
	if c.Backups == "" || !IsFile(path) {
		return nil
	}
	data, st, err := vfs.ReadStat(path, vfs.MaxRead)
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
	return os.Chmod(dst, st.Mode()&ModeBits)
}
