package submodule

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/fsck"
	"corpus-git/git/object"
	"corpus-git/git/pack"
	"corpus-git/git/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Project is a repository of this server as the source of a submodule.
type Project struct {
	// Address is its canonical address.
	Address Address
	// Bases are the addresses against which relative URLs in it are resolved.
	Bases []Address
	// Serve is its git-upload-pack.
	Serve Serve
	// Close ends its use.
	Close func()
}

// Resolver finds the submodules of a commit. Its fields are set before use.
type Resolver struct {
	// Dir is the folder of the repositories of submodules; it is made with Mode if it is missing. Required.
	Dir  string
	Mode uint32
	// Bases are the addresses against which relative URLs of the commit are resolved; the first that results in a valid address counts. Required
	// unless Offline.
	Bases []Address
	// Offline fetches nothing, and ignores URLs: missing commits are omitted. It needs only Dir.
	Offline bool
	// Local opens a repository of this server by its path; the error is fault.Refused if there is none, or the pusher may not read it. nil means
	// that there are none.
	Local func(ctx context.Context, path string) (*Project, error)
	// Here reports whether host:port is this server's own SSH address. nil means that none is.
	Here func(hostport string) bool
	// Home is the folder whose .ssh has the key and the known hosts for ssh; "" means none.
	Home string
	// Hosts are the hosts that may be contacted; empty allows all.
	Hosts []string
	// Mirrors are tried before a submodule's own address: entries FROM=TO, of which the one with the longest FROM that is a prefix of the URL is
	// used (like url.<base>.insteadOf in git-config(1)), if its host may be contacted. If that fails, the address itself is used.
	Mirrors []string
	// Timeout limits the fetch of one submodule. Default 10 minutes.
	Timeout time.Duration
	// Limits limits each pack. MaxFiles limits the files of a commit and all its submodules; default 1,048,576.
	Limits   pack.Limits
	MaxFiles int
	// HTTP is used for web servers; its CheckRedirect is replaced.
	HTTP http.Client
	// Agent is our name and version.
	Agent string
	// ID names quarantines.
	ID func() string
	// Say is called with a line before each fetch, Hide with what must not be shown. Both may be nil.
	Say  func(line string)
	Hide func(secrets []string)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

const (
	// maxNesting limits the depth of submodules in submodules.
	maxNesting = 10
	// maxModulesAll limits the number of submodules of a commit, including nested ones.
	maxModulesAll  = 1000
	defaultTimeout = 10 * time.Minute
	defaultFiles   = 1 << 20
)

// Set is the result of Resolve.
type Set struct {
	// Modules are the commit's submodules that are available, in the order of their paths.
	Modules []tree.Submodule
	open    map[string]*repository
}

// Find opens the repository in dir (see Resolver.Dir) that has a commit; ok is false if none has. The caller calls end.
func Find(ctx context.Context, dir string, commit plumbing.Hash) (objs tree.Objects, end func() error, ok bool, err error) {
	f := NewFinder(ctx, dir)
	objs, err = f.Find(commit)
	if err != nil || objs == nil {
		return nil, nil, false, errors.Join(err, f.Close())
	}
	return objs, f.Close, true, nil
}

// Finder finds commits in the repositories of a folder, and keeps these open. The caller closes it.
type Finder struct{ w *walker }

// NewFinder returns a Finder for dir (see Resolver.Dir).
func NewFinder(ctx context.Context, dir string) *Finder {
	return &Finder{(&Resolver{Dir: dir, Offline: true}).walker(ctx)}
}

// Find returns the repository that has a commit with all of its tree, nil if none has: the same one for all commits that it has.
func (f *Finder) Find(commit plumbing.Hash) (tree.Objects, error) {
	g, err := f.w.find(commit)
	if err != nil || g == nil {
		return nil, err
	}
	return g.db, nil
}

// Close closes the repositories.
func (f *Finder) Close() error { return f.w.set.Close() }

// Close closes the repositories of the submodules.
func (s *Set) Close() error {
	var errs []error
	for _, r := range s.open {
		errs = append(errs, r.db.Close())
	}
	s.open = nil
	return errors.Join(errs...)
}

// Resolve finds the submodules of a commit's gitlinks, including nested ones, and fetches missing ones. A gitlink without an entry in .gitmodules,
// or with update = none, is ignored: its folder stays empty. The error names the submodule, and why the commit can't be fetched: fault.Busy if
// trying again may help, otherwise fault.Refused. The caller closes the Set, also after an error.
func (r *Resolver) Resolve(ctx context.Context, objs tree.Objects, commit plumbing.Hash) (*Set, error) {
	w := r.walker(ctx)
	list, err := w.modules(objs, commit, "", r.Bases, nil)
	if err != nil {
		return nil, errors.Join(err, w.set.Close())
	}
	w.set.Modules = list
	return w.set, nil
}

// walker is one Resolve.
type walker struct {
	*Resolver
	ctx   context.Context
	set   *Set
	count int
	files int64
	names []string // of the folders in Dir
}

func (r *Resolver) walker(ctx context.Context) *walker {
	return &walker{Resolver: r, ctx: ctx, set: &Set{open: map[string]*repository{}}}
}

// link is one gitlink on the path from the top.
type link struct {
	repo   string
	commit plumbing.Hash
}

// modules finds the submodules of one commit, which is at prefix (with its slash).
func (w *walker) modules(objs tree.Objects, commit plumbing.Hash, prefix string, bases []Address, above []link) ([]tree.Submodule, error) {
	data, err := tree.File(objs, commit, File)
	if err != nil || data == nil {
		return nil, err
	}
	entries, err := Parse(data)
	if err == nil {
		err = fsck.Modules(plumbing.ZeroHash, int64(len(data)), data)
	}
	if err != nil {
		if w.Offline {
			return nil, nil
		}
		return nil, fault.New(fault.Refused, "", "%s%w", prefix, err).WithHint("fix the file and push again; %s", emptyHint)
	}
	slices.SortFunc(entries, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	var out []tree.Submodule
	for _, e := range entries {
		h, err := tree.Gitlink(objs, commit, e.Path)
		if err != nil {
			return nil, err
		}
		if h.IsZero() || e.None {
			continue
		}
		m, ok, err := w.module(e, h, prefix, bases, above)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, m)
		}
	}
	return out, nil
}

