package file

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
	"corpus-git/sls/state/core"
)

func addFileCopy(t *core.Table) {
	t.Add("file.copy", "source! force makedirs preserve user group mode dir_mode subdir **", fileCopy)
	t.Add("file.rename", "source! force makedirs **", fileRename)
	t.Add("file.touch", "atime mtime makedirs", fileTouch)
	t.Add("file.recurse", "source! keep_source? mode clean user group dir_mode file_mode sym_mode template context replace defaults "+
		"include_empty backup include_pat exclude_pat maxdepth keep_symlinks force_symlinks merge ** "+windows, fileRecurse)
	t.Add("file.serialize", "dataset dataset_pillar user group mode backup makedirs show_changes create merge_if_exists encoding "+
		"encoding_errors serializer formatter serializer_opts deserializer_opts check_cmd tmp_dir tmp_ext **", fileSerialize)
}

// copyFile copies a regular file with its mode, and as root its owner.
func copyFile(c *core.Call, src, dst string) error {
	data, st, err := vfs.ReadStat(src, vfs.MaxRead)
	if err != nil {
		return err
	}
	uid, gid := -1, -1
	if c.Host.EUID == 0 {
		sys := st.Sys().(*syscall.Stat_t)
		uid, gid = int(sys.Uid), int(sys.Gid)
	}
	return c.ReplaceFile(dst, data, st.Mode()&core.ModeBits, uid, gid)
}

// copyTree copies a directory, links as links; its contents get the owner.
func copyTree(c *core.Call, src, dst string, uid, gid int) error {
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
		var o core.Owner
		if uid >= 0 && rel != "." {
			o.User = &uid
		}
		if gid >= 0 && rel != "." {
			o.Group = &gid
		}
		mode := st.Mode() & core.ModeBits
		switch {
		case st.IsDir() && !core.IsDir(to):
			return c.MakeDir(to, o, &mode)
		case st.IsDir():
			_, err = c.Enforce(to, o, &mode, false)
			return err
		case st.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err == nil {
				err = c.Symlink(target, to)
			}
			if err == nil {
				_, err = c.Enforce(to, o, nil, false)
			}
			return err
		case st.Mode().IsRegular():
			data, st, err := vfs.ReadStat(p, vfs.MaxRead)
			if err != nil {
				return err
			}
			return c.ReplaceFile(to, data, st.Mode()&core.ModeBits, uid, gid)
		}
		return nil
	})
}

// copyOwner returns the owner of a copy by file.copy: the user that runs Salt if no user is given, and the user's own group if no
// group is given.
func copyOwner(c *core.Call) (core.Owner, string) {
	o, complaint := c.Owner()
	if complaint != "" {
		return o, complaint
	}
	if o.User == nil {
		uid := c.Host.EUID
		o.User, o.UserName = &uid, c.UserName(uid)
	}
	if o.Group == nil {
		gid := c.Host.EGID
		if *o.User != c.Host.EUID {
			gid = 0
			if u, err := c.Host.Users.User(o.UserName); err == nil && !core.IsNumber(o.UserName) { // Salt looks up names only
				gid = u.GID
			}
		}
		o.Group, o.GrpName = &gid, c.GroupName(gid)
	}
	return o, ""
}

// fileCopy implements file.copy. Source: Salt documentation, file state, copy.
func fileCopy(c *core.Call) core.Return {
	name, src := c.ExpandUser(c.Name), c.ExpandUser(c.Str("source", ""))
	if !filepath.IsAbs(name) {
		return core.Failf("Specified file %s is not an absolute path", name)
	}
	st, err := os.Stat(src)
	if err != nil {
		return core.Failf("Source file \"%s\" is not present", src)
	}
	mode := c.Mode("mode")
	preserve, force := c.Bool("preserve", false), c.Bool("force", false)
	var o core.Owner
	if !preserve {
		var complaint string
		if o, complaint = copyOwner(c); complaint != "" {
			return core.Failf("%s", complaint)
		}
	}
	if mode == nil || preserve {
		m := st.Mode() & core.ModeBits
		mode = &m
	}
	ret := core.Return{Result: core.True, Comment: "Copied \"" + src + "\" to \"" + name + "\""}
	if core.IsDir(name) && c.Bool("subdir", false) {
		name = filepath.Join(name, filepath.Base(src))
	}
	if core.Lexists(name) && !force {
		return core.OKf("The target file \"%s\" exists and will not be overwritten", name)
	}
	if c.Test {
		return core.Would(nil, "File \"%s\" is set to be copied to \"%s\"", src, name)
	}
	if core.Lexists(name) {
		if sameContent(name, src) {
			ret.Comment += " - files are identical but force flag is set"
		}
		if err := c.RemoveAll(name); err != nil {
			return core.Failf("Failed to delete \"%s\" in preparation for forced move", name)
		}
	}
	if dir := filepath.Dir(name); !core.IsDir(dir) {
		if !c.Bool("makedirs", false) {
			return core.Failf("The target directory %s is not present", dir)
		}
		if err := c.MakeDirs(dir, o, parentMode(c, &Managed{Mode: mode, dirMode: c.Mode("dir_mode")})); err != nil {
			return core.Failf("%s", core.Cause(err))
		}
	}
	if st.IsDir() {
		uid, gid := -1, -1
		if c.Host.EUID == 0 && o.User != nil {
			uid, gid = *o.User, *o.Group
		} else if c.Host.EUID == 0 {
			sys := st.Sys().(*syscall.Stat_t)
			uid, gid = int(sys.Uid), int(sys.Gid)
		}
		err = copyTree(c, src, name, uid, gid)
	} else {
		var data []byte
		if data, st, err = vfs.ReadStat(src, vfs.MaxRead); err == nil {
			err = c.ReplaceFile(name, data, st.Mode()&core.ModeBits, -1, -1)
		}
	}
	if err != nil {
		return core.Failf("Failed to copy \"%s\" to \"%s\": %s", src, name, core.Cause(err))
	}
	ret.Set(name, src)
	if preserve {
		return ret
	}
	ch, err := c.Enforce(name, o, mode, true)
	if err != nil {
		return core.Failf("%s", core.Cause(err))
	}
	for _, e := range ch.Items() {
		ret.Set(py.Str(e.Key), e.Value)
	}
	return ret
}

