package mirror

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/mirror/packages"
)

// Packages are packages of a Debian archive, with those that they depend on.
type Packages struct {
	// Path is where they are served, as an archive: below /packages/.
	Path string `yaml:"path"`
	// URL is the archive's, such as http://deb.debian.org/debian, Suite one of its suites, such as bookworm.
	URL   string `yaml:"url"`
	Suite string `yaml:"suite"`
	// Components are main if none are given, Architectures amd64.
	Components    []string `yaml:"components"`
	Architectures []string `yaml:"architectures"`
	Names         []string `yaml:"names"`
	// SignedBy is the keyring that verifies the archive, required. A relative path is relative to the list's folder.
	SignedBy string `yaml:"signed_by"`
	// Recommends, true if it is not given, copies what the packages recommend, too, as apt-get installs it by default.
	Recommends *bool `yaml:"recommends"`
	// With are the paths of other entries, in which dependencies may be: those of a suite of updates are in the suite that it updates.
	With []string `yaml:"with"`

	line int
}

// LockedPackages is what a suite was when it was pinned: its index, which has the checksums of all packages.
type LockedPackages struct {
	URL   string `json:"url"`
	Suite string `json:"suite"`
	// Release is the SHA-256 of InRelease.
	Release string `json:"release"`
}

// validWord matches a name of a suite, a component, an architecture or a package (Debian Policy, 5.6.1), and nothing that is an option or a path out of the archive.
var validWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+-]*(/[A-Za-z0-9][A-Za-z0-9.+-]*)?$`)

func (l *List) packages(p *Packages) error {
	u, err := url.Parse(p.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return l.bad(p.line, "the URL of %s is not that of an archive", p.Path).WithHint("https:// or http://, up to the folder that has dists/")
	}
	if len(p.Components) == 0 {
		p.Components = []string{"main"}
	}
	if len(p.Architectures) == 0 {
		p.Architectures = []string{"amd64"}
	}
	for key, words := range map[string][]string{"suite": {p.Suite}, "components": p.Components, "architectures": p.Architectures, "names": p.Names} {
		if i := slices.IndexFunc(words, func(w string) bool { return !validWord.MatchString(w) }); i >= 0 || len(words) == 0 {
			return l.bad(p.line, "%s of %s is missing, or has a word that is not valid", key, p.Path)
		}
	}
	if p.SignedBy == "" {
		return l.bad(p.line, "%s has no signed_by", p.Path).WithHint("the keyring of the archive, such as /usr/share/keyrings/debian-archive-keyring.gpg")
	}
	if p.SignedBy, err = l.absolute(p.SignedBy); err != nil {
		return err
	}
	if strings.ContainsAny(p.SignedBy, " \t\n[]\"") {
		return l.bad(p.line, "signed_by of %s has a space or a bracket in its path, which sources.list(5) does not allow", p.Path)
	}
	return nil
}

func (l *List) hasPackages(p string) bool {
	return slices.ContainsFunc(l.Packages, func(x Packages) bool { return x.Path == p })
}

// together checks that the entries named by With exist, and need none themselves.
func (l *List) together() error {
	for _, p := range l.Packages {
		for _, w := range p.With {
			i := slices.IndexFunc(l.Packages, func(o Packages) bool { return o.Path == w })
			if i < 0 || w == p.Path || len(l.Packages[i].With) > 0 {
				return l.bad(p.line, "with of %s has %s, which is no other entry of packages without with", p.Path, printable.Clip(w, 200))
			}
		}
	}
	return nil
}

func (m *Mirror) source(p Packages) packages.Source {
	s := packages.Source{
		URL: p.URL, Suite: p.Suite, Components: p.Components, Architectures: p.Architectures, Names: p.Names, SignedBy: p.SignedBy, Recommends: p.Recommends == nil || *p.Recommends,
	}
	for _, o := range m.List.Packages {
		if slices.Contains(p.With, o.Path) {
			s.With = append(s.With, packages.Other{Path: o.Path, Dir: m.packagesCopy(o).Dir, Suite: o.Suite, Components: o.Components, Architectures: o.Architectures, SignedBy: o.SignedBy})
		}
	}
	return s
}

func (m *Mirror) packagesCopy(p Packages) packages.Copy {
	return packages.Copy{
		Dir: filepath.Join(m.Dir, "packages", filepath.FromSlash(p.Path)), Work: filepath.Join(m.Dir, "packages", filepath.FromSlash(p.Path)+".part"),
		Run: m.Verifier.Exec, Env: m.Env, FS: vfs.OS{},
		Fetch: func(ctx context.Context, from, name, want string, limit int64) error {
			if _, _, err := m.download(ctx, File{Path: p.Path, URL: from, max: limit}, name+".part", want); err != nil {
				return err
			}
			return vfs.RenameDurable(vfs.OS{}, name+".part", name)
		},
	}
}

// packages copies packages.
func (m *Mirror) packages(ctx context.Context, p Packages, renew bool) (Outcome, error) {
	out := Outcome{Kind: "packages", Path: p.Path, Change: unchanged}
	m.mu.Lock()
	old, pinned := m.lock.Packages[p.Path]
	m.mu.Unlock()
	pinned = pinned && old.URL == shown(p.URL) && old.Suite == p.Suite
	want := ""
	if pinned && !renew {
		want = old.Release
	}
	for _, o := range p.With {
		m.mu.Lock()
		_, ok := m.lock.Packages[o]
		m.mu.Unlock()
		if !ok {
			return out, fault.New(fault.Refused, "", "it needs %s, which is not copied yet", o)
		}
	}
	sum, fetched, err := m.packagesCopy(p).Sync(ctx, m.source(p), want)
	if err != nil {
		return out, err
	}
	out.At = sum
	switch {
	case pinned && old.Release == sum:
		if fetched > 0 { // the list names others, or they were lost here
			out.Change = copied
		}
		return out, nil
	case pinned:
		out.Change = updated
	default:
		out.Change = copied
	}
	return out, m.pin(func(l *Lock) { l.Packages[p.Path] = LockedPackages{shown(p.URL), p.Suite, sum} })
}

func (m *Mirror) verifyPackages(ctx context.Context, p Packages, old LockedPackages) error {
	err := m.packagesCopy(p).Verify(ctx, m.source(p), old.Release)
	if err != nil && !errors.Is(err, context.Canceled) {
		return fault.New(fault.Failed, "", "%w", err).WithHint("the next  corpus-git mirror sync  fetches it again")
	}
	return err
}

// archive serves a copy of packages. Those who read it verify the archive's signature and its checksums.
func (s *server) archive(w http.ResponseWriter, r *http.Request) {
	p := strings.TrimPrefix(r.URL.Path, packagesPrefix)
	for _, x := range s.List.Packages {
		if strings.HasPrefix(p, x.Path+"/") {
			s.serveFolder(w, r, packagesPrefix+x.Path, s.packagesCopy(x).Dir)
			return
		}
	}
	http.NotFound(w, r)
}
