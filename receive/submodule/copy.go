package submodule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/pack"
	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Copier copies what one ref of another repository points to, with its history, into a repository from which others fetch. Its fields are set
// before use.
type Copier struct {
	// HTTP is used for web servers; its CheckRedirect is replaced.
	HTTP http.Client
	// Home is the folder whose .ssh has the key and the known hosts for ssh; "" means none.
	Home string
	// Agent is our name and version.
	Agent string
	// Limits limits each pack, Timeout each copy: default 10 minutes.
	Limits  pack.Limits
	Timeout time.Duration
	// ID names quarantines.
	ID func() string
}

// Ref is a branch or a tag of the other repository.
type Ref struct {
	Name string
	Hash plumbing.Hash
}

// Wanted is what Copy copies: an object, and the name of the ref that points to it there, "" for a commit that is given by its hash.
type Wanted struct {
	Ref    string
	Object plumbing.Hash
}

// Copied is what Copy copied.
type Copied struct {
	Wanted
	// Commit is the commit that Object is, or leads to. Received reports that it was fetched: it was not here, or damaged.
	Commit   plumbing.Hash
	Received bool
}

// Pinned is the branch that points to the commit that Copy copied, and the branch of HEAD.
const Pinned = "refs/heads/pinned"

// Copy makes the bare repository dir contain what choose selects from the refs at an address, and nothing else: the ref itself and Pinned.
// check is called with the object before any ref moves. Existing objects are not fetched again. The commit that Copy returns is durable and
// complete: connected, and each object checked like those of a push. Only one Copy may run at a time for each dir; it removes what a crash
// left there.
//
// A server that does not have what was chosen is ErrNoCommit.
func (c *Copier) Copy(ctx context.Context, dir string, a Address, choose func([]Ref) (Wanted, error), check func(plumbing.ObjectType, []byte) error) (got Copied, err error) {
	if a.Kind == Local || a.Kind == Relative {
		return got, fault.New(fault.Refused, "", "%s is no address of another server", a)
	}
	if err := vfs.MkdirAll(vfs.OS{}, filepath.Dir(dir), 0o755); err != nil {
		return got, err
	}
	r, err := makeRepository(dir, 0o755, time.Now)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, r.db.Close()) }()
	err = within(ctx, c.Timeout, a, func(ctx context.Context) (err error) {
		got, err = c.into(ctx, r, a, choose, check)
		return err
	})
	return got, err
}

func (c *Copier) into(ctx context.Context, r *repository, a Address, choose func([]Ref) (Wanted, error), check func(plumbing.ObjectType, []byte) error) (got Copied, err error) {
	before, err := r.refs.List("refs/")
	if err != nil {
		return got, err
	}
	var have []plumbing.Hash
	for _, x := range before {
		ok, err := r.db.Has(x.Hash)
		if err != nil {
			return got, err
		}
		if !ok { // packs were lost: everything is fetched again
			have = nil
			break
		}
		have = append(have, x.Hash)
	}
	in, w, err := c.fetch(ctx, r, a, have, false, choose)
	var not *notGivenError
	if errors.As(err, &not) { // requested by its name only: when everything is fetched, it is included
		in, w, err = c.fetch(ctx, r, a, have, true, func([]Ref) (Wanted, error) { return w, nil })
	}
	if err != nil {
		return got, err
	}
	var objs store.Reader = r.db
	if in != nil {
		objs = in
		defer func() { err = errors.Join(err, in.Discard()) }()
	}
	typ, data, err := objs.Get(w.Object)
	if errors.Is(err, store.ErrNotFound) {
		return got, ErrNoCommit
	}
	if err != nil {
		return got, err
	}
	got = Copied{Wanted: w, Received: in != nil}
	var kind plumbing.ObjectType
	got.Commit, kind, err = object.Peel(objs, w.Object)
	if err == nil && kind != plumbing.CommitObject {
		err = fault.New(fault.Refused, "", "%s is a %s there, not a commit", w.Object.String()[:7], kind)
	}
	if err == nil {
		err = check(typ, data)
	}
	if err != nil {
		return got, err
	}
	if in != nil {
		if err := in.Connected(ctx, store.Connect{Tips: []plumbing.Hash{w.Object}, Refs: have}); err != nil {
			return got, fmt.Errorf("the received pack is incomplete: %w", err)
		}
		if err := in.Migrate(); err != nil {
			return got, err
		}
	}
	return got, r.show(before, w, got.Commit)
}

// fetch requests what choose selects. in is nil if that is stored already; otherwise the caller discards in.
func (c *Copier) fetch(ctx context.Context, r *repository, a Address, have []plumbing.Hash, all bool, choose func([]Ref) (Wanted, error)) (in *store.Quarantine, w Wanted, err error) {
	dial := (&Resolver{HTTP: c.HTTP, Home: c.Home, Agent: c.Agent}).dial(a, operators(func(string) error { return nil }))
	cl, hangUp, err := connect(ctx, dial, c.Agent)
	if err != nil {
		return nil, w, err
	}
	defer hangUp()
	if cl.v2 && !all { // with all, fetch lists the refs
		if err := cl.lsRefs(ctx, "refs/heads/", "refs/tags/"); err != nil {
			return nil, w, err
		}
	}
	var there []Ref
	for _, x := range cl.refs {
		there = append(there, Ref{x.name, x.hash})
	}
	if w, err = choose(there); err != nil || slices.Contains(have, w.Object) {
		return nil, w, err
	}
	res, err := cl.fetch(ctx, ask{commit: w.Object, have: have[:min(len(have), maxHave)], all: all, whole: true})
	if err != nil {
		return nil, w, err
	}
	if in, err = r.db.NewQuarantine(c.ID()); err != nil {
		return nil, w, err
	}
	if _, err := in.Ingest(ctx, res.pack, store.IngestOptions{Limits: c.Limits}); err != nil {
		return nil, w, errors.Join(fmt.Errorf("the received pack: %w", err), in.Discard())
	}
	return in, w, nil
}

// show sets the refs to those of what was copied, in one step.
func (r *repository) show(before []refs.Ref, w Wanted, commit plumbing.Hash) error {
	want := map[string]plumbing.Hash{Pinned: commit}
	if w.Ref != "" {
		want[w.Ref] = w.Object
	}
	var changes []refs.Change
	for _, x := range before {
		if _, ok := want[x.Name]; !ok {
			changes = append(changes, refs.Change{Name: x.Name, Any: true})
		}
	}
	for name, h := range want {
		changes = append(changes, refs.Change{Name: name, New: h, Any: true})
	}
	if err := r.refs.Update(changes); err != nil {
		return err
	}
	if head, err := r.refs.Head(); err == nil && head == Pinned {
		return nil
	}
	return r.refs.SetHead(Pinned)
}