const emptyHint = "or set  submodules: empty  in the project's configuration: submodules are then deployed as empty directories"

// fail adds to an error the submodule that it is about.
func (w *walker) fail(at string, h plumbing.Hash, from string, err error) error {
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	kind, hint := blame(err)
	if hint != "" {
		hint += "; "
	}
	return fault.New(kind, "", "submodule %s (commit %s%s): %w", printable.Clip(at, 200), h.String()[:7], from, err).WithHint("%s%s", hint, emptyHint)
}

// blame returns whose fault it is that something cannot be fetched, and a hint on what may help.
func blame(err error) (kind fault.Kind, hint string) {
	kind, hint = fault.KindOf(err), fault.HintOf(err)
	var bad *fsck.Error
	var limit *pack.LimitError
	switch {
	case kind != fault.Internal:
	case errors.As(err, &bad), errors.As(err, &limit), errors.Is(err, object.ErrCorrupt):
		kind = fault.Refused
	case errors.Is(err, ErrNoCommit), errors.Is(err, errNoRefs):
		kind, hint = fault.Refused, "push that commit to its own repository first"
	default:
		kind = fault.Busy
		if hint = "check that the server can reach that address, and push again"; errors.Is(err, context.DeadlineExceeded) {
			hint = "an administrator can raise  submodules.timeout  in the server's configuration; push again"
		}
	}
	return kind, hint
}

// module finds one submodule and those in it. ok is false if it is missing and nothing may be fetched.
func (w *walker) module(e Module, h plumbing.Hash, prefix string, bases []Address, above []link) (m tree.Submodule, ok bool, err error) {
	at := prefix + e.Path
	var from []Address
	shown := ""
	if !w.Offline {
		if from, err = w.addresses(e, bases); err != nil {
			return m, false, w.fail(at, h, "", err)
		}
		shown = " of " + from[0].String()
		if len(from) > 1 {
			shown = " of " + printable.Clip(e.URL, 200)
		}
	}
	if len(above) >= maxNesting {
		return m, false, w.fail(at, h, shown, fault.New(fault.Refused, "", "more than %d submodules inside each other", maxNesting))
	}
	if w.count++; w.count > maxModulesAll {
		return m, false, w.fail(at, h, shown, fault.New(fault.Refused, "", "the commit has more than %d submodules", maxModulesAll))
	}
	for _, a := range from {
		if s := a.Secrets(); len(s) > 0 && w.Hide != nil {
			w.Hide(s)
		}
	}
	g, err := w.find(h)
	var used []Address
	for _, a := range from {
		used = append(used, w.basesOf(a)...)
	}
	if err == nil && g == nil && !w.Offline {
		g, used, err = w.fetchFirst(at, from, h)
	}
	if err != nil {
		return m, false, w.fail(at, h, shown, err)
	}
	if g == nil {
		return m, false, nil
	}
	if slices.Contains(above, link{g.dir, h}) {
		return m, false, w.fail(at, h, shown, fault.New(fault.Refused, "", "it is a submodule of itself"))
	}
	if !w.Offline {
		if err := g.use(h, w.now()); err != nil {
			return m, false, w.fail(at, h, shown, err)
		}
		if err := w.fits(g.db, h, at); err != nil {
			return m, false, w.fail(at, h, shown, err)
		}
	}
	m = tree.Submodule{Path: e.Path, Name: e.Name, Commit: h, Objects: g.db, Repo: g.dir}
	m.Modules, err = w.modules(g.db, h, at+"/", used, append(slices.Clone(above), link{g.dir, h}))
	return m, err == nil, err
}

