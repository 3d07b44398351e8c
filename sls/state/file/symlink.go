package file

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"corpus-git/sls/state/core"
)

// fileSymlink implements file.symlink. Source: Salt documentation, file state, symlink.
func fileSymlink(c *core.Call) core.Return {
	name, target := c.ExpandUser(c.Name), c.Str("target", "")
	if name == "" {
		return core.Failf("Must provide name to file.symlink")
	}
	if target == "" {
		return core.Failf("Must provide target to file.symlink")
	}
	o, complaint := c.Owner()
	if complaint != "" {
		return core.Failf("%s", strings.TrimSpace(strings.ReplaceAll(complaint, "is not available", "does not exist")))
	}
	if !filepath.IsAbs(name) {
		return core.Failf("Specified file %s is not an absolute path", name)
	}
	o = linkOwner(c, name, o)
	dir := filepath.Dir(name)
	makedirs := c.Bool("makedirs", false)
	if c.Test {
		return symlinkTest(c, name, target, dir, o, makedirs)
	}
	if !core.IsDir(dir) {
		if !makedirs {
			return core.Failf("Directory %s for symlink is not present", dir)
		}
		if err := c.MakeDirs(dir, o, c.Mode("mode")); err != nil {
			return core.Failf("Failed to create directory %s: %s", dir, core.Cause(err))
		}
	}
	ret := core.Return{Result: core.True}
	if core.IsLink(name) {
		old, err := os.Readlink(name)
		if err != nil {
			return core.Failf("%s", core.Cause(err))
		}
		if filepath.Clean(old) == filepath.Clean(target) {
			return symlinkOwner(c, name, o, ret)
		}
	} else if core.Lexists(name) {
		if done := replaceTarget(c, name, &ret); done != nil {
			return *done
		}
	}
	if err := c.Symlink(target, name); err != nil {
		return core.Failf("Unable to create new symlink %s -> %s: %s", name, target, core.Cause(err))
	}
	ret.Comment = "Created new symlink " + name + " -> " + target
	ret.Set("new", name)
	if _, err := c.Enforce(name, o, nil, false); err != nil {
		ret.Result = core.False
		ret.Comment += ", but was unable to set ownership to " + o.UserName + ":" + o.GrpName
	}
	return ret
}

// linkOwner fills in Salt's defaults if user or group is not given: the user that runs this, and its
// group.
func linkOwner(c *core.Call, name string, o core.Owner) core.Owner {
	if c.Bool("inherit_user_and_group", false) {
		if st, err := os.Lstat(name); err == nil && core.IsLink(name) {
			sys := st.Sys().(*syscall.Stat_t)
			uid, gid := int(sys.Uid), int(sys.Gid)
			if o.User == nil {
				o.User, o.UserName = &uid, c.UserName(uid)
			}
			if o.Group == nil {
				o.Group, o.GrpName = &gid, c.GroupName(gid)
			}
			return o
		}
	}
	if o.User == nil {
		uid := c.Host.EUID
		o.User, o.UserName = &uid, c.UserName(uid)
	}
	if o.Group == nil {
		gid := c.Host.EGID
		if u, err := c.Host.Users.User(o.UserName); err == nil && *o.User != c.Host.EUID {
			gid = u.GID
		}
		o.Group, o.GrpName = &gid, c.GroupName(gid)
	}
	return o
}

func symlinkOwner(c *core.Call, name string, o core.Owner, ret core.Return) core.Return {
	ch, err := c.Enforce(name, o, nil, false)
	who := o.UserName + ":" + o.GrpName
	switch {
	case err != nil:
		ret.Result = core.False
		ret.Comment = "Failed to set ownership of symlink " + name + " to " + who
	case ch.Len() > 0:
		ret.Comment = "Set ownership of symlink " + name + " to " + who
		ret.Set("ownership", who)
	default:
		ret.Comment = "Symlink " + name + " is present and owned by " + who
	}
	return ret
}

// replaceTarget renames or removes what exists at the link's path. A result ends the state.
func replaceTarget(c *core.Call, name string, ret *core.Return) *core.Return {
	force, backup := c.Bool("force", false), c.Str("backupname", "")
	fail := func(format string, args ...any) *core.Return { r := core.Failf(format, args...); return &r }
	switch {
	case backup != "":
		if !filepath.IsAbs(backup) {
			if backup != filepath.Base(backup) {
				return fail("Backupname must be an absolute path or a file name: %s", backup)
			}
			backup = filepath.Join(filepath.Dir(name), backup)
		}
		if core.Lexists(backup) {
			if !force {
				return fail("Symlink & backup dest exists and Force not set. %s -> %s - backup: %s", name, c.Str("target", ""), backup)
			}
			if err := c.RemoveAll(backup); err != nil {
				return fail("%s", core.Cause(err))
			}
		}
		if err := c.Rename(name, backup); err != nil {
			return fail("Unable to rename %s: %s", name, core.Cause(err))
		}
	case force:
		if err := c.RemoveAll(name); err != nil {
			return fail("Failed to remove %s: %s", name, core.Cause(err))
		}
	case core.IsFile(name):
		return fail("File exists where the symlink %s should be", name)
	default:
		return fail("Directory exists where the symlink %s should be", name)
	}
	return nil
}

func symlinkTest(c *core.Call, name, target, dir string, o core.Owner, makedirs bool) core.Return {
	ret := core.Return{Result: core.None}
	switch {
	case !core.Lexists(name):
		ret.Set("new", name)
		ret.Comment = "Symlink " + name + " to " + target + " is set for creation"
	case core.IsLink(name):
		old, err := os.Readlink(name)
		if err != nil || filepath.Clean(old) != filepath.Clean(target) {
			ret.Set("change", name)
			ret.Comment = "Link " + name + " target is set to be changed to " + target
			break
		}
		ret.Result, ret.Comment = core.True, "The symlink "+name+" is present"
		if ch, err := c.Enforce(name, o, nil, false); err == nil && ch.Len() > 0 {
			ret.Result = core.None
			ret.Set("ownership", o.UserName+":"+o.GrpName)
			ret.Comment += ", but the ownership of the symlink would be changed to " + o.UserName + ":" + o.GrpName
		}
	case c.Bool("force", false):
		ret.Comment = "The file or directory " + name + " is set for removal to make way for a new symlink targeting " + target
	default:
		return core.Failf("File or directory exists where the symlink %s should be. Did you mean to use force?", name)
	}
	if !core.IsDir(dir) {
		if makedirs {
			ret.Comment += "\n" + dir + " will be created"
		} else {
			ret.Comment += "\nDirectory " + dir + " for symlink is not present"
		}
	}
	return ret
}
