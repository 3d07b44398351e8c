package mirror

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/quantity"
	"corpus-git/internal/strictyaml"
	"corpus-git/receive/submodule"
)

// maxList limits the list and the lock, in bytes.
const maxList = 16 << 20

// Repository is a repository of another server.
type Repository struct {
	// Path is where it is served: below /git/, followed by .git.
	Path string `yaml:"path"`
	URL  string `yaml:"url"`
	// Revision is a branch, a tag or the full hash of a commit.
	Revision string `yaml:"revision"`
	// SignedBy is a file of allowed signers (ssh-keygen(1)), or a folder that is a keyring of gpg(1): an annotated tag, or otherwise the
	// commit, must be signed by one of them. "" requires nothing. A relative path is relative to the list's folder.
	SignedBy string `yaml:"signed_by"`

	address submodule.Address
	line    int
}

// File is a file of another server.
type File struct {
	// Path is where it is served: below /files/.
	Path string `yaml:"path"`
	URL  string `yaml:"url"`
	// SHA256 is the required checksum, in hexadecimal digits; "" accepts the first content that is fetched, and pins it.
	SHA256 string `yaml:"sha256"`
	// MaxSize limits its size, such as 500MiB; "" is DefaultMaxSize.
	MaxSize string `yaml:"max_size"`

	max  int64
	line int
}

// DefaultMaxSize limits the size of a file for which the list has no other limit.
const DefaultMaxSize = 4 << 30

// Folder is a folder of this machine that another program maintains, such as a mirror of Debian's archive.
type Folder struct {
	// Path is where it is served: below /folders/.
	Path string `yaml:"path"`
	From string `yaml:"from"`

	line int
}

// List is what a mirror keeps.
type List struct {
	Repositories []Repository `yaml:"repositories"`
	Files        []File       `yaml:"files"`
	Packages     []Packages   `yaml:"packages"`
	Folders      []Folder     `yaml:"folders"`

	name string
}

// Read reads a list. Errors are fault.Usage, with the line.
func Read(name string) (*List, error) {
	f, err := os.Open(name) //nolint:gosec // what the operator names
	if err != nil {
		return nil, fault.New(fault.Usage, "", "%w", err).WithHint("name the list that says what is copied:  corpus-git mirror sync repos.yaml")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxList+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxList {
		return nil, fault.New(fault.Usage, "", "%s is longer than %d bytes", name, maxList)
	}
	return parse(name, text)
}

func parse(name string, text []byte) (*List, error) {
	bad := func(err error) (*List, error) {
		return nil, fault.New(fault.Usage, name, "%s", printable.Line(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: ")))
	}
	l := &List{name: name}
	if err := strictyaml.Decode(text, l); err != nil {
		return bad(err)
	}
	var doc struct {
		Repositories, Files, Packages, Folders []yaml.Node
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return bad(err)
	}
	paths := map[string]int{}
	for i := range l.Repositories {
		r := &l.Repositories[i]
		r.line = doc.Repositories[i].Line
		if err := l.repository(r); err != nil {
			return nil, err
		}
		if err := l.place(paths, "git", r.Path, r.line); err != nil {
			return nil, err
		}
	}
	for i := range l.Files {
		f := &l.Files[i]
		f.line = doc.Files[i].Line
		if err := l.file(f); err != nil {
			return nil, err
		}
		if err := l.place(paths, "files", f.Path, f.line); err != nil {
			return nil, err
		}
	}
	for i := range l.Packages {
		p := &l.Packages[i]
		p.line = doc.Packages[i].Line
		if err := errors.Join(l.packages(p), l.place(paths, "packages", p.Path, p.line)); err != nil {
			return nil, err
		}
	}
	if err := l.together(); err != nil {
		return nil, err
	}
	for i := range l.Folders {
		f := &l.Folders[i]
		f.line = doc.Folders[i].Line
		if !filepath.IsAbs(f.From) {
			return nil, l.bad(f.line, "from of the folder %q must be an absolute path", f.Path)
		}
		if err := l.place(paths, "folders", f.Path, f.line); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *List) hasRepository(p string) bool {
	return slices.ContainsFunc(l.Repositories, func(r Repository) bool { return r.Path == p })
}

func (l *List) hasFile(p string) bool {
	return slices.ContainsFunc(l.Files, func(f File) bool { return f.Path == p })
}

func (l *List) bad(line int, format string, args ...any) *fault.Error {
	return fault.New(fault.Usage, "", "%s:%d: %s", l.name, line, printable.Line(fmt.Sprintf(format, args...)))
}

// validPath allows only what every file system, URL and client of git accepts.
var validPath = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+~-]*(/[A-Za-z0-9_][A-Za-z0-9_.+~-]*)*$`)

// place checks a path, and that no other entry has that path, or one above or below it.
func (l *List) place(paths map[string]int, kind, p string, line int) error {
	if len(p) > 200 || !validPath.MatchString(p) || strings.HasSuffix(p, ".lock") || strings.HasSuffix(p, ".part") || strings.Contains(p+"/", ".git/") {
		return l.bad(line, "%q is not a valid path", p).WithHint("letters, digits, . _ + ~ and - between slashes; it is served with .git after it where it is a repository")
	}
	full := kind + "/" + p
	for at := full; at != "."; at = path.Dir(at) {
		if other, ok := paths[at]; ok && other > 0 {
			return l.bad(line, "the path %s lies in that of line %d", p, other)
		}
	}
	if other, ok := paths[full]; ok {
		return l.bad(line, "the path of line %d lies in %s", -other, p)
	}
	for at := path.Dir(full); at != "."; at = path.Dir(at) {
		if paths[at] == 0 {
			paths[at] = -line
		}
	}
	paths[full] = line
	return nil
}

// absolute returns a path of the list, which is relative to its folder, as an absolute one: programs run in other folders. "" stays.
func (l *List) absolute(p string) (string, error) {
	if p == "" || filepath.IsAbs(p) {
		return p, nil
	}
	return filepath.Abs(filepath.Join(filepath.Dir(l.name), p))
}

func (l *List) repository(r *Repository) (err error) {
	if r.address, err = submodule.ParseAddress(r.URL); err != nil {
		return l.bad(r.line, "%v", err).WithHint("https://, http://, ssh://, git:// or host:path of another server")
	}
	if r.address.Kind == submodule.Relative {
		return l.bad(r.line, "the URL of %s is relative", r.Path).WithHint("https://, http://, ssh://, git:// or host:path of another server")
	}
	if r.Revision == "" {
		return l.bad(r.line, "%s names no revision", r.Path).WithHint("a branch, a tag or the full hash of a commit")
	}
	r.SignedBy, err = l.absolute(r.SignedBy)
	return err
}

var validSum = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (l *List) file(f *File) error {
	f.max = DefaultMaxSize
	if f.MaxSize != "" {
		n, err := quantity.ParseSize(f.MaxSize)
		if err != nil || n < 1 {
			return l.bad(f.line, "max_size of %s is %q and must be a size", f.Path, f.MaxSize).WithHint("such as  500MiB  or  8GiB")
		}
		f.max = n
	}
	u, err := url.Parse(f.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return l.bad(f.line, "the URL of %s is not that of a file", f.Path).WithHint("https:// or http://")
	}
	if f.SHA256 = strings.ToLower(f.SHA256); f.SHA256 != "" && !validSum.MatchString(f.SHA256) {
		return l.bad(f.line, "sha256 of %s has not 64 hexadecimal digits", f.Path)
	}
	return nil
}
