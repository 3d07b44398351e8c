package packages

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

// Source names packages of an archive.
type Source struct {
	// URL is the archive's, the part before dists/.
	URL           string
	Suite         string
	Components    []string
	Architectures []string
	// Names are the packages; those that they depend on are copied, too, and with Recommends those that they recommend.
	Names      []string
	Recommends bool
	// SignedBy is the absolute path of the keyring that verifies the archive, as for signed-by of sources.list(5).
	SignedBy string
	// With are copies of other archives that dependencies may be in, as those of a suite of updates are.
	With []Other
}

// Other is a copy of another archive.
type Other struct {
	// Path names it in messages, Dir is the copy.
	Path, Dir     string
	Suite         string
	Components    []string
	Architectures []string
	SignedBy      string
}

// Copy is a copy of packages.
type Copy struct {
	// Dir is the copy, Work a folder for apt-get, which is emptied.
	Dir, Work string
	// Fetch downloads a file, durably, whose content must have this SHA-256, "" for any, and be at most max bytes long.
	Fetch func(ctx context.Context, url, name, sha256 string, limit int64) error
	Run   execx.Commander
	Env   []string
	FS    vfs.FS
}

// maxIndex limits an index, in bytes: that of Debian's main has 10 MB.
const maxIndex = 1 << 30

// translation is what apt-get(8) of a machine reads in addition to the packages, unless it is configured for other languages.
const translation = "i18n/Translation-en"

// part is a file that an index leads to.
type part struct {
	name, sum string
	size      int64
}

// release is the content of an InRelease file, whose signature is verified by apt-get only.
type release struct {
	text   []byte
	byHash bool
	parts  map[string]part
}

// Sync completes the copy for the index with the SHA-256 want, "" for the archive's current one, and returns the index's SHA-256 and how many packages were fetched.
func (c Copy) Sync(ctx context.Context, s Source, want string) (sum string, fetched int, err error) {
	if err := vfs.RemoveAll(c.FS, c.Work); err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, vfs.RemoveAll(c.FS, c.Work)) }()
	dists := path.Join("dists", s.Suite)
	if err := c.take(ctx, s, path.Join(dists, "InRelease"), path.Join(dists, "InRelease"), want, maxIndex); err != nil {
		return "", 0, err
	}
	r, err := readRelease(filepath.Join(c.Work, dists, "InRelease"))
	if err != nil {
		return "", 0, err
	}
	var indexes []part
	for _, component := range s.Components {
		names := []string{component + "/" + translation}
		for _, arch := range s.Architectures {
			names = append(names, component+"/binary-"+arch+"/Packages")
		}
		for _, name := range names {
			p, ok := r.index(name)
			if !ok && path.Base(name) == path.Base(translation) {
				continue // not every archive has one
			}
			if !ok {
				return "", 0, fault.New(fault.Refused, "", "the suite %s there has no %s", s.Suite, name)
			}
			from := path.Join(dists, p.name)
			if r.byHash {
				from = path.Join(dists, path.Dir(p.name), "by-hash", "SHA256", p.sum)
			}
			if err := c.take(ctx, s, from, path.Join(dists, p.name), p.sum, min(p.size, maxIndex)); err != nil {
				return "", 0, err
			}
			indexes = append(indexes, p)
		}
	}
	debs, err := c.resolve(ctx, s)
	if err != nil {
		return "", 0, err
	}
	for _, d := range debs {
		name := filepath.Join(c.Dir, filepath.FromSlash(d.name))
		if sumOf(name) == d.sum {
			continue
		}
		if err := c.Fetch(ctx, s.at(d.name), name, d.sum, d.size); err != nil {
			return "", 0, fmt.Errorf("%s: %w", path.Base(d.name), err)
		}
		fetched++
	}
	return hash(r.text), fetched, c.publish(dists, r, indexes)
}

// at returns the URL of a file of the archive.
func (s Source) at(name string) string {
	return strings.TrimSuffix(s.URL, "/") + "/" + (&url.URL{Path: name}).EscapedPath()
}

