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
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// member is one entry of an archive.
type member struct {
	name string // clean, below the directory
	raw  string // as the archive has it
	mode fs.FileMode
	link string // target of a symbolic link
	hard string // target of a hard link
	data []byte
	// bare is a member of a zip archive without a mode.
	bare bool
	// broken is why the data of a member of a zip archive can't be read; the member is listed nonetheless.
	broken error
}

// listing is what an archive holds, as Salt lists it: directories end with a slash.
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
			if i := strings.LastIndexByte(m.raw, '/'); zip && i >= 0 { // zip archives need not have their directories
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

// archiveFormat guesses it by the name; "" where it does not say.
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

// outsideError is a member that would be written outside of the directory.
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
