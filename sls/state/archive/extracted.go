package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
)

// States adds archive.extracted for tar (plain, gz, bz2, xz, zst) and zip.
func States(t *core.Table) {
	t.Add("archive.extracted", "source! source_hash source_hash_name source_hash_update skip_files_list_verify skip_verify password options "+
		"list_options tar_options? zip_options force overwrite clean clean_parent user group if_missing keep? keep_source? trim_output "+
		"use_cmd_unzip extract_perms enforce_toplevel enforce_ownership_on archive_format archive_user use_etag? "+
		"signature source_hash_sig "+fetch.Signatures+" **", archiveExtracted)
}

// extraction is one run of archive.extracted. Its steps are Salt's, in the same order.
// Source: Salt documentation, archive state, extracted; salt/states/archive.py.
type extraction struct {
	c      *core.Call
	name   string // with a slash at its end
	src    string
	shown  string // the source without a password
	local  bool
	owner  core.Owner
	format string
	strip  int
	unzip  bool // by the program unzip

	data    []byte
	want    fetch.Sum
	members []member
	list    listing
	ret     core.Return
	missing bool // something in the archive is missing on disk
	updated bool // a different archive than last time
}

func archiveExtracted(c *core.Call) core.Return {
	x := extraction{c: c, ret: core.Return{Result: core.False}}
	for _, step := range []func() *core.Return{x.checkTarget, x.source, x.options, x.read, x.compare, x.extract} {
		if done := step(); done != nil {
			return *done
		}
	}
	return x.finish(true)
}

// fail ends the state, with the changes that were made.
func (x *extraction) fail(format string, args ...any) *core.Return {
	x.ret.Result, x.ret.Comment = core.False, fmt.Sprintf(format, args...)
	return &x.ret
}

func (x *extraction) result(result core.Tri, format string, args ...any) *core.Return {
	x.fail(format, args...)
	x.ret.Result = result
	return &x.ret
}

// checkTarget checks the target of the archive.
func (x *extraction) checkTarget() *core.Return {
	c := x.c
	if c.Bool("skip_files_list_verify", false) && c.Bool("skip_verify", false) {
		return x.fail(`Only one of "skip_files_list_verify" and "skip_verify" can be set to True`)
	}
	name := c.Name
	if !filepath.IsAbs(name) {
		return x.fail("%s is not an absolute path", name)
	}
	name = strings.TrimRight(name, "/")
	if core.IsFile(name) {
		return x.fail("%s exists and is not a directory", name)
	}
	x.name = name + "/"
	missing, enforce := c.Str("if_missing", ""), c.Str("enforce_ownership_on", "")
	switch {
	case c.Has("if_missing") && !filepath.IsAbs(missing):
		return x.fail("Value for 'if_missing' is not an absolute path")
	case c.Has("enforce_ownership_on") && !filepath.IsAbs(enforce):
		return x.fail("Value for 'enforce_ownership_on' is not an absolute path")
	}
	if enforce != "" {
		if rel, err := filepath.Rel(x.name, enforce); err != nil || strings.HasPrefix(rel, "../") {
			return x.fail("Value for 'enforce_ownership_on' must be within %s", x.name)
		}
	}
	if missing != "" && core.Exists(missing) {
		return x.result(core.True, "Path %s exists", missing)
	}
	o, complaint := c.Owner()
	x.owner = o
	switch {
	case strings.HasPrefix(complaint, "User "):
		return x.fail("User %s does not exist", o.UserName)
	case complaint != "":
		return x.fail("Group %s does not exist", o.GrpName)
	}
	return nil
}

