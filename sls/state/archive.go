package state

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"corpus-git/internal/py"
)

// addArchive adds archive.extracted for tar (plain, gz, bz2, xz, zst) and zip.
func addArchive(t *Table) {
	t.add("archive.extracted", "source! source_hash source_hash_name source_hash_update~ skip_files_list_verify~ skip_verify password~ options "+
		"list_options~ tar_options zip_options~ force overwrite clean clean_parent~ user group if_missing keep keep_source? trim_output? "+
		"use_cmd_unzip? extract_perms~true enforce_toplevel enforce_ownership_on~ archive_format archive_user~ use_etag? "+
		"signature~ source_hash_sig~ signed_by_any~ signed_by_all~ keyring~ gnupghome~ sig_backend~gpg", archiveExtracted)
}

// member is one entry of an archive.
type member struct {
	name string
	mode fs.FileMode
	link string // target of a symbolic link
	hard string // target of a hard link
	data []byte
}

// archiveExtracted implements archive.extracted. Source: Salt documentation, archive state, extracted.
func archiveExtracted(c *Call) Return {
	name := strings.TrimSuffix(c.expand(c.Name), "/")
	if !filepath.IsAbs(name) {
		return Failf("%s is not an absolute path", name)
	}
	o, complaint := c.owner()
	if complaint != "" {
		return Failf("%s", complaint)
	}
	if m := c.str("if_missing", ""); m != "" && exists(m) {
		return OKf("Path %s exists", m)
	}
	src, sum, err := c.source()
	if err != nil {
		return Failf("%s", err)
	}
	if p := strings.TrimPrefix(src, "file://"); filepath.IsAbs(p) && !exists(p) {
		return Failf("Source file '%s' does not exist", p)
	}
	verify := scheme(src) != "salt" && !c.boolean("skip_verify", false)
	if s := scheme(src); verify && sum == "" && (s == "http" || s == "https") {
		return Failf("%s", unverified(src, " or use_etag"))
	}
	var want sourceSum
	if verify && sum != "" {
		if want, err = c.sourceSum(src, sum); err != nil {
			return Failf("%s", err)
		}
	}
	data, _, err := c.fetch(src)
	if err != nil {
		return Failf("%s", err)
	}
	if got := hashOf(want.kind, data); got != want.hex {
		return Failf("The hash (%s) of %s does not match the specified hash (%s)", got, redactURL(src), want.hex)
	}
	members, err := readArchive(data, src, c.str("archive_format", ""))
	if err != nil {
		return Failf("Failed to read the archive: %s", err)
	}
	return c.extract(name, src, members, o)
}

func (c *Call) extract(name, src string, members []member, o owner) Return {
	top := map[string]bool{}
	var missing []member
	for _, m := range members {
		first, _, nested := strings.Cut(m.name, "/")
		if nested || m.mode.IsDir() {
			top[first] = true
		} else {
			top[first] = top[first] || false
			if !m.mode.IsDir() {
				top["\x00file"] = true
			}
		}
		if !lexists(filepath.Join(name, m.name)) {
			missing = append(missing, m)
		}
	}
	strip := strings.Contains(c.str("options", "")+c.str("tar_options", ""), "--strip")
	if strip {
		return Failf("the option --strip-components is not supported by the built-in runner")
	}
	if c.boolean("enforce_toplevel", true) && (len(top) != 1 || top["\x00file"]) {
		return Failf("Archive does not have a single top-level directory. To allow this archive to be extracted, set 'enforce_toplevel' to False. To avoid a 'tar-bomb' it may also be advisable to set a top-level directory by adding it to the 'name' value (for example, setting 'name' to %s/some_dir instead of %s/).", name, name)
	}
	over := c.boolean("overwrite", false)
	clean := c.boolean("clean", false)
	if len(missing) == 0 && !over && !clean {
		ret := Return{Result: True, Comment: "All files in archive are already present"}
		return c.ownTree(name, members, o, ret)
	}
	if c.Test {
		return Would(nil, "Archive %s would be extracted to %s/, due to absence of one or more files/dirs", redactURL(src), name)
	}
	ret := Return{Result: True}
	if clean {
		removed := py.NewList()
		for t := range top {
			p := filepath.Join(name, t)
			if lexists(p) {
				if err := os.RemoveAll(p); err != nil {
					return Failf("Failed to remove %s: %s", p, why(err))
				}
				removed.Append(p)
			}
		}
		if removed.Len() > 0 {
			ret.Set("removed", removed)
		}
	}
	if !isDir(name) {
		ret.Set("directories_created", py.NewList(name+"/"))
	}
	if err := c.makeDirs(name, o, nil); err != nil {
		return Failf("Failed to create directory %s: %s", name, why(err))
	}
	extracted := py.NewList()
	for _, m := range members {
		if err := c.place(name, m); err != nil {
			return Failf("Failed to extract %s: %s", m.name, why(err))
		}
		extracted.Append(m.name)
	}
	ret.Set("extracted_files", extracted)
	ret.Comment = redactURL(src) + " extracted to " + name + "/, due to absence of one or more files/dirs"
	return c.ownTree(name, members, o, ret)
}

