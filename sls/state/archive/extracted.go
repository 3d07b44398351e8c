package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
)

// States adds archive.extracted for tar (plain, gz, bz2, xz, zst) and zip.
func States(t *core.Table) {
	t.Add("archive.extracted", "source! source_hash source_hash_name source_hash_update skip_files_list_verify skip_verify password options "+
		"list_options tar_options? zip_options force overwrite clean clean_parent user group if_missing keep? keep_source? trim_output "+
		"use_cmd_unzip extract_perms enforce_toplevel enforce_ownership_on archive_format archive_user use_etag? "+
		"signature source_hash_sig "+fetch.Signatures, archiveExtracted)
}

// extraction is one run of archive.extracted. Its steps are those of Salt's, in their order.
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
	missing bool // something of the archive is not there
	updated bool // another archive than the last time
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

// checkTarget looks at where the archive goes.
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

// source finds the archive and what it is.
func (x *extraction) source() *core.Return {
	c := x.c
	if (c.Bool("signature", false) || c.Bool("source_hash_sig", false)) && !c.Installed("gpg") {
		return x.fail("Cannot verify signatures because the gpg module was not loaded")
	}
	src, sum, err := fetch.Source(c)
	if err != nil {
		return x.fail("%s", err)
	}
	if src == "" {
		v, _ := c.Value("source")
		return x.fail("Invalid source \"%s\"", py.Str(v))
	}
	if s := fetch.Scheme(src); s == "" || s == "file" {
		x.local = true
		src = c.ExpandUser(strings.TrimPrefix(src, "file://"))
		if real, err := filepath.EvalSymlinks(src); err == nil {
			src = real
		}
		if !core.IsFile(src) {
			return x.fail("Source file '%s' does not exist", src)
		}
	}
	x.src, x.shown = src, fetch.RedactURL(src)
	x.format = strings.ToLower(c.Str("archive_format", ""))
	switch {
	case x.format == "":
		if x.format = archiveFormat(strings.TrimRight(x.shown, "/")); x.format == "" {
			return x.fail("Could not guess archive_format from the value of the 'source' argument. Please set this archive_format to one of the following: tar, rar, zip")
		}
	case x.format != "tar" && x.format != "rar" && x.format != "zip":
		return x.fail("Invalid archive_format '%s'. Either set it to a supported value (tar, rar, zip) or remove this argument and the archive format will be guessed based on file extension.", x.format)
	}
	verify := !c.Bool("skip_verify", false)
	if s := fetch.Scheme(src); verify && sum == "" && (s == "http" || s == "https") {
		return x.fail("%s", fetch.Unverified(src, " or use_etag"))
	}
	if sum != "" {
		if x.want, err = fetch.WantedSum(c, src, sum); err != nil {
			return x.fail("%s", err)
		}
	}
	return nil
}

// options reads what goes to the programs tar and unzip.
func (x *extraction) options() *core.Return {
	c := x.c
	opts, password := c.Str("options", ""), c.Str("password", "")
	switch x.format {
	case "tar":
		re := regexp.MustCompile(`--strip(?:-components)?(?:\s+|=)["']?(\d+)["']?`)
		if m := re.FindStringSubmatch(opts); m != nil {
			x.strip, _ = strconv.Atoi(m[1])
		}
	case "zip":
		x.unzip = c.Bool("use_cmd_unzip", opts != "")
		switch {
		case opts != "" && !x.unzip:
			return x.fail("'use_cmd_unzip' cannot be set to False if CLI options are being specified (via the 'options' argument). Either remove 'use_cmd_unzip', or set it to True.")
		case x.unzip && !c.Installed("unzip"):
			return x.fail("archive.cmd_unzip function not available, unzip might not be installed on minion")
		}
	default:
		return x.fail("the archive format %s is not supported by the built-in runner", x.format)
	}
	if password != "" && x.format != "zip" {
		return x.fail("The 'password' argument is only supported for zip archives")
	}
	if n := known(c, x.src); n != "" && c.Bool("skip_files_list_verify", false) && x.want.Hex == n {
		result := core.True
		if c.Test {
			result = core.None
		}
		return x.result(result, "Archive %s existing source sum is the same as the expected one and skip_files_list_verify argument was set to True. Extraction is not needed", x.shown)
	}
	if !x.local && c.Test {
		return x.result(core.None, "Archive %s would be cached (if necessary) and checked to discover if extraction is needed", x.shown)
	}
	return nil
}