// take brings a part of the index to the folder of apt-get: from the copy if that has it, otherwise from the archive.
func (c Copy) take(ctx context.Context, s Source, from, name, want string, limit int64) error {
	to := filepath.Join(c.Work, filepath.FromSlash(name))
	for _, have := range []string{from, name} {
		have = filepath.Join(c.Dir, filepath.FromSlash(have))
		if want != "" && sumOf(have) == want {
			text, err := os.ReadFile(have) //nolint:gosec // below the mirror's folder
			if err == nil {
				err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644)) //nolint:gosec // apt-get reads it
			}
			return err
		}
	}
	err := c.Fetch(ctx, s.at(from), to, want, limit)
	if err != nil && want != "" && path.Base(name) == "InRelease" {
		return fault.New(fault.KindOf(err), "", "the archive has another index than the pinned one, which is lost or damaged here: %w", err)
	}
	return err
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// sumOf returns the SHA-256 of a file, "" if it cannot be read.
func sumOf(name string) string {
	f, err := os.Open(name) //nolint:gosec // below the mirror's folder
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// readRelease reads an InRelease file. Source: https://wiki.debian.org/DebianRepository/Format.
func readRelease(name string) (*release, error) {
	text, err := os.ReadFile(name) //nolint:gosec // below the mirror's folder
	if err != nil {
		return nil, err
	}
	r := &release{text: text, parts: map[string]part{}}
	in := false
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "SHA256:"):
			in = true
		case in && strings.HasPrefix(line, " ") && len(f) == 3:
			size, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil || !filepath.IsLocal(f[2]) || len(f[0]) != 2*sha256.Size || strings.Trim(f[0], "0123456789abcdef") != "" {
				return nil, fault.New(fault.Refused, "", "the index has a line that is not valid: %s", printable.Line(printable.Clip(line, 200)))
			}
			r.parts[f[2]] = part{f[2], f[0], size}
		default:
			in = false
			r.byHash = r.byHash || strings.HasPrefix(line, "Acquire-By-Hash: yes")
		}
	}
	return r, nil
}

// index finds a list of packages, in the form in which it is smallest.
func (r *release) index(name string) (part, bool) {
	for _, ext := range []string{".xz", ".bz2", ".gz", ""} {
		if p, ok := r.parts[name+ext]; ok {
			return p, true
		}
	}
	return part{}, false
}

// resolve has apt-get verify the index, and returns the packages with their dependencies.
func (c Copy) resolve(ctx context.Context, s Source) ([]part, error) {
	var all []part
	for _, arch := range s.Architectures {
		root := filepath.Join(c.Work, "apt-"+arch)
		for _, dir := range []string{"lists/partial", "cache/archives/partial", "etc"} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil { //nolint:gosec // nothing in it is secret
				return nil, err
			}
		}
		conf := fmt.Sprintf(`Dir::Etc::parts "/dev/null"; Dir::Etc::main "/dev/null"; Dir::Etc::sourceparts "/dev/null"; Dir::Etc::preferencesparts "/dev/null"; Dir::Etc::preferences "/dev/null"; Dir::Etc::netrcparts "/dev/null";
Dir::Etc::sourcelist "%[1]s/sources.list"; Dir::State::lists "%[1]s/lists"; Dir::State::status "%[1]s/status"; Dir::State::extended_states "%[1]s/extended"; Dir::Cache "%[1]s/cache"; Dir::Log "%[1]s";
APT::Architecture "%[2]s"; APT::Architectures "%[2]s"; APT::Install-Recommends "%[3]t"; APT::Sandbox::User "root"; Acquire::Languages "none"; Debug::NoLocking "true"; APT::Update::Error-Mode "any"; Acquire::ForceHash "SHA256";
`, root, arch, s.Recommends)
		source := sourceLine(arch, s.SignedBy, c.Work, s.Suite, s.Components)
		for _, o := range s.With {
			if slices.Contains(o.Architectures, arch) {
				source += sourceLine(arch, o.SignedBy, o.Dir, o.Suite, o.Components)
			}
		}
		for name, text := range map[string]string{"apt.conf": conf, "sources.list": source, "status": ""} {
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil { //nolint:gosec // nothing in it is secret
				return nil, err
			}
		}
		if _, err := c.apt(ctx, root, "update", "-qq"); err != nil {
			return nil, err
		}
		out, err := c.apt(ctx, root, append([]string{"install", "-qq", "-y", "--print-uris", "--"}, s.Names...)...)
		if err != nil {
			return nil, err
		}
		debs, err := c.uris(s, out)
		if err != nil {
			return nil, err
		}
		if len(debs) == 0 {
			return nil, fault.New(fault.Refused, "", "apt-get finds nothing to copy for %s: %s", arch, printable.Line(string(out)))
		}
		all = append(all, debs...)
	}
	slices.SortFunc(all, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b part) bool { return a.name == b.name }), nil
}