// place writes one member below dir. Links are never followed on the way: an archive cannot write outside.
func (c *Call) place(dir string, m member) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if parent := filepath.Dir(m.name); parent != "." {
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	perm := m.mode.Perm()
	switch {
	case m.mode.IsDir():
		if err := root.MkdirAll(m.name, 0o755); err != nil {
			return err
		}
		return root.Chmod(m.name, perm|0o700)
	case m.link != "":
		_ = root.Remove(m.name)
		return root.Symlink(m.link, m.name)
	case m.hard != "":
		_ = root.Remove(m.name)
		return root.Link(m.hard, m.name)
	}
	_ = root.Remove(m.name)
	f, err := root.OpenFile(m.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(m.data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return root.Chmod(m.name, perm)
}

// ownTree gives the members their owner.
func (c *Call) ownTree(name string, members []member, o owner, ret Return) Return {
	if o.user == nil && o.group == nil || !isDir(name) {
		return ret
	}
	var paths []string
	for _, m := range members {
		paths = append(paths, filepath.Join(name, m.name))
	}
	sort.Strings(paths)
	changed := false
	for _, p := range append([]string{name}, paths...) {
		ch, err := c.enforce(p, o, nil, false)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Failf("Failed to change the owner of %s: %s", p, why(err))
		}
		changed = changed || ch.Len() > 0
	}
	if changed && !ret.Changes.Has("extracted_files") {
		ret.Set("updated ownership", true)
		if c.Test {
			ret.Result = None
		}
	}
	return ret
}

const (
	maxArchive = 8 << 30
	maxMembers = 500000
)

// readArchive reads all members into memory; names that leave the directory are an error.
func readArchive(data []byte, src, format string) ([]member, error) {
	if format == "" {
		switch n := strings.ToLower(src); {
		case strings.HasSuffix(n, ".zip"), strings.HasSuffix(n, ".jar"), strings.HasSuffix(n, ".war"):
			format = "zip"
		default:
			format = "tar"
		}
	}
	switch format {
	case "tar":
		return readTar(data)
	case "zip":
		return readZip(data)
	}
	return nil, fmt.Errorf("the archive format %s is not supported by the built-in runner", format)
}

func cleanMember(name string) (string, error) {
	n := strings.TrimSuffix(strings.TrimPrefix(filepath.Clean(strings.TrimLeft(name, "/")), "./"), "/")
	if n == "." {
		return "", nil
	}
	if !filepath.IsLocal(n) {
		return "", fmt.Errorf("the member %q would be written outside of the directory", name)
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
		if name == "" {
			continue
		}
		m := member{name: name, mode: h.FileInfo().Mode()}
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

func readZip(data []byte) ([]member, error) {
	zr, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	var out []member
	total := uint64(0)
	for _, f := range zr.File {
		name, err := cleanMember(f.Name)
		if err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		m := member{name: name, mode: f.Mode()}
		if total += f.UncompressedSize64; total > maxArchive || len(out) > maxMembers {
			return nil, errors.New("it is too large")
		}
		if !m.mode.IsDir() {
			r, err := f.Open()
			if err != nil {
				return nil, err
			}
			m.data, err = io.ReadAll(r)
			_ = r.Close()
			if err != nil {
				return nil, err
			}
			if m.mode&fs.ModeSymlink != 0 {
				m.link, m.data = string(m.data), nil
			}
		}
		out = append(out, m)
	}
	return out, nil
}
