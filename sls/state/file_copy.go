package state

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
)

func addFileCopy(t *Table) {
	t.add("file.copy", "source! force makedirs preserve user group mode dir_mode subdir", fileCopy)
	t.add("file.rename", "source! force makedirs", fileRename)
	t.add("file.touch", "atime mtime makedirs", fileTouch)
	t.add("file.recurse", "source! keep_source? clean user group dir_mode file_mode sym_mode template context replace defaults "+
		"include_empty backup include_pat exclude_pat maxdepth keep_symlinks force_symlinks merge "+windows, fileRecurse)
	t.add("file.serialize", "dataset dataset_pillar user group mode backup makedirs show_changes create merge_if_exists encoding "+
		"encoding_errors serializer formatter serializer_opts deserializer_opts check_cmd tmp_dir tmp_ext", fileSerialize)
}

// copyFile copies a regular file with its mode, and as root its owner.
func (c *Call) copyFile(src, dst string) error {
	data, err := vfs.ReadFollowed(src, vfs.MaxRead)
	if err != nil {
		return err
	}
	st, err := os.Stat(src)
	if err != nil {
		return err
	}
	uid, gid := -1, -1
	if c.Host.EUID == 0 {
		sys := st.Sys().(*syscall.Stat_t)
		uid, gid = int(sys.Uid), int(sys.Gid)
	}
	return c.replaceFile(dst, data, st.Mode()&modeBits, uid, gid)
}

// copyTree copies a directory, links as links; what is in it gets the owner.
func (c *Call) copyTree(src, dst string, uid, gid int) error {
	return filepath.WalkDir(src, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		st, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case st.IsDir():
			if err := os.MkdirAll(to, 0o700); err != nil {
				return err
			}
			if rel != "." && (uid >= 0 || gid >= 0) {
				if err := os.Chown(to, uid, gid); err != nil {
					return err
				}
			}
			return os.Chmod(to, st.Mode()&modeBits)
		case st.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err == nil {
				err = os.Symlink(target, to)
			}
			if err == nil && (uid >= 0 || gid >= 0) {
				err = os.Lchown(to, uid, gid)
			}
			return err
		case st.Mode().IsRegular():
			data, err := vfs.ReadFollowed(p, vfs.MaxRead)
			if err != nil {
				return err
			}
			return c.replaceFile(to, data, st.Mode()&modeBits, uid, gid)
		}
		return nil
	})
}

// copyOwner is the owner of a copy by file.copy: whoever runs Salt where no user is given, and the user's own group where no
// group is.
func (c *Call) copyOwner() (owner, string) {
	o, complaint := c.owner()
	if complaint != "" {
		return o, complaint
	}
	if o.user == nil {
		uid := c.Host.EUID
		o.user, o.userName = &uid, c.userName(uid)
	}
	if o.group == nil {
		gid := c.Host.EGID
		if *o.user != c.Host.EUID {
			gid = 0
			if u, err := c.Host.Users.User(o.userName); err == nil && !isNumber(o.userName) { // Salt asks for names only
				gid = u.GID
			}
		}
		o.group, o.grpName = &gid, c.groupName(gid)
	}
	return o, ""
}

// fileCopy implements file.copy. Source: Salt documentation, file state, copy.
func fileCopy(c *Call) Return {
	name, src := c.expand(c.Name), c.expand(c.str("source", ""))
	if !filepath.IsAbs(name) {
		return Failf("Specified file %s is not an absolute path", name)
	}
	st, err := os.Stat(src)
	if err != nil {
		return Failf("Source file \"%s\" is not present", src)
	}
	mode := c.mode("mode")
	preserve, force := c.boolean("preserve", false), c.boolean("force", false)
	var o owner
	if !preserve {
		var complaint string
		if o, complaint = c.copyOwner(); complaint != "" {
			return Failf("%s", complaint)
		}
	}
	if mode == nil || preserve {
		m := st.Mode() & modeBits
		mode = &m
	}
	ret := Return{Result: True, Comment: "Copied \"" + src + "\" to \"" + name + "\""}
	if isDir(name) && c.boolean("subdir", false) {
		name = filepath.Join(name, filepath.Base(src))
	}
	if lexists(name) && !force {
		return OKf("The target file \"%s\" exists and will not be overwritten", name)
	}
	if c.Test {
		return Would(nil, "File \"%s\" is set to be copied to \"%s\"", src, name)
	}
	if lexists(name) {
		if sameContent(name, src) {
			ret.Comment += " - files are identical but force flag is set"
		}
		if err := os.RemoveAll(name); err != nil {
			return Failf("Failed to delete \"%s\" in preparation for forced move", name)
		}
	}
	if dir := filepath.Dir(name); !isDir(dir) {
		if !c.boolean("makedirs", false) {
			return Failf("The target directory %s is not present", dir)
		}
		if err := c.makeDirs(dir, o, c.parentMode(&managed{mode: mode, dirMode: c.mode("dir_mode")})); err != nil {
			return Failf("%s", why(err))
		}
	}
	if st.IsDir() {
		uid, gid := -1, -1
		if c.Host.EUID == 0 && o.user != nil {
			uid, gid = *o.user, *o.group
		} else if c.Host.EUID == 0 {
			sys := st.Sys().(*syscall.Stat_t)
			uid, gid = int(sys.Uid), int(sys.Gid)
		}
		err = c.copyTree(src, name, uid, gid)
	} else {
		var data []byte
		if data, err = vfs.ReadFollowed(src, vfs.MaxRead); err == nil {
			err = c.replaceFile(name, data, st.Mode()&modeBits, -1, -1)
		}
	}
	if err != nil {
		return Failf("Failed to copy \"%s\" to \"%s\": %s", src, name, why(err))
	}
	ret.Set(name, src)
	if preserve {
		return ret
	}
	ch, err := c.enforce(name, o, mode, true)
	if err != nil {
		return Failf("%s", why(err))
	}
	for _, e := range ch.Items() {
		ret.Set(py.Str(e.Key), e.Value)
	}
	return ret
}

