package extends

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
)

// File is the name of the file in a recipe.
const File = "extends.yaml"

// Refs is the prefix of refs that pin what a project NAME extends, in the repository of the extended project: Refs + NAME/COMMIT.
const Refs = "refs/corpus/extends/"

const (
	maxFile    = 64 << 10
	maxParents = 32
)

// Parent is one entry: NAME, NAME@REV or URL@REV.
type Parent struct {
	// Name is a project of this server, "" for a URL.
	Name project.Name
	// URL is a repository elsewhere, normalised; it holds no password.
	URL string
	// Rev is a branch, a tag or a full commit ID; "" means what is live there. A URL always has one.
	Rev string
}

// ID returns the entry without its revision: no recipe may be listed twice.
func (p Parent) ID() string {
	if p.URL != "" {
		return p.URL
	}
	return string(p.Name)
}

// String returns the entry with its revision; ParseEntry reads it.
func (p Parent) String() string {
	if p.Rev == "" {
		return p.ID()
	}
	return p.ID() + "@" + p.Rev
}

// revision matches valid revisions: no option, no range, nothing that git-check-ref-format(1) forbids.
var revision = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}$`)

// maxURL limits the length of a URL, as most servers do.
const maxURL = 2048

// ParseEntry reads one entry. Errors are plain texts that never show a password.
func ParseEntry(s string) (p Parent, err error) {
	base, rev, has := strings.Cut(s, "@")
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		// The @ of a user is before the first slash of the rest.
		host, repo, _ := strings.Cut(rest, "/")
		repo, rev, has = strings.Cut(repo, "@")
		if p.URL, err = normal(scheme, host, repo); err != nil {
			return p, err
		}
		if !has {
			return p, fmt.Errorf("%s has no revision: a URL needs a branch, a tag or a commit", p.URL)
		}
	} else if p.Name, err = project.ParseName(base); err != nil {
		return p, fmt.Errorf("%q is not a valid project name", base)
	}
	if has && (!revision.MatchString(rev) || strings.Contains(rev, "..") || strings.HasSuffix(rev, ".lock")) {
		return p, fmt.Errorf("%q is not a branch, tag or commit", rev)
	}
	p.Rev = rev
	return p, nil
}

// normal returns a URL in the canonical form used for comparison.
func normal(scheme, host, repo string) (string, error) {
	scheme = strings.ToLower(scheme)
	if !slices.Contains([]string{"https", "http", "ssh", "git"}, scheme) {
		return "", fmt.Errorf("unsupported URL scheme %.20q; use https, http, ssh or git", scheme)
	}
	u, err := url.Parse(scheme + "://" + host + "/" + repo)
	if err != nil || len(host)+len(repo) > maxURL || strings.ContainsFunc(u.Path, unicode.IsControl) {
		return "", errors.New("its URL cannot be read")
	}
	if _, password := u.User.Password(); password || u.User != nil && scheme != "ssh" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", errors.New("its URL has a user, password, query or fragment, which everybody who can read the code would see; " +
			"use ssh:// with the key of the project's user")
	}
	u.Host, u.Path = strings.ToLower(u.Host), strings.TrimRight(u.Path, "/")
	if u.Hostname() == "" || u.Path == "" {
		return "", errors.New("its URL has no host or path")
	}
	return u.String(), nil
}

// Read returns what a recipe extends, the strongest first; none if it has no such file. of names the recipe in messages.
func Read(files fs.FS, of string) ([]Parent, error) {
	if files == nil {
		return nil, nil
	}
	text, err := fs.ReadFile(vfs.Bounded{FS: files, Max: maxFile}, File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	shown := path.Join(layout.SaltDir, File)
	if of != "" {
		shown = of + ":" + shown
	}
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "read "+shown, "%w", err)
	}
	return Parse(shown, text)
}

// Parse reads the text of a file. Errors are the user's fault and include the line.
func Parse(shown string, text []byte) ([]Parent, error) {
	doc, err := saltyaml.Parse(shown, text, saltyaml.Options{MaxBytes: maxFile})
	if err != nil {
		return nil, err
	}
	bad := func(item, format string, args ...any) error {
		e := fault.New(fault.Failed, "read "+shown, "%s", fmt.Sprintf(format, args...))
		at := fault.Pos{File: shown, Line: 1}
		for i, line := range strings.Split(string(text), "\n") {
			if item != "" && strings.Contains(line, item) {
				if at.Line, at.Text = i+1, line; strings.Contains(item, "://") {
					at.Text = "" // it may contain a password
				}
				break
			}
		}
		return e.WithPos(at).WithHint("it is a list of projects of this server, each with a branch, a tag or a commit if it is not the live one that is meant, and of URLs with one:  [base@v1, https://host/repo.git@v1]")
	}
	if doc.Value == nil {
		return nil, nil
	}
	list, ok := doc.Value.(*py.List)
	if !ok {
		return nil, bad("", "must be a list, not %s", py.TypeName(doc.Value))
	}
	if list.Len() > maxParents {
		return nil, bad("", "extends more than %d recipes", maxParents)
	}
	var out []Parent
	for _, item := range list.Items() {
		s, ok := item.(string)
		if !ok {
			return nil, bad(py.Str(item), "%s is not a valid project name", py.Repr(item))
		}
		p, err := ParseEntry(s)
		if err != nil {
			return nil, bad(s, "%s", err)
		}
		if slices.ContainsFunc(out, func(q Parent) bool { return q.ID() == p.ID() }) {
			return nil, bad(s, "%s is listed twice", p.ID())
		}
		out = append(out, p)
	}
	return out, nil
}