// read fetches, verifies and lists the archive.
func (x *extraction) read() *core.Return {
	c := x.c
	var err error
	if x.data, _, err = fetch.File(c, x.src); err != nil {
		return x.fail("%s", err)
	}
	verify := !c.Bool("skip_verify", false)
	if got := fetch.Hash(x.want.Kind, x.data); !x.local && fetch.Scheme(x.src) != "salt" && verify && got != x.want.Hex {
		return x.fail("The hash (%s) of %s does not match the specified hash (%s)", got, x.shown, x.want.Hex)
	}
	if sig, _ := c.Value("signature"); py.Truth(sig) {
		if _, yes := sig.(bool); yes {
			return x.fail("'bool' object is not iterable")
		}
		if err := fetch.CheckSignature(c, x.data, sig); err != nil {
			if errors.As(err, new(fetch.RefusedSignature)) {
				return x.fail("Failed verifying the source file's signature: %s", err)
			}
			return x.fail("%s", err)
		}
	}
	if c.Bool("source_hash_update", false) {
		was := known(c, x.src)
		if x.want.Kind != "" && verify && !c.Test {
			if err := saveSum(c, x.src, fetch.Hash("sha256", x.data)); err != nil {
				return x.fail("%s", core.Cause(err))
			}
		}
		x.updated = was != "" && x.want.Kind != "" && verify && was != fetch.Hash("sha256", x.data)
	}
	x.members, err = readArchive(x.data, x.format, c.Str("password", ""))
	if err != nil && x.format == "tar" && c.Has("list_options") {
		x.members, err = x.listThrough(c.Str("list_options", ""))
	}
	if err != nil {
		return x.cannotList(err)
	}
	if c.Str("password", "") == "" && slices.ContainsFunc(x.members, func(m member) bool { return errors.Is(m.broken, errEncrypted) }) {
		return x.fail("Archive %s is password-protected, but no password was specified. Please set the 'password' argument.", x.shown)
	}
	x.list = list(x.members, x.format == "zip", x.strip)
	if c.Bool("enforce_toplevel", true) && (len(x.list.topDirs) > 1 || len(x.list.topFiles) > 0) {
		return x.fail("Archive does not have a single top-level directory. To allow this archive to be extracted, set 'enforce_toplevel' to False. To avoid a '%s-bomb' it may also be advisable to set a top-level directory by adding it to the 'name' value (for example, setting 'name' to %ssome_dir instead of %s).",
			x.format, x.name, x.name)
	}
	if c.Bool("clean", false) && c.Bool("clean_parent", false) {
		return x.fail("Only one of 'clean' and 'clean_parent' can be set to True")
	}
	return nil
}

var errListOptions = core.Errorf("Invalid CLI options")

// listThrough lists a tar archive that the program of list_options decompresses.
func (x *extraction) listThrough(options string) ([]member, error) {
	argv, err := shlexSplit(options)
	if err != nil || len(argv) == 0 {
		return nil, errListOptions
	}
	file, discard, err := x.onDisk()
	if err != nil {
		return nil, err
	}
	defer discard()
	sh := host.Shell{Argv: append(argv, file), Dir: "/", Env: map[string]string{"PATH": x.c.ToolPath()}, KeepEnd: true}
	dir, drop, err := x.c.NewTempDir("corpus-archive-")
	if err != nil {
		return nil, err
	}
	defer drop()
	// The output of a program is kept in part only, so the archive goes through a file.
	plain := filepath.Join(dir, "plain.tar")
	sh.Argv = append([]string{"/bin/sh", "-c", `exec "$@" >"$0"`, plain}, sh.Argv...)
	res, err := x.c.Host.RunShell(x.c.Ctx, sh)
	if err != nil {
		return nil, err
	}
	if res.Retcode != 0 {
		return nil, decompressError(strings.TrimRight(res.Stderr, "\n"))
	}
	data, err := os.ReadFile(plain)
	if err != nil {
		return nil, err
	}
	return readTar(data)
}

