package submodule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pack"
	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// commitRefs is the prefix of the refs that record which commits are stored with all of their trees.
const commitRefs = "refs/corpus/commits/"

// shallowFile lists the commits that are stored without their parents: gitrepository-layout(5).
const shallowFile = "shallow"

// maxHave is the maximum number of commits that we tell a server we have.
const maxHave = 32

// repository is the bare repository of one address.
type repository struct {
	dir  string
	db   *store.DB
	refs *refs.Store
}

// openRepository opens an existing repository; nil if it does not exist. sweep removes what a crash left: its caller must be the
// only one that fetches.
func openRepository(dir string, sweep bool, now func() time.Time) (*repository, error) {
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	r := &repository{dir: dir, refs: &refs.Store{Dir: dir}}
	o := store.Options{Now: now}
	if sweep {
		o.StaleAfter = -1
		if _, err := r.refs.SweepLocks(); err != nil {
			return nil, err
		}
		if err := vfs.SweepTemps(vfs.OS{}, dir); err != nil {
			return nil, err
		}
	}
	var err error
	r.db, err = store.Open(dir, o)
	return r, err
}

// makeRepository creates the repository at dir, with the mode of the folder of repositories, and opens it.
func makeRepository(dir string, mode uint32, now func() time.Time) (*repository, error) {
	f := vfs.OS{}
	if err := f.Mkdir(filepath.Dir(dir), mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := f.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := store.Init(dir); err != nil {
		return nil, err
	}
	if err := vfs.WriteFileAtomic(f, filepath.Join(dir, "config"), []byte(store.Config), 0o644); err != nil {
		return nil, err
	}
	return openRepository(dir, true, now)
}

// has reports whether the commit is stored with all of its tree.
func (r *repository) has(commit plumbing.Hash) (bool, error) {
	h, err := r.refs.Get(commitRefs + commit.String())
	return err == nil && h == commit, err
}

// usedAfter is how old the recorded time of a commit's last use may become before it is updated.
const usedAfter = time.Hour

// use records that a commit is deployed now, as the time of its ref. Maintain keeps recently used ones.
func (r *repository) use(commit plumbing.Hash, now time.Time) error {
	name := filepath.Join(r.dir, commitRefs+commit.String())
	st, err := os.Lstat(name)
	if err != nil || now.Sub(st.ModTime()) < usedAfter {
		return err
	}
	return os.Chtimes(name, now, now)
}

// commits returns the stored commits.
func (r *repository) commits() ([]plumbing.Hash, error) {
	list, err := r.refs.List(commitRefs)
	var out []plumbing.Hash
	for _, x := range list {
		if !x.Hash.IsZero() {
			out = append(out, x.Hash)
		}
	}
	return out, err
}

// shallow returns the commits that are stored without their parents.
func (r *repository) shallow() ([]plumbing.Hash, error) {
	b, err := os.ReadFile(filepath.Join(r.dir, shallowFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []plumbing.Hash
	for f := range bytes.FieldsSeq(b) {
		if plumbing.IsHash(string(f)) {
			out = append(out, plumbing.NewHash(string(f)))
		}
	}
	return out, err
}

func (r *repository) setShallow(list []plumbing.Hash) error {
	if len(list) == 0 {
		if err := os.Remove(filepath.Join(r.dir, shallowFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	var b strings.Builder
	for _, h := range list {
		b.WriteString(h.String() + "\n")
	}
	return vfs.WriteFileAtomic(vfs.OS{}, filepath.Join(r.dir, shallowFile), []byte(b.String()), 0o644)
}

// ErrNoCommit reports that everything on the server was fetched, without the commit.
var ErrNoCommit = errors.New("the repository does not have this commit, or it is not reachable from a branch or tag")

// fetchCommit fetches a commit: alone if the server serves it, otherwise with everything. It is durable on return.
func (r *repository) fetchCommit(ctx context.Context, commit plumbing.Hash, dial func(context.Context) (transport, error), limits pack.Limits, id, agent string) error {
	have, err := r.commits()
	if err != nil {
		return err
	}
	shallow, err := r.shallow()
	if err != nil {
		return err
	}
	q := ask{commit: commit, have: have[:min(len(have), maxHave)], shallow: shallow}
	err = r.take(ctx, q, dial, limits, id, agent)
	var not *notGivenError
	if errors.As(err, &not) {
		q = ask{commit: commit, all: true}
		if len(shallow) == 0 {
			q.have = have[:min(len(have), maxHave)]
		}
		err = r.take(ctx, q, dial, limits, id, agent)
	}
	return err
}

// take is one attempt of fetchCommit.
func (r *repository) take(ctx context.Context, q ask, dial func(context.Context) (transport, error), limits pack.Limits, id, agent string) (err error) {
	c, hangUp, err := connect(ctx, dial, agent)
	if err != nil {
		return err
	}
	defer hangUp()
	a, err := c.fetch(ctx, q)
	if err != nil {
		return err
	}
	in, err := r.db.NewQuarantine(id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Discard()) }()
	if _, err := in.Ingest(ctx, a.pack, store.IngestOptions{Limits: limits}); err != nil {
		return fmt.Errorf("the received pack: %w", err)
	}
	have, err := r.commits()
	if err != nil {
		return err
	}
	typ, _, err := in.Header(q.commit)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ErrNoCommit
	case err != nil:
		return err
	case typ != plumbing.CommitObject:
		return fault.New(fault.Refused, "", "%s is a %s there, not a commit", q.commit.String()[:7], typ).
			WithHint("record a commit of the submodule:  git -C SUBMODULE checkout COMMIT ; git add SUBMODULE ; git commit")
	}
	old, err := r.shallow()
	if err != nil {
		return err
	}
	roots := slices.DeleteFunc(append(slices.Clone(old), a.shallow...), func(h plumbing.Hash) bool { return slices.Contains(a.unshallow, h) })
	if q.all && len(q.have) == 0 {
		roots = nil // all of history was sent
	}
	return r.publish(ctx, in, []plumbing.Hash{q.commit}, have, old, roots)
}

// publish stores what a quarantine received, if the commits are connected, and records that they are stored. have are the commits that were stored before, old is the
// boundary of history before, and roots that afterwards. It is durable on return.
func (r *repository) publish(ctx context.Context, in *store.Quarantine, commits, have, old, roots []plumbing.Hash) error {
	slices.SortFunc(roots, func(x, y plumbing.Hash) int { return bytes.Compare(x[:], y[:]) })
	roots = slices.Compact(roots)
	if err := in.Connected(ctx, store.Connect{Tips: commits, Refs: have, Cut: roots}); err != nil {
		return fmt.Errorf("the received pack is incomplete: %w", err)
	}
	// Write the boundary first: a commit without parents that is not in it would be broken.
	if !slices.Equal(roots, old) && len(roots) > 0 {
		if err := r.setShallow(roots); err != nil {
			return err
		}
	}
	if err := in.Migrate(); err != nil {
		return err
	}
	if len(roots) == 0 && len(old) > 0 {
		if err := r.setShallow(nil); err != nil {
			return err
		}
	}
	changes := make([]refs.Change, len(commits))
	for i, h := range commits {
		changes[i] = refs.Change{Name: commitRefs + h.String(), New: h, Any: true}
	}
	return r.refs.Update(changes)
}