// sameContent reports whether two regular files hold the same.
func sameContent(a, b string) bool {
	if !isFile(a) || !isFile(b) {
		return false
	}
	x, err := vfs.ReadFollowed(a, vfs.MaxRead)
	if err != nil {
		return false
	}
	y, err := vfs.ReadFollowed(b, vfs.MaxRead)
	return err == nil && bytes.Equal(x, y)
}

func fileRename(c *Call) Return {
	name, src := c.expand(c.Name), c.expand(c.str("source", ""))
	switch {
	case !filepath.IsAbs(name):
		return Failf("Specified file %s is not an absolute path", name)
	case !lexists(src):
		return OKf("Source file \"%s\" has already been moved out of place", src)
	case lexists(name) && !c.boolean("force", false):
		return OKf("The target file \"%s\" exists and will not be overwritten", name)
	case c.Test:
		return Would(nil, "File \"%s\" is set to be moved to \"%s\"", src, name)
	}
	if dir := filepath.Dir(name); !isDir(dir) {
		if !c.boolean("makedirs", false) {
			return Failf("The target directory %s is not present", dir)
		}
		if err := c.makeDirs(dir, owner{}, nil); err != nil {
			return Failf("%s", why(err))
		}
	}
	if lexists(name) {
		if err := os.RemoveAll(name); err != nil {
			return Failf("Failed to delete \"%s\" in preparation for forced move", name)
		}
	}
	if err := os.Rename(src, name); err != nil {
		return Failf("Failed to move \"%s\" to \"%s\": %s", src, name, why(err))
	}
	return Return{Result: True, Comment: "Moved \"" + src + "\" to \"" + name + "\"", Changes: py.NewDict(name, src)}
}

func fileTouch(c *Call) Return {
	name := c.expand(c.Name)
	if !filepath.IsAbs(name) {
		return Failf("Specified file %s is not an absolute path", name)
	}
	stamp := func(arg string) (time.Time, bool) {
		v, ok := c.val(arg)
		if !ok {
			return time.Time{}, false
		}
		f, err := strconv.ParseFloat(py.Str(v), 64)
		if err != nil {
			badArg("%s must be a number of seconds", arg)
		}
		return time.Unix(0, int64(f*1e9)), true
	}
	at, hasA := stamp("atime")
	mt, hasM := stamp("mtime")
	there := exists(name)
	if c.Test {
		if !there {
			return Would(py.NewDict("new", name), "File %s is set to be created", name)
		}
		if !hasA && !hasM {
			return Return{Result: True, Changes: py.NewDict("new", name), Comment: "File " + name + " exists and has the correct times"}
		}
		return Would(py.NewDict("touched", name), "Times set to be updated on file %s", name)
	}
	dir := filepath.Dir(name)
	if !isDir(dir) && c.boolean("makedirs", false) {
		if err := c.makeDirs(dir, owner{}, nil); err != nil {
			return Failf("%s", why(err))
		}
	}
	if !isDir(dir) {
		return Failf("Directory not present to touch file %s", name)
	}
	if !there {
		if err := c.writeNew(name, managed{}); err != nil {
			return Failf("%s", why(err))
		}
	}
	now := c.Host.Now()
	if !hasA && !hasM {
		at, mt = now, now
	} else if !hasA {
		at = mt
	} else if !hasM {
		mt = at
	}
	if err := os.Chtimes(name, at, mt); err != nil {
		return Failf("%s", why(err))
	}
	if !there {
		return Return{Result: True, Comment: "Created empty file " + name, Changes: py.NewDict("new", name)}
	}
	what := "file"
	if isDir(name) {
		what = "directory"
	}
	return Return{Result: True, Comment: "Updated times on " + what + " " + name, Changes: py.NewDict("touched", name)}
}