// compare compares the archive with what is on disk. Nothing to extract ends the state.
func (x *extraction) compare() *core.Return {
	c := x.c
	var wrong []string
	for i, paths := range [][]string{x.list.dirs, x.list.files, x.list.links} {
		for _, p := range paths {
			st, err := os.Lstat(filepath.Join(x.name, p))
			if err != nil {
				x.missing = x.missing || errors.Is(err, fs.ErrNotExist)
				continue
			}
			isLink := st.Mode()&fs.ModeSymlink != 0
			if i == 0 && !st.IsDir() || i == 1 && (isLink || st.IsDir()) || i == 2 && !isLink {
				wrong = append(wrong, p)
			}
		}
	}
	needed := c.Bool("overwrite", false) || x.missing
	clean := c.Bool("clean", false)
	if len(wrong) > 0 {
		paths := "\n\n- " + strings.Join(wrong, "\n- ")
		text := "The below paths (relative to " + x.name + ") exist, but are the incorrect type (file instead of directory, symlink instead of file, etc.)."
		switch {
		case c.Test && clean:
			return x.result(core.None, "%s Since the 'clean' option is enabled, the destination paths would be cleared and the archive would be extracted.%s", text, paths)
		case c.Test && c.Bool("clean_parent", false):
			return x.result(core.None, "%s Since the 'clean_parent' option is enabled, the destination parent directory would be removed first and then re-created and the archive would be extracted", text)
		case clean:
		case !c.Bool("force", false):
			return x.fail("%s To proceed with extraction, set 'force' to True. Note that this will remove these paths before extracting.%s", text, paths)
		default:
			if c.Test { // Salt would remove them in a test run
				needed = true
				break
			}
			removed := py.NewList()
			for _, p := range wrong {
				if err := c.RemoveAll(filepath.Join(x.name, p)); err != nil {
					return x.fail("%s", core.Cause(err))
				}
				removed.Append(x.name + p)
				x.ret.Set("removed", removed)
				needed = true
			}
		}
	}
	if !needed && x.updated {
		needed = true
	} else {
		x.updated = false
	}
	if !needed {
		r := x.finish(false)
		return &r
	}
	return nil
}

// reason returns why the archive is extracted.
func (x *extraction) reason() string {
	switch {
	case x.updated:
		return ", due to source_hash update"
	case x.missing:
		return ", due to absence of one or more files/dirs"
	}
	return ""
}

// extract removes what is in the way and unpacks.
func (x *extraction) extract() *core.Return {
	c := x.c
	if got := fetch.Hash(x.want.Kind, x.data); x.local && !c.Bool("skip_verify", false) && got != x.want.Hex {
		return x.fail("%s does not match the desired source_hash %s", x.shown, x.want.Hex)
	}
	clean := c.Bool("clean", false)
	if c.Test {
		text := "Archive " + x.shown + " would be extracted to " + x.name
		if clean {
			text += ", after cleaning destination path(s)"
		}
		return x.result(core.None, "%s", text+x.reason())
	}
	if c.Bool("clean_parent", false) {
		if err := c.RemoveAll(strings.TrimRight(x.name, "/")); err != nil {
			return x.fail("Unable to remove the directory %s. The following errors were observed:\n\n- %s", x.name, err)
		}
		if !x.ret.Changes.Has("removed") {
			x.ret.Set("removed", "Directory "+x.name+" was removed prior to the extraction")
		}
	}
	if clean {
		removed := py.NewList()
		for _, p := range slices.Concat(x.list.topDirs, x.list.topFiles) {
			at := filepath.Join(x.name, p)
			if !core.Lexists(at) {
				continue
			}
			if err := c.RemoveAll(at); err != nil {
				return x.fail("One or more paths could not be cleaned. The following errors were observed:\n\n- %s", err)
			}
			removed.Append(x.name + p)
			x.ret.Set("removed", removed)
		}
	}
	created := !core.IsDir(x.name)
	if created {
		if err := c.MakeDirs(strings.TrimRight(x.name, "/"), core.Owner{User: x.owner.User, UserName: x.owner.UserName}, nil); err != nil {
			return x.fail("Failed to create directory %s: %s", x.name, core.Cause(err))
		}
	}
	if err := x.note(created); err != nil {
		return x.fail("%s", core.Cause(err))
	}
	files, done := x.unpack()
	if done != nil {
		return done
	}
	if created {
		x.ret.Set("directories_created", py.NewList(x.name))
	}
	x.ret.Set("extracted_files", files)
	return nil
}

// note records in the undo log what the archive is about to write: a new directory as a whole, otherwise
// each member.
func (x *extraction) note(created bool) error {
	if created {
		_, err := x.c.Undo.BeforeWhole(x.c.Ctx, strings.TrimRight(x.name, "/"))
		return err
	}
	for _, p := range slices.Concat(x.list.dirs, x.list.files, x.list.links) {
		if err := x.c.Undo.Before(x.c.Ctx, filepath.Join(x.name, p)); err != nil {
			return err
		}
	}
	return nil
}
