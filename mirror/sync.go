package mirror

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/crypto/ssh"

	"corpus-git/access"
	"corpus-git/internal/diskfull"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/project"
	"corpus-git/receive/signed"
	"corpus-git/receive/submodule"
)

// Mirror is a list, its lock and the folder of its copies.
type Mirror struct {
	List *List
	// LockFile is the lock's name, Dir the folder of the copies, which is created.
	LockFile, Dir string
	// Copier fetches repositories, HTTP files.
	Copier submodule.Copier
	HTTP   *http.Client
	// Verifier verifies signatures; its Settings are replaced. Env is the environment of apt-get(8).
	Verifier signed.Verifier
	Env      []string

	mu   sync.Mutex
	lock *Lock
}

// Options are those of Sync.
type Options struct {
	// Jobs is how many entries to copy in parallel, at least 1.
	Jobs int
	// Update are the paths whose pins are renewed; All renews every one.
	Update []string
	All    bool
}

// Outcome is the result for one entry.
type Outcome struct {
	// Kind is "git", "files" or "packages".
	Kind string `json:"kind"`
	Path string `json:"path"`
	// Change is "unchanged", "copied" for an entry that was not here or not pinned, "updated" for one whose pin was renewed, "failed".
	Change string `json:"change"`
	// At is the commit or the SHA-256, for packages that of the archive's index, and SignedBy who signed it, if that was required.
	At       string `json:"at,omitempty"`
	SignedBy string `json:"signed_by,omitempty"`
	Error    string `json:"error,omitempty"`
	Hint     string `json:"hint,omitempty"`
}

// The values of Outcome.Change.
const (
	unchanged = "unchanged"
	copied    = "copied"
	updated   = "updated"
	failed    = "failed"
)

// Sync copies what is missing, entries in parallel, and pins what was not pinned. Each entry that was copied is durable, and pinned, before the
// outcome is reported; an entry that fails leaves its copy and its pin as they were, and does not stop the others. done is called once for
// each entry, by one goroutine at a time. The error is about the list or the lock; it is fault.Busy while another sync works in the folder.
func (m *Mirror) Sync(ctx context.Context, o Options, done func(Outcome)) error {
	if err := m.known(o.Update); err != nil {
		return err
	}
	alone, err := m.alone()
	if err != nil {
		return err
	}
	defer alone()
	lock, err := ReadLock(m.LockFile)
	if err != nil {
		return err
	}
	m.lock = lock
	if err := m.forget(); err != nil {
		return err
	}
	type entry func() (Outcome, error)
	var entries, later []entry
	renew := func(p string) bool { return o.All || slices.Contains(o.Update, p) }
	for _, r := range m.List.Repositories {
		entries = append(entries, func() (Outcome, error) { return m.repository(ctx, r, renew(r.Path)) })
	}
	for _, f := range m.List.Files {
		entries = append(entries, func() (Outcome, error) { return m.file(ctx, f, renew(f.Path)) })
	}
	for _, p := range m.List.Packages {
		e := func() (Outcome, error) { return m.packages(ctx, p, renew(p.Path)) }
		if len(p.With) > 0 {
			later = append(later, e)
		} else {
			entries = append(entries, e)
		}
	}
	var wg sync.WaitGroup
	var one sync.Mutex
	free := make(chan struct{}, max(o.Jobs, 1))
	for _, list := range [][]entry{entries, later} {
		for _, e := range list {
			free <- struct{}{}
			wg.Go(func() {
				defer func() { <-free }()
				out, err := e()
				if diskfull.Is(err) && fault.HintOf(err) == "" {
					err = fault.New(fault.Busy, "", "the disk is full: %w", err).WithHint("free some space; the next sync copies it")
				}
				if err != nil {
					out.Change, out.Error, out.Hint = failed, printable.Line(err.Error()), fault.HintOf(err)
				}
				one.Lock()
				defer one.Unlock()
				done(out)
			})
		}
		wg.Wait()
	}
	return ctx.Err()
}