func (w *walker) now() time.Time {
	if w.Now == nil {
		return time.Now()
	}
	return w.Now()
}

// fits adds a submodule's files to those of the commit.
func (w *walker) fits(objs tree.Objects, h plumbing.Hash, at string) error {
	limit := w.MaxFiles
	if limit <= 0 {
		limit = defaultFiles
	}
	n, err := tree.Files(w.ctx, objs, h, len(at)+1, limit)
	if w.files += n; err == nil && w.files > int64(limit) {
		err = fault.New(fault.Refused, "", "its submodules have more than %d files and folders together", limit).
			WithHint("an administrator can raise  limits.max_files  in the server's configuration")
	}
	return err
}

// addresses returns the possible addresses of an entry's URL, in the order in which to try them.
func (w *walker) addresses(e Module, bases []Address) ([]Address, error) {
	a, err := ParseAddress(e.URL)
	if err != nil {
		return nil, err
	}
	if a.Kind != Relative {
		if a.Kind == SSH && w.Here != nil && w.Here(a.HostPort()) {
			return []Address{LocalAddress("/" + strings.TrimPrefix(a.path, "/"))}, nil
		}
		return []Address{a}, nil
	}
	var out []Address
	for _, b := range bases {
		to, jerr := b.Join(a)
		if jerr == nil && !slices.ContainsFunc(out, func(o Address) bool { return o.key() == to.key() }) {
			out = append(out, to)
		} else if err == nil {
			err = jerr
		}
	}
	if len(out) == 0 {
		return nil, err
	}
	return out, nil
}

// repository opens the repository in a folder, once; nil if there is none.
func (w *walker) repository(dir string) (*repository, error) {
	if g, ok := w.set.open[dir]; ok {
		return g, nil
	}
	// Only Receive writes to the repository of received commits, possibly now.
	g, err := openRepository(dir, !w.Offline && filepath.Base(dir) != received, w.Now)
	if err == nil && g != nil {
		w.set.open[dir] = g
	}
	return g, err
}

// find searches for a commit that was fetched before, from any address; g is nil if there is none.
func (w *walker) find(h plumbing.Hash) (*repository, error) {
	if w.names == nil {
		list, err := os.ReadDir(w.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		w.names = []string{}
		for _, e := range list {
			w.names = append(w.names, e.Name())
		}
	}
	for _, name := range w.names {
		// Checking for the ref's file excludes most repositories; refs of this kind are never packed.
		dir := filepath.Join(w.Dir, name)
		if _, err := os.Lstat(filepath.Join(dir, commitRefs+h.String())); err != nil {
			continue
		}
		g, err := w.repository(dir)
		if err != nil {
			return nil, err
		}
		if g == nil {
			continue
		}
		if ok, err := g.has(h); ok || err != nil {
			return g, err
		}
	}
	return nil, nil
}

// basesOf returns the addresses that relative URLs in the repository of an address are relative to.
func (w *walker) basesOf(a Address) []Address {
	if a.Kind != Local {
		return []Address{a}
	}
	return LocalBases(a.path)
}

// LocalBases returns the addresses of a repository of this server in the forms that its clients may use: NAME/project.git and NAME.git.
func LocalBases(p string) []Address {
	p = "/" + strings.Trim(p, "/")
	out := []Address{LocalAddress(p)}
	if up := path.Dir(p); up != "/" && up != "." {
		out = append(out, LocalAddress(up+".git"))
	}
	return out
}
