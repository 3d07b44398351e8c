package submodule

import (
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/refs"
	"corpus-git/git/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Tip returns the commit that a revision now points to in the repository of an address: a branch, otherwise a tag. Errors are like those of
// Resolve.
func (r *Resolver) Tip(ctx context.Context, from, rev string) (plumbing.Hash, error) {
	w := r.walker(ctx)
	a, err := w.elsewhere(from)
	if err != nil {
		return plumbing.ZeroHash, w.failed(a, err)
	}
	var h plumbing.Hash
	err = within(ctx, r.Timeout, a, func(ctx context.Context) (err error) {
		h, err = w.tip(ctx, a, rev)
		return err
	})
	return h, w.failed(a, err)
}

// Commit opens the repository that has a commit of an address, and fetches the commit if it is missing; if r is Offline, a missing one is
// fault.Refused. The caller calls end. What was fetched is durable.
func (r *Resolver) Commit(ctx context.Context, from string, h plumbing.Hash) (objs tree.Objects, end func() error, err error) {
	w := r.walker(ctx)
	a, err := w.elsewhere(from)
	if err != nil {
		return nil, nil, w.failed(a, err)
	}
	g, err := w.find(h)
	if err == nil && g == nil {
		if r.Offline {
			err = fault.New(fault.Refused, "", "commit %s has not been fetched", h.String()[:7]).WithHint("push again; a deployment fetches it")
		} else if dial, _, done, derr := w.dialer(a); derr != nil {
			err = derr
		} else {
			g, err = w.fetch("recipe", a, h, dial)
			done()
		}
	}
	if err == nil {
		err = w.fits(g.db, h, "")
	}
	if err != nil {
		return nil, nil, errors.Join(w.failed(a, err), w.set.Close())
	}
	return g.db, w.set.Close, nil
}

// Stored opens the repository that has a commit, whatever it came from; fault.Refused if none has it, or it has too many files. The caller calls end.
func (r *Resolver) Stored(ctx context.Context, h plumbing.Hash) (objs tree.Objects, end func() error, err error) {
	w := r.walker(ctx)
	g, err := w.find(h)
	if err == nil && g == nil {
		err = fault.New(fault.Refused, "", "commit %s is not stored", h.String()[:7])
	}
	if err == nil {
		err = w.fits(g.db, h, "")
	}
	if err != nil {
		return nil, nil, errors.Join(err, w.set.Close())
	}
	return g.db, w.set.Close, nil
}

// Has reports whether a repository in a folder (see Resolver.Dir) has a commit with all of its tree.
func Has(dir string, h plumbing.Hash) (bool, error) {
	dirs, err := Repositories(dir)
	for _, d := range dirs {
		if ok, err := (&repository{dir: d, refs: &refs.Store{Dir: d}}).has(h); ok || err != nil {
			return ok, err
		}
	}
	return false, err
}

// Keep removes the refs of commits in a folder of repositories (see Resolver.Dir) for which keep returns false; Maintain then removes their
// objects. Nothing may be fetched meanwhile.
func Keep(dir string, keep func(plumbing.Hash) bool) error {
	dirs, err := Repositories(dir)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		g, err := openRepository(d, false, nil)
		if err != nil || g == nil {
			return err
		}
		list, err := g.commits()
		for _, h := range list {
			if err == nil && !keep(h) {
				err = g.refs.CompareAndSwap(commitRefs+h.String(), h, plumbing.ZeroHash)
			}
		}
		if err := errors.Join(err, g.db.Close()); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere returns an address on another server.
func (w *walker) elsewhere(from string) (Address, error) {
	a, err := ParseAddress(from)
	if err == nil && a.Kind == Relative {
		err = fault.New(fault.Refused, "", "its URL is relative")
	}
	if err == nil && a.Kind == SSH && w.Here != nil && w.Here(a.HostPort()) {
		err = fault.New(fault.Refused, "", "%s is this server", a.HostPort()).WithHint("name the project instead")
	}
	return a, err
}

// failed adds to an error the address that it is about.
func (w *walker) failed(a Address, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	kind, hint := blame(err)
	return fault.New(kind, "", "%s: %w", a, err).WithHint("%s", hint)
}

func (w *walker) tip(ctx context.Context, a Address, rev string) (plumbing.Hash, error) {
	dial, _, end, err := w.dialer(a)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer end()
	c, hangUp, err := connect(ctx, dial, w.Agent)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer hangUp()
	if c.v2 {
		if err := c.lsRefs(ctx, "refs/heads/"+rev, "refs/tags/"+rev); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	for _, name := range []string{"refs/heads/" + rev, "refs/tags/" + rev} {
		for _, r := range c.refs {
			switch {
			case r.name != name:
			case r.peeled.IsZero():
				return r.hash, nil
			default:
				return r.peeled, nil
			}
		}
	}
	return plumbing.ZeroHash, fault.New(fault.Refused, "", "the repository there has no branch or tag %s", printable.Clip(rev, 200))
}