// known refuses names of entries that are not in the list.
func (m *Mirror) known(paths []string) error {
	for _, p := range paths {
		if !m.List.hasRepository(p) && !m.List.hasFile(p) && !m.List.hasPackages(p) {
			return fault.New(fault.Usage, "", "%s has no repository, no file and no packages %q", m.List.name, p)
		}
	}
	return nil
}

// forget removes pins of entries that are no longer in the list. Their copies stay, and are not served. It takes secrets out of addresses that an earlier release pinned.
func (m *Mirror) forget() error {
	text, err := m.lock.text()
	if err != nil {
		return err
	}
	tidy := func(l *Lock) {
		maps.DeleteFunc(l.Repositories, func(p string, _ LockedRepository) bool { return !m.List.hasRepository(p) })
		maps.DeleteFunc(l.Files, func(p string, _ LockedFile) bool { return !m.List.hasFile(p) })
		maps.DeleteFunc(l.Packages, func(p string, _ LockedPackages) bool { return !m.List.hasPackages(p) })
		for _, f := range m.List.Files {
			if old, ok := l.Files[f.Path]; ok && old.URL == f.URL {
				old.URL = shown(f.URL)
				l.Files[f.Path] = old
			}
		}
		for _, p := range m.List.Packages {
			if old, ok := l.Packages[p.Path]; ok && old.URL == p.URL {
				old.URL = shown(p.URL)
				l.Packages[p.Path] = old
			}
		}
	}
	tidy(m.lock)
	if now, err := m.lock.text(); err != nil || bytes.Equal(now, text) {
		return err
	}
	return m.pin(tidy)
}