// decompressError is what the program of list_options said when it failed.
type decompressError string

func (e decompressError) Error() string { return string(e) }

// cannotList is Salt's advice where an archive can't be listed.
func (x *extraction) cannotList(err error) *core.Return {
	msg := "Unable to list contents of " + x.src + ". If this is an XZ-compressed tar archive, install XZ Utils to enable listing its contents. " +
		"If it is compressed using something other than XZ, it may be necessary to specify CLI options to decompress the archive. See the documentation for details."
	way := "The following workarounds must be used for this state to proceed"
	if x.format == "zip" {
		msg = x.src + " is not a ZIP file"
	} else {
		way = "If the source archive is a tar archive compressed using a compression type not natively supported by the tar command, then setting the 'list_options' argument may " +
			"allow the contents to be listed. Otherwise, if Salt is unable to determine the files/directories in the archive, the following workaround(s) would need to be used for this state to proceed"
	}
	switch {
	case errors.As(err, new(decompressError)):
		msg = "Failed to decompress " + x.src
	case errors.As(err, new(outsideError)), err == errListOptions:
		msg = err.Error()
	}
	var advice []string
	if !x.c.Has("if_missing") {
		advice = append(advice, "'if_missing' must be set")
	}
	if !x.c.Has("enforce_ownership_on") && (x.owner.User != nil || x.owner.Group != nil) {
		advice = append(advice, "Ownership cannot be managed without setting 'enforce_ownership_on'.")
	}
	msg = strings.TrimSuffix(msg, ".") + ". Additional info follows:\n\narchive location:\n    " + x.src
	if bad := decompressError(""); errors.As(err, &bad) {
		msg += "\nerror:\n    " + strings.ReplaceAll(string(bad), "\n", "\n    ")
	}
	if len(advice) > 0 {
		msg += "\n\n" + way + " (assuming the source file is a valid " + x.format + " archive):\n\n- " + strings.Join(advice, "\n- ")
	}
	return x.fail("%s", msg)
}

// onDisk is the archive as a file.
func (x *extraction) onDisk() (path string, discard func(), err error) {
	if x.local {
		return x.src, func() {}, nil
	}
	dir, discard, err := x.c.NewTempDir("corpus-archive-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, filepath.Base(x.shown))
	if err = os.WriteFile(path, x.data, 0o600); err != nil {
		discard()
	}
	return path, discard, err
}

// compare compares the archive with what is there. Nothing to extract ends the state.
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

// reason says why the archive is extracted.
func (x *extraction) reason() string {
	switch {
	case x.updated:
		return ", due to source_hash update"
	case x.missing:
		return ", due to absence of one or more files/dirs"
	}
	return ""
}

// extract clears the way and unpacks.
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

// note tells the undo log what the archive is about to write: a new directory as a whole, else each member.
func (x *extraction) note(created bool) error {
	if created {
		_, err := x.c.Undo.BeforeWhole(strings.TrimRight(x.name, "/"))
		return err
	}
	for _, p := range slices.Concat(x.list.dirs, x.list.files, x.list.links) {
		if err := x.c.Undo.Before(filepath.Join(x.name, p)); err != nil {
			return err
		}
	}
	return nil
}

// known and remember keep the hash that an archive had the last time, beside the backups; where there is no place for
// those, for as long as the program runs.
func known(c *core.Call, source string) string {
	if c.Backups == "" {
		s, _ := c.Cache["archive hash "+source].(string)
		return s
	}
	b, err := os.ReadFile(hashFile(c, source))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func saveSum(c *core.Call, source, sum string) error {
	if c.Backups == "" {
		c.Cache["archive hash "+source] = sum
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(hashFile(c, source)), 0o700); err != nil {
		return err
	}
	return c.ReplaceFile(hashFile(c, source), []byte(sum+"\n"), 0o600, -1, -1)
}

func hashFile(c *core.Call, source string) string {
	return filepath.Join(c.Backups, "archive_hash", fetch.Hash("sha256", []byte(source)))
}