// sourceLine returns a line of sources.list(5) for an archive in a folder.
func sourceLine(arch, signedBy, dir, suite string, components []string) string {
	return fmt.Sprintf("deb [arch=%s signed-by=%s] copy:%s %s %s\n", arch, signedBy, dir, suite, strings.Join(components, " "))
}

// apt runs apt-get with the configuration in a folder.
func (c Copy) apt(ctx context.Context, root string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	said := &execx.Tail{Max: 4 << 10}
	st, err := c.Run.Run(ctx, execx.Cmd{Argv: append([]string{"apt-get"}, args...), Dir: "/", Env: append(slices.Clone(c.Env), "APT_CONFIG="+filepath.Join(root, "apt.conf"), "LC_ALL=C.UTF-8"), Stdout: &out, Stderr: said})
	if err != nil {
		return nil, fault.New(fault.Refused, "", "apt-get: %w", err).WithHint("packages are copied with apt-get and gpgv, on Debian and what derives from it")
	}
	if st.Exit != 0 {
		var lines []string
		for line := range strings.Lines(said.String()) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, strings.TrimPrefix(line, "E: "))
			}
		}
		return nil, fault.New(fault.Refused, "", "apt-get %s: %s", args[0], printable.Line(strings.Join(lines, "; ")))
	}
	return out.Bytes(), nil
}

// uris reads what apt-get install --print-uris prints: 'URI' NAME SIZE SHA256:SUM. What comes from another archive must be in its copy.
func (c Copy) uris(s Source, text []byte) (out []part, err error) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) == 0 {
			continue
		}
		f = append(f, "", "", "")
		at := strings.Trim(f[0], "'")
		from := slices.IndexFunc(s.With, func(o Other) bool { return strings.HasPrefix(at, "copy:"+o.Dir+"/") })
		dir := c.Work
		if from >= 0 {
			dir = s.With[from].Dir
		}
		name, err := url.PathUnescape(strings.TrimPrefix(at, "copy:"+dir+"/"))
		size, serr := strconv.ParseInt(f[2], 10, 64)
		sum, ok := strings.CutPrefix(f[3], "SHA256:")
		if err := errors.Join(err, serr); err != nil || !ok || !filepath.IsLocal(name) {
			return nil, fault.New(fault.Refused, "", "the archive has a package that cannot be copied: %s", printable.Line(lines.Text()))
		}
		if from < 0 {
			out = append(out, part{name, sum, size})
			continue
		}
		if sumOf(filepath.Join(dir, filepath.FromSlash(name))) != sum {
			pkg, _, _ := strings.Cut(path.Base(name), "_")
			return nil, fault.New(fault.Refused, "", "%s is needed from %s, whose copy does not have it", printable.Line(path.Base(name)), s.With[from].Path).
				WithHint("add %s to the names of %s", printable.Line(pkg), s.With[from].Path)
		}
	}
	return out, nil
}

// publish puts the index into the copy: at first what it leads to.
func (c Copy) publish(dists string, r *release, indexes []part) error {
	for _, p := range indexes {
		text, err := os.ReadFile(filepath.Join(c.Work, dists, filepath.FromSlash(p.name)))
		if err != nil {
			return err
		}
		at := filepath.Join(c.Dir, dists, filepath.FromSlash(p.name))
		for _, name := range []string{filepath.Join(filepath.Dir(at), "by-hash", "SHA256", p.sum), at} {
			if err := c.put(name, text); err != nil {
				return err
			}
		}
	}
	return c.put(filepath.Join(c.Dir, dists, "InRelease"), r.text)
}

func (c Copy) put(name string, text []byte) error {
	if sumOf(name) == hash(text) {
		return nil
	}
	if err := vfs.MkdirAll(c.FS, filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return vfs.WriteFileAtomic(c.FS, name, text, 0o644)
}

// Verify compares the copy's index with the pin, and everything that the index leads to with its checksums.
func (c Copy) Verify(ctx context.Context, s Source, want string) error {
	dists := path.Join("dists", s.Suite)
	name := filepath.Join(c.Dir, dists, "InRelease")
	if sum := sumOf(name); sum != want {
		return fmt.Errorf("%s is not the pinned index", name)
	}
	check := c
	check.Work += ".verify" // a sync may be running
	check.Fetch = func(_ context.Context, _, name, _ string, _ int64) error {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return errors.New("it is missing")
		}
		return errors.New("it is damaged: it has another SHA-256 than in the index")
	}
	_, _, err := check.Sync(ctx, s, want)
	return err
}
