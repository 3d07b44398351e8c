package archive

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
)

// source finds the archive and its format.
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
		name := x.shown
		if !x.local {
			name = name[:strings.IndexAny(name+"?", "?#")] // the path of the address: salt://a.tar?saltenv=prod
		}
		if x.format = archiveFormat(strings.TrimRight(name, "/")); x.format == "" {
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

// options reads the options for the programs tar and unzip.
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

// onDisk returns the archive as a file.
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

// known and remember store the last hash of an archive, next to the backups; without a folder for those, only for
// the lifetime of the program.
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
