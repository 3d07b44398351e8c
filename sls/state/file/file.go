package file

import (
	"os"
	"path/filepath"

	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
)

// windows are the arguments that Salt uses on Windows only.
const windows = "win_owner? win_perms? win_deny_perms? win_inheritance? win_perms_reset?"

// addFile adds Salt's file module.
func addFile(t *core.Table) {
	t.Add("file.managed", "source source_hash source_hash_name keep_source? user group mode attrs template makedirs dir_mode "+
		"context replace defaults backup show_changes create contents tmp_dir tmp_ext contents_pillar contents_grains "+
		"contents_newline contents_delimiter encoding encoding_errors allow_empty follow_symlinks check_cmd skip_verify "+
		"verify_ssl use_etag? new_file_diff owner selinux ignore_ordering ignore_whitespace ignore_comment_characters "+
		"signature source_hash_sig "+fetch.Signatures+" ** "+windows, fileManaged)
	t.Add("file.directory", "user group recurse max_depth dir_mode file_mode mode makedirs clean exclude_pat "+
		"follow_symlinks force backupname allow_symlink children_only ** "+windows, Directory)
	t.Add("file.symlink", "target! force backupname makedirs user group mode atomic? disallow_copy_and_unlink? "+
		"inherit_user_and_group follow_symlinks ** "+windows, fileSymlink)
	t.Add("file.absent", "**", fileAbsent)
	t.Add("file.exists", "**", func(c *core.Call) core.Return {
		name := c.ExpandUser(c.Name)
		if name == "" {
			return core.Failf("Must provide name to file.exists")
		}
		if !core.Exists(name) {
			return core.Failf("Specified path %s does not exist", name)
		}
		return core.OKf("Path %s exists", name)
	})
	t.Add("file.missing", "**", func(c *core.Call) core.Return {
		name := c.ExpandUser(c.Name)
		if name == "" {
			return core.Failf("Must provide name to file.missing")
		}
		if core.Exists(name) {
			return core.Failf("Specified path %s exists", name)
		}
		return core.OKf("Path %s is missing", name)
	})
	t.Add("file.append", "text makedirs source source_hash template sources source_hashes defaults context "+
		"ignore_whitespace show_changes", fileAppend)
}

func fileAbsent(c *core.Call) core.Return {
	name := c.ExpandUser(c.Name)
	switch {
	case name == "":
		return core.Failf("Must provide name to file.absent")
	case !filepath.IsAbs(name):
		return core.Failf("Specified file %s is not an absolute path", name)
	case filepath.Clean(name) == "/":
		return core.Failf("Refusing to make \"/\" absent")
	}
	st, err := os.Lstat(name)
	if err != nil {
		return core.OKf("File %s is not present", name)
	}
	what := "file"
	if st.IsDir() {
		what = "directory"
	}
	ret := core.Return{Result: core.True}
	ret.Set("removed", name)
	if c.Test {
		ret.Result = core.None
		ret.Comment = "File " + name + " is set for removal"
		if st.IsDir() {
			ret.Comment = "Directory " + name + " is set for removal"
		}
		return ret
	}
	if st.IsDir() {
		err = c.RemoveAll(name)
	} else {
		err = c.Remove(name)
	}
	if err != nil {
		return core.Failf("Failed to remove %s %s: %s", what, name, core.Cause(err))
	}
	ret.Comment = "Removed " + what + " " + name
	return ret
}
