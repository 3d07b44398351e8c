package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"corpus-git/internal/py"
)

// fileSymlink implements file.symlink. Source: Salt documentation, file state, symlink.
func fileSymlink(c *Call) Return {
	name, target := c.expand(c.Name), c.str("target", "")
	if name == "" {
		return Failf("Must provide name to file.symlink")
	}
	if target == "" {
		return Failf("Must provide target to file.symlink")
	}
	o, complaint := c.owner()
	if complaint != "" {
		return Failf("%s", strings.TrimSpace(strings.ReplaceAll(complaint, "is not available", "does not exist")))
	}
	if !filepath.IsAbs(name) {
		return Failf("Specified file %s is not an absolute path", name)
	}
	o = c.linkOwner(name, o)
	dir := filepath.Dir(name)
	makedirs := c.boolean("makedirs", false)
	if c.Test {
		return c.symlinkTest(name, target, dir, o, makedirs)
	}
	if !isDir(dir) {
		if !makedirs {
			return Failf("Directory %s for symlink is not present", dir)
		}
		if err := c.makeDirs(dir, o, c.mode("mode")); err != nil {
			return Failf("Failed to create directory %s: %s", dir, why(err))
		}
	}
	ret := Return{Result: True}
	if isLink(name) {
		old, err := os.Readlink(name)
		if err != nil {
			return Failf("%s", why(err))
		}
		if filepath.Clean(old) == filepath.Clean(target) {
			return c.symlinkOwner(name, o, ret)
		}
	} else if lexists(name) {
		if done := c.makeWay(name, &ret); done != nil {
			return *done
		}
	}
	if err := putLink(target, name); err != nil {
		return Failf("Unable to create new symlink %s -> %s: %s", name, target, why(err))
	}
	ret.Comment = "Created new symlink " + name + " -> " + target
	ret.Set("new", name)
	if _, err := c.enforce(name, o, nil, false); err != nil {
		ret.Result = False
		ret.Comment += ", but was unable to set ownership to " + o.userName + ":" + o.grpName
	}
	return ret
}

// putLink makes a link; one that is there is replaced by a rename, so that there is always a link.
func putLink(target, name string) error {
	err := os.Symlink(target, name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	tmp := name + ".corpus-link"
	_ = os.Remove(tmp)
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, name); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return nil
}

// linkOwner fills in what Salt takes where user or group is not given: who runs this, and their group.
func (c *Call) linkOwner(name string, o owner) owner {
	if c.boolean("inherit_user_and_group", false) {
		if st, err := os.Lstat(name); err == nil && isLink(name) {
			sys := st.Sys().(*syscall.Stat_t)
			uid, gid := int(sys.Uid), int(sys.Gid)
			if o.user == nil {
				o.user, o.userName = &uid, c.userName(uid)
			}
			if o.group == nil {
				o.group, o.grpName = &gid, c.groupName(gid)
			}
			return o
		}
	}
	if o.user == nil {
		uid := c.Host.EUID
		o.user, o.userName = &uid, c.userName(uid)
	}
	if o.group == nil {
		gid := c.Host.EGID
		if u, err := c.Host.Users.User(o.userName); err == nil && *o.user != c.Host.EUID {
			gid = u.GID
		}
		o.group, o.grpName = &gid, c.groupName(gid)
	}
	return o
}

func (c *Call) userName(uid int) string {
	if u, err := c.Host.Users.User(py.Str(int64(uid))); err == nil {
		return u.Name
	}
	return py.Str(int64(uid))
}

func (c *Call) groupName(gid int) string {
	if g, err := c.Host.Users.Group(py.Str(int64(gid))); err == nil {
		return g.Name
	}
	return py.Str(int64(gid))
}

func (c *Call) symlinkOwner(name string, o owner, ret Return) Return {
	ch, err := c.enforce(name, o, nil, false)
	who := o.userName + ":" + o.grpName
	switch {
	case err != nil:
		ret.Result = False
		ret.Comment = "Failed to set ownership of symlink " + name + " to " + who
	case ch.Len() > 0:
		ret.Comment = "Set ownership of symlink " + name + " to " + who
		ret.Set("ownership", who)
	default:
		ret.Comment = "Symlink " + name + " is present and owned by " + who
	}
	return ret
}

// makeWay renames or removes what stands where the link goes. A result ends the state.
func (c *Call) makeWay(name string, ret *Return) *Return {
	force, backup := c.boolean("force", false), c.str("backupname", "")
	fail := func(format string, args ...any) *Return { r := Failf(format, args...); return &r }
	switch {
	case backup != "":
		if !filepath.IsAbs(backup) {
			if backup != filepath.Base(backup) {
				return fail("Backupname must be an absolute path or a file name: %s", backup)
			}
			backup = filepath.Join(filepath.Dir(name), backup)
		}
		if lexists(backup) {
			if !force {
				return fail("Symlink & backup dest exists and Force not set. %s -> %s - backup: %s", name, c.str("target", ""), backup)
			}
			if err := os.RemoveAll(backup); err != nil {
				return fail("%s", why(err))
			}
		}
		if err := os.Rename(name, backup); err != nil {
			return fail("Unable to rename %s: %s", name, why(err))
		}
	case force:
		if err := os.RemoveAll(name); err != nil {
			return fail("Failed to remove %s: %s", name, why(err))
		}
	case isFile(name):
		return fail("File exists where the symlink %s should be", name)
	default:
		return fail("Directory exists where the symlink %s should be", name)
	}
	return nil
}

func (c *Call) symlinkTest(name, target, dir string, o owner, makedirs bool) Return {
	ret := Return{Result: None}
	switch {
	case !lexists(name):
		ret.Set("new", name)
		ret.Comment = "Symlink " + name + " to " + target + " is set for creation"
	case isLink(name):
		old, err := os.Readlink(name)
		if err != nil || filepath.Clean(old) != filepath.Clean(target) {
			ret.Set("change", name)
			ret.Comment = "Link " + name + " target is set to be changed to " + target
			break
		}
		ret.Result, ret.Comment = True, "The symlink "+name+" is present"
		if ch, err := c.enforce(name, o, nil, false); err == nil && ch.Len() > 0 {
			ret.Result = None
			ret.Set("ownership", o.userName+":"+o.grpName)
			ret.Comment += ", but the ownership of the symlink would be changed to " + o.userName + ":" + o.grpName
		}
	case c.boolean("force", false):
		ret.Comment = "The file or directory " + name + " is set for removal to make way for a new symlink targeting " + target
	default:
		return Failf("File or directory exists where the symlink %s should be. Did you mean to use force?", name)
	}
	if !isDir(dir) {
		if makedirs {
			ret.Comment += "\n" + dir + " will be created"
		} else {
			ret.Comment += "\nDirectory " + dir + " for symlink is not present"
		}
	}
	return ret
}
