package fileroot

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"corpus-git/internal/vfs"
)

// Root is one source of salt:// files.
type Root struct {
	// FS holds the files. A symbolic link in it must already be followed, as os.DirFS does.
	FS fs.FS
	// Dir is where FS is on disk, "" if it is not on disk.
	Dir string
	// Mount is the folder of salt:// below which FS appears, "" for the top.
	Mount string
	// Public is the folder in which users who cannot read Dir find the same files, "" if they can read Dir. Nothing is run from it with the
	// privileges of this process, since others can write to it.
	Public string
	// Foreign marks the recipe of another project: its files can be included, its Salt modules are not loaded. It stays the same for a deployment.
	Foreign bool
	// Label replaces Dir in messages about files, e.g. ".salt"; "" means to use the salt:// path.
	Label string
}

// OnDisk returns a root that is a directory of the machine.
func OnDisk(dir string) Root { return Root{FS: vfs.Files(dir), Dir: dir} }

// Roots are searched in order; mounts hide what is below their folder in all others.
type Roots []Root

// File is a file that was found.
type File struct {
	Root Root
	// Path is the path below salt://.
	Path string
	// Rel is the path inside Root.FS.
	Rel string
	// Link is, in a walk, the target of a symbolic link that stays within its root; "" otherwise.
	Link string
}

// Display returns the name of the file in messages: the root's label and the path below it, otherwise the salt:// path.
func (f File) Display() string {
	if f.Root.Label != "" {
		return path.Join(f.Root.Label, f.Rel)
	}
	return f.Path
}

// Disk returns the file's path on disk for a program that runs as this process, "" if its root is not on disk.
func (f File) Disk() string { return f.below(f.Root.Dir) }

// DiskFor returns the file's path on disk for a program that runs as another user.
func (f File) DiskFor() string {
	if f.Root.Public != "" {
		return f.below(f.Root.Public)
	}
	return f.Disk()
}

func (f File) below(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, filepath.FromSlash(f.Rel))
}

// Read returns the content of the file.
func (f File) Read() ([]byte, error) { return fs.ReadFile(f.Root.FS, f.Rel) }

// Stat describes the file.
func (f File) Stat() (fs.FileInfo, error) { return fs.Stat(f.Root.FS, f.Rel) }

// clean turns what an SLS file wrote (salt://a/b, a/b, a//b) into a path below salt://; ok is false if it leaves the
// root. Text after a question mark is not part of it, except after salt://| ; a directory keeps it, unless it names an environment. env is the
// environment that the address names, "base" if it names none. Source: Salt, utils/url.py, parse and escape.
func clean(p string, dir bool) (c, env string, ok bool) {
	c, isURL := strings.CutPrefix(p, "salt://")
	env = "base"
	switch escaped, is := strings.CutPrefix(c, "|"); {
	case is && isURL:
		c = escaped
	case isURL || strings.Contains(c, "?"):
		if before, named, found := strings.Cut(c, "?saltenv="); found {
			c, env = before, named
		} else if before, _, found := strings.Cut(c, "?env="); found {
			c = before
		} else if at := strings.IndexByte(c, '?'); at >= 0 && !dir {
			c = c[:at]
		}
	}
	c = path.Clean(strings.TrimLeft(c, "/"))
	return c, env, fs.ValidPath(c)
}

func (r Root) rel(p string) (string, bool) {
	m := strings.Trim(r.Mount, "/")
	if m == "" {
		return p, true
	}
	if p == m {
		return ".", true
	}
	return strings.CutPrefix(p, m+"/")
}

func (r Roots) candidates(p string) []File {
	var out []File
	for _, root := range r {
		if root.Mount == "" {
			continue
		}
		if rel, ok := root.rel(p); ok {
			out = append(out, File{Root: root, Path: p, Rel: rel})
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, root := range r {
		if root.Mount == "" {
			out = append(out, File{Root: root, Path: p, Rel: p})
		}
	}
	return out
}

// Find returns the first regular file at a salt:// path. The error wraps fs.ErrNotExist if there is none.
func (r Roots) Find(p string) (File, error) { return r.find(p, false) }

// FindDir returns the first directory at a salt:// path.
func (r Roots) FindDir(p string) (File, error) { return r.find(p, true) }

func (r Roots) find(p string, dir bool) (File, error) {
	c, env, ok := clean(p, dir)
	if !ok {
		return File{}, fmt.Errorf("salt://%s leaves the file roots: %w", p, fs.ErrInvalid)
	}
	if env != "base" { // there is only one environment
		return File{}, fmt.Errorf("salt://%s in the environment %s: %w", c, env, fs.ErrNotExist)
	}
	for _, f := range r.candidates(c) {
		st, err := f.Stat()
		if err == nil && st.IsDir() == dir {
			return f, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !isNotDir(err) {
			return File{}, fmt.Errorf("salt://%s: %w", c, err)
		}
	}
	return File{}, fmt.Errorf("salt://%s: %w", c, fs.ErrNotExist)
}

func isNotDir(err error) bool { return err != nil && strings.Contains(err.Error(), "not a directory") }

// SLS finds the file of a dotted SLS name: a/b.sls, then a/b/init.sls.
// Source: Salt documentation, "How Do I Use Salt States?", SLS File Namespace.
func (r Roots) SLS(name string) (File, error) {
	base := strings.ReplaceAll(name, ".", "/")
	f, err := r.Find(base + ".sls")
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if f, err2 := r.Find(base + "/init.sls"); err2 == nil {
		return f, nil
	}
	return File{}, err
}

// Dirs returns the folders of salt:// that contain files and whose names begin with prefix, sorted.
func (r Roots) Dirs(prefix string) []string {
	seen := map[string]bool{}
	for _, root := range r {
		_ = fs.WalkDir(root.FS, ".", func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil
			}
			full := path.Join(strings.Trim(root.Mount, "/"), p)
			if full == "." || !strings.HasPrefix(full, prefix) {
				return nil
			}
			if f, err := r.FindDir(full); err == nil && f.Root.Mount == root.Mount {
				seen[full] = true
			}
			return nil
		})
	}
	return slices.Sorted(maps.Keys(seen))
}

// AllSLS returns the dotted names of every SLS file, sorted, for globs in include.
func (r Roots) AllSLS() []string {
	seen := map[string]bool{}
	for _, root := range r {
		_ = fs.WalkDir(root.FS, ".", func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(p, ".sls") {
				return nil
			}
			full := path.Join(strings.Trim(root.Mount, "/"), p)
			if f, err := r.Find(full); err != nil || f.Root.Mount != root.Mount {
				return nil
			}
			n := strings.TrimSuffix(full, ".sls")
			n = strings.TrimSuffix(n, "/init")
			seen[strings.ReplaceAll(n, "/", ".")] = true
			return nil
		})
	}
	out := make([]string, 0, len(seen))
	for n := range seen {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}
