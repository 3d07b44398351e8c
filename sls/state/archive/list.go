package archive

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// member is one entry of an archive.
type member struct {
	name string // clean, below the directory
	raw  string // as in the archive
	mode fs.FileMode
	link string // target of a symbolic link
	hard string // target of a hard link
	data []byte
	// bare is a member of a zip archive without a mode.
	bare bool
	// broken is why the data of a member of a zip archive can't be read; the member is listed anyway.
	broken error
}

// listing is the contents of an archive, as Salt lists them: directories end with a slash.
// Source: Salt, salt/modules/archive.py, list_.
type listing struct {
	dirs, files, links          []string
	topDirs, topFiles, topLinks []string
}

func list(members []member, zip bool, strip int) listing {
	var l listing
	for _, m := range members {
		switch {
		case m.mode&fs.ModeSymlink != 0:
			l.links = append(l.links, m.raw)
		case m.mode.IsDir():
			l.dirs = append(l.dirs, strings.TrimSuffix(m.raw, "/")+"/")
		default:
			l.files = append(l.files, m.raw)
			if i := strings.LastIndexByte(m.raw, '/'); zip && i >= 0 { // zip archives need not contain their directories
				l.dirs = append(l.dirs, m.raw[:i+1])
			}
		}
	}
	for _, all := range []*[]string{&l.dirs, &l.files, &l.links} {
		var kept []string
		for _, p := range *all {
			if parts := strings.SplitN(p, "/", strip+1); len(parts) > strip && parts[strip] != "" {
				kept = append(kept, parts[strip])
			}
		}
		slices.Sort(kept)
		if zip {
			kept = slices.Compact(kept)
		}
		*all = kept
	}
	top := func(paths []string, slashes int) (out []string) {
		for _, p := range paths {
			if strings.Count(p, "/") == slashes {
				out = append(out, p)
			}
		}
		return out
	}
	l.topDirs, l.topFiles, l.topLinks = top(l.dirs, 1), top(l.files, 0), top(l.links, 0)
	if first, _, ok := strings.Cut(commonPrefix(slices.Concat(l.dirs, l.files, l.links)), "/"); ok && !slices.Contains(l.topDirs, first+"/") {
		l.topDirs = append(l.topDirs, first+"/")
	}
	return l
}

func commonPrefix(all []string) string {
	if len(all) == 0 {
		return ""
	}
	low, high := slices.Min(all), slices.Max(all)
	i := 0
	for i < min(len(low), len(high)) && low[i] == high[i] {
		i++
	}
	return low[:i]
}

const (
	maxArchive = 8 << 30
	maxMembers = 500000
)

// readArchive reads all members into memory; names that leave the directory are an error.
func readArchive(data []byte, format, password string) ([]member, error) {
	switch format {
	case "tar":
		return readTar(data)
	case "zip":
		return readZip(data, password)
	}
	return nil, fmt.Errorf("the archive format %s is not supported by the built-in runner", format)
}

// archiveFormat derives the format from the name; "" if that is not possible.
func archiveFormat(name string) string {
	name = strings.ToLower(name)
	for _, end := range []string{"tar", "tar.gz", "tgz", "tar.bz2", "tbz2", "tbz", "tar.xz", "txz", "tar.lzma", "tlz", "tar.zst", "tzst"} {
		if strings.HasSuffix(name, "."+end) {
			return "tar"
		}
	}
	for _, end := range []string{"zip", "jar", "war"} {
		if strings.HasSuffix(name, "."+end) {
			return "zip"
		}
	}
	if strings.HasSuffix(name, ".rar") {
		return "rar"
	}
	return ""
}

// outsideError is a member that would be written outside the directory.
type outsideError string

func (e outsideError) Error() string {
	return fmt.Sprintf("the member %q would be written outside of the directory", string(e))
}

func cleanMember(name string) (string, error) {
	n := strings.TrimSuffix(strings.TrimPrefix(filepath.Clean(strings.TrimLeft(name, "/")), "./"), "/")
	if n == "." {
		return "", nil
	}
	if !filepath.IsLocal(n) {
		return "", outsideError(name)
	}
	return n, nil
}

func readTar(data []byte) ([]member, error) {
	r, err := decompress(data)
	if err != nil {
		return nil, err
	}
	tr := tar.NewReader(io.LimitReader(r, maxArchive))
	var out []member
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		name, err := cleanMember(h.Name)
		if err != nil {
			return nil, err
		}
		m := member{name: name, raw: strings.TrimSuffix(h.Name, "/"), mode: h.FileInfo().Mode()}
		switch h.Typeflag {
		case tar.TypeReg:
			if m.data, err = io.ReadAll(tr); err != nil {
				return nil, err
			}
		case tar.TypeDir:
		case tar.TypeSymlink:
			m.link = h.Linkname
		case tar.TypeLink:
			if m.hard, err = cleanMember(h.Linkname); err != nil {
				return nil, err
			}
		default:
			continue
		}
		if out = append(out, m); len(out) > maxMembers {
			return nil, errors.New("it holds too many files")
		}
	}
}

func decompress(data []byte) (io.Reader, error) {
	b := bytes.NewReader(data)
	switch {
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		return gzip.NewReader(b)
	case bytes.HasPrefix(data, []byte("BZh")):
		return bzip2.NewReader(b), nil
	case bytes.HasPrefix(data, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		return xz.NewReader(b)
	case bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return zstd.NewReader(b)
	}
	return b, nil
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
	argv, err := py.ShlexSplit(options)
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
	// The output of a program is only kept in part, so the archive goes through a file.
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

// decompressError is the output of the failed program of list_options.
type decompressError string

func (e decompressError) Error() string { return string(e) }

// cannotList returns Salt's advice for an archive that can't be listed.
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