// pin records, durably, what an entry is. The lock is read again: a sync of the same list into another folder may have written to it.
func (m *Mirror) pin(note func(*Lock)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	note(m.lock)
	unlock, err := lockFolder(filepath.Dir(m.LockFile), syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := ReadLock(m.LockFile)
	if err != nil {
		return err
	}
	note(now)
	return now.write(m.LockFile)
}

// alone takes the lock of the folder of the copies, which is made: two syncs there would write the same files. It is fault.Busy if another process holds it.
func (m *Mirror) alone() (unlock func(), err error) {
	if err := vfs.MkdirAll(vfs.OS{}, m.Dir, 0o755); err != nil {
		return nil, err
	}
	unlock, err = lockFolder(m.Dir, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fault.New(fault.Busy, "", "another sync works in %s", m.Dir).WithHint("try again when it has ended")
	}
	return unlock, err
}

// lockFolder takes a lock on a folder (flock(2)), which ends with the process.
func lockFolder(dir string, how int) (unlock func(), err error) {
	d, err := os.Open(dir) //nolint:gosec // the mirror's folder, or that of its list
	if err != nil {
		return nil, err
	}
	if err := vfs.Flock(d, how); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return func() { _ = d.Close() }, nil
}

func (m *Mirror) repositoryDir(p string) string {
	return filepath.Join(m.Dir, "git", filepath.FromSlash(p)+".git")
}

// repository copies one repository.
func (m *Mirror) repository(ctx context.Context, r Repository, renew bool) (Outcome, error) {
	out := Outcome{Kind: "git", Path: r.Path, Change: unchanged}
	m.mu.Lock()
	old, pinned := m.lock.Repositories[r.Path]
	m.mu.Unlock()
	pinned = pinned && old.URL == r.address.String() && old.Revision == r.Revision
	held := pinned && !renew
	signer := ""
	var want submodule.Wanted
	choose := func(there []submodule.Ref) (w submodule.Wanted, err error) {
		if held {
			w, err = old.wanted(r, there)
		} else {
			w, err = resolve(r, there)
		}
		want = w
		return w, err
	}
	check := func(t plumbing.ObjectType, data []byte) (err error) {
		signer, err = m.signer(ctx, r, want.Object, t, data)
		return err
	}
	whole := pinned && old.shows(m.repositoryDir(r.Path)) == nil
	got, err := m.Copier.Copy(ctx, m.repositoryDir(r.Path), r.address, choose, check)
	if held && errors.Is(err, submodule.ErrNoCommit) {
		return out, fault.New(fault.Refused, "", "the pinned %s is not here, and no longer there: %w", old.Object[:12], err).
			WithHint("take it from another copy of this mirror; to take what is there now:  corpus-git mirror sync --update %s", r.Path)
	}
	if err != nil {
		return out, err
	}
	if held {
		if err := old.is(got.Commit); err != nil {
			return out, err
		}
	}
	now := LockedRepository{URL: r.address.String(), Revision: r.Revision, Ref: got.Ref, Object: got.Object.String(), Commit: got.Commit.String(), SignedBy: signer}
	out.At, out.SignedBy = now.Commit, signer
	if pinned && now == old {
		if got.Received || !whole { // it was lost or damaged here
			out.Change = copied
		}
		return out, nil
	}
	out.Change = copied
	if pinned {
		out.Change = updated
	}
	return out, m.pin(func(l *Lock) { l.Repositories[r.Path] = now })
}

// resolve finds what a revision means among the refs of a server: a full hash, the whole name of a ref, a tag or a branch.
func resolve(r Repository, there []submodule.Ref) (submodule.Wanted, error) {
	if plumbing.IsHash(r.Revision) {
		return submodule.Wanted{Object: plumbing.NewHash(r.Revision)}, nil
	}
	var found []submodule.Ref
	for _, x := range there {
		if x.Name == r.Revision || x.Name == "refs/tags/"+r.Revision || x.Name == "refs/heads/"+r.Revision {
			found = append(found, x)
		}
	}
	switch len(found) {
	case 0:
		return submodule.Wanted{}, fault.New(fault.Refused, "", "there is no branch and no tag %q", printable.Clip(r.Revision, 200))
	case 1:
		return submodule.Wanted{Ref: found[0].Name, Object: found[0].Hash}, nil
	}
	return submodule.Wanted{}, fault.New(fault.Refused, "", "%q is a branch and a tag", printable.Clip(r.Revision, 200)).
		WithHint("name one of them whole:  refs/tags/%s", r.Revision)
}

// wanted returns what is pinned. A tag that now points elsewhere is refused; a branch may advance, and one that was removed may be here.
func (old LockedRepository) wanted(r Repository, there []submodule.Ref) (submodule.Wanted, error) {
	w := submodule.Wanted{Ref: old.Ref, Object: plumbing.NewHash(old.Object)}
	for _, x := range there {
		if x.Name == old.Ref && strings.HasPrefix(x.Name, "refs/tags/") && x.Hash != w.Object {
			return w, fault.New(fault.Refused, "", "the tag %s was moved: it is pinned to %s, and leads to %s there now", printable.Clip(r.Revision, 200), old.Object[:12], x.Hash.String()[:12]).
				WithHint("ask who publishes it why; to take the new one:  corpus-git mirror sync --update %s", r.Path)
		}
	}
	return w, nil
}

// nobody is the authority of a mirror: only the files of a list define who may sign.
type nobody struct{}

func (nobody) Identify(context.Context, access.Offer) (access.Identity, bool, error) {
	return access.Identity{}, false, nil
}

func (nobody) Can(context.Context, access.Identity, project.Name, project.Right) (bool, error) {
	return false, nil
}

func (nobody) Revoked(ssh.PublicKey) (bool, error) { return false, nil }

// signer verifies the signature that an entry requires, and returns whose it is.
func (m *Mirror) signer(ctx context.Context, r Repository, id plumbing.Hash, t plumbing.ObjectType, data []byte) (string, error) {
	if r.SignedBy == "" {
		return "", nil
	}
	st, err := os.Stat(r.SignedBy)
	if err != nil {
		return "", fault.New(fault.Usage, "", "signed_by of %s: %w", r.Path, err)
	}
	v := m.Verifier
	v.Access = nobody{}
	v.Settings = func() signed.Settings {
		if st.IsDir() {
			return signed.Settings{GPGHome: r.SignedBy}
		}
		return signed.Settings{AllowedSigners: r.SignedBy}
	}
	s, err := v.Object(ctx, id, t, data, signed.For{})
	if errors.Is(err, signed.ErrUnknown) {
		return "", fault.New(fault.Refused, "", "%w", err).WithHint("whoever may sign %s is listed in %s", r.Path, r.SignedBy)
	}
	if s.Signer != "" {
		return s.Signer, err
	}
	return s.Key, err
}
