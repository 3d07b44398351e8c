package skeletons

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

//go:embed all:compose all:django all:go all:multi all:node all:php all:python all:ruby all:shell all:static all:worker all:zero-downtime
var files embed.FS

// sourceSuffix is the suffix, here, of files that would make a folder a Go module, or a package of this one.
const sourceSuffix = ".skeleton"

// Skeleton is one skeleton.
type Skeleton struct {
	Name string `json:"name"`
	// Title is the first line of its README.md.
	Title string `json:"title"`
	// Own reports that it belongs to the operator, and is in Dir.
	Own bool   `json:"own"`
	Dir string `json:"dir,omitempty"`

	files fs.FS
}

// List returns all skeletons by name: those of the program, and the folders below own, if it is not "" and exists.
func List(own string) ([]Skeleton, error) {
	byName := map[string]Skeleton{}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		sub, err := fs.Sub(files, e.Name())
		if err != nil {
			return nil, err
		}
		byName[e.Name()] = Skeleton{Name: e.Name(), Title: title(sub), files: sub}
	}
	if own != "" {
		entries, err := os.ReadDir(own)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New(fault.Internal, "read the skeletons", "%w", err)
		}
		for _, e := range entries {
			dir := filepath.Join(own, e.Name())
			if fi, err := os.Stat(dir); err == nil && fi.IsDir() && e.Name()[0] != '.' {
				byName[e.Name()] = folder(e.Name(), dir)
			}
		}
	}
	out := make([]Skeleton, 0, len(byName))
	for _, s := range byName {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Skeleton) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Find returns the skeleton with a name, or the folder at a path, which contains a slash. An unknown name is fault.Usage.
func Find(own, name string) (Skeleton, error) {
	if strings.Contains(name, "/") {
		if fi, err := os.Stat(name); err != nil || !fi.IsDir() {
			return Skeleton{}, fault.New(fault.Usage, "", "%s is not a folder", name)
		}
		return folder(filepath.Base(name), name), nil
	}
	all, err := List(own)
	if err != nil {
		return Skeleton{}, err
	}
	var names []string
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Skeleton{}, fault.New(fault.Usage, "", "there is no skeleton %q", name).
		WithHint("the skeletons are: %s; the path of a folder is one, too", strings.Join(names, ", "))
}

func folder(name, dir string) Skeleton {
	content := vfs.Files(dir)
	return Skeleton{Name: name, Title: title(content), Own: true, Dir: dir, files: content}
}

// title returns the first heading of README.md.
func title(content fs.FS) string {
	text, err := fs.ReadFile(content, "README.md")
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(strings.TrimLeft(line, "#"))
}

// Mode returns the mode of a file with this content: git has two.
func Mode(content []byte) fs.FileMode {
	if bytes.HasPrefix(content, []byte("#!")) {
		return 0o755
	}
	return 0o644
}

// File is one file of a skeleton.
type File struct {
	// Name is its path, with slashes.
	Name string
	Data []byte
	Mode fs.FileMode
}

// Read returns the files, by name. A repository's own .git is omitted. A folder without .salt, or with anything other than folders and files, is
// fault.Refused.
func (s Skeleton) Read() ([]File, error) {
	var all []File
	err := fs.WalkDir(s.files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() == ".git" { // a file in a work tree of git worktree(1)
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if e.IsDir() {
			return nil
		}
		if !e.Type().IsRegular() {
			return fault.New(fault.Refused, "", "%s of the skeleton is not a regular file", name)
		}
		data, err := fs.ReadFile(s.files, name)
		if err != nil {
			return err
		}
		if !s.Own {
			name = strings.TrimSuffix(name, sourceSuffix)
		}
		mode := Mode(data)
		if info, err := e.Info(); err == nil && s.Own && info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		all = append(all, File{name, data, mode})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, func(f File) bool { return strings.HasPrefix(f.Name, layout.SaltDir+"/") }) {
		return nil, fault.New(fault.Refused, "", "%s has no folder %s, so it is not a skeleton", s.Name, layout.SaltDir)
	}
	return all, nil
}

// Write writes the files of a skeleton into dir, which is created if it is missing. It replaces nothing: if a file exists already, the error is
// fault.Refused, and nothing was written.
func (s Skeleton) Write(dir string) (written int, err error) {
	all, err := s.Read()
	if err != nil {
		return 0, err
	}
	var there []string
	for _, f := range all {
		if _, err := os.Lstat(filepath.Join(dir, f.Name)); err == nil {
			there = append(there, f.Name)
		}
	}
	if len(there) > 0 {
		return 0, fault.New(fault.Refused, "", "%s has these files already: %s", dir, strings.Join(there, ", ")).
			WithHint("name an empty folder, or move them away; nothing was written")
	}
	for _, f := range all {
		at := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return written, err
		}
		if err := os.WriteFile(at, f.Data, f.Mode); err != nil {
			return written, err
		}
		written++
	}
	return written, nil
}