// sameContent reports whether two regular files have the same content.
func sameContent(a, b string) bool {
	if !core.IsFile(a) || !core.IsFile(b) {
		return false
	}
	x, err := vfs.ReadFollowed(a, vfs.MaxRead)
	if err != nil {
		return false
	}
	y, err := vfs.ReadFollowed(b, vfs.MaxRead)
	return err == nil && bytes.Equal(x, y)
}

func fileRename(c *core.Call) core.Return {
	name, src := c.ExpandUser(c.Name), c.ExpandUser(c.Str("source", ""))
	switch {
	case name == "":
		return core.Failf("Must provide name to file.rename")
	case !filepath.IsAbs(name):
		return core.Failf("Specified file %s is not an absolute path", name)
	case !core.Lexists(src):
		return core.OKf("Source file \"%s\" has already been moved out of place", src)
	case core.Lexists(name) && !c.Bool("force", false):
		return core.OKf("The target file \"%s\" exists and will not be overwritten", name)
	case c.Test:
		return core.Would(nil, "File \"%s\" is set to be moved to \"%s\"", src, name)
	}
	if dir := filepath.Dir(name); !core.IsDir(dir) {
		if !c.Bool("makedirs", false) {
			return core.Failf("The target directory %s is not present", dir)
		}
		if err := c.MakeDirs(dir, core.Owner{}, nil); err != nil {
			return core.Failf("%s", core.Cause(err))
		}
	}
	if core.Lexists(name) {
		if err := c.RemoveAll(name); err != nil {
			return core.Failf("Failed to delete \"%s\" in preparation for forced move", name)
		}
	}
	if err := c.Rename(src, name); err != nil {
		return core.Failf("Failed to move \"%s\" to \"%s\": %s", src, name, core.Cause(err))
	}
	return core.Return{Result: core.True, Comment: "Moved \"" + src + "\" to \"" + name + "\"", Changes: py.NewDict(name, src)}
}

func fileTouch(c *core.Call) core.Return {
	name := c.ExpandUser(c.Name)
	if !filepath.IsAbs(name) {
		return core.Failf("Specified file %s is not an absolute path", name)
	}
	stamp := func(arg string) (time.Time, bool) {
		v, ok := c.Value(arg)
		if !ok {
			return time.Time{}, false
		}
		f, err := strconv.ParseFloat(py.Str(v), 64)
		if err != nil {
			core.BadArg("%s must be a number of seconds", arg)
		}
		return time.Unix(0, int64(f*1e9)), true
	}
	at, hasA := stamp("atime")
	mt, hasM := stamp("mtime")
	there := core.Exists(name)
	if c.Test {
		if !there {
			return core.Would(py.NewDict("new", name), "File %s is set to be created", name)
		}
		if !hasA && !hasM {
			return core.Return{Result: core.True, Changes: py.NewDict("new", name), Comment: "File " + name + " exists and has the correct times"}
		}
		return core.Would(py.NewDict("touched", name), "Times set to be updated on file %s", name)
	}
	dir := filepath.Dir(name)
	if !core.IsDir(dir) && c.Bool("makedirs", false) {
		if err := c.MakeDirs(dir, core.Owner{}, nil); err != nil {
			return core.Failf("%s", core.Cause(err))
		}
	}
	if !core.IsDir(dir) {
		return core.Failf("Directory not present to touch file %s", name)
	}
	if !there {
		if err := WriteNew(c, name, Managed{}); err != nil {
			return core.Failf("%s", core.Cause(err))
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
	if err := c.Chtimes(name, at, mt); err != nil {
		return core.Failf("%s", core.Cause(err))
	}
	if !there {
		return core.Return{Result: core.True, Comment: "Created empty file " + name, Changes: py.NewDict("new", name)}
	}
	what := "file"
	if core.IsDir(name) {
		what = "directory"
	}
	return core.Return{Result: core.True, Comment: "Updated times on " + what + " " + name, Changes: py.NewDict("touched", name)}
}
