package submodule

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/pack"
	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/git/tree"
	"corpus-git/git/upload"
	"corpus-git/internal/diskfull"
	"corpus-git/internal/fault"
)

// received is the folder in Resolver.Dir of the repository of commits that came from another machine. Those of addresses end in a hash.
const received = "received"

// Commits lists the commits of the submodules, including nested ones, each once, in order.
func (s *Set) Commits() []plumbing.Hash { return commitsOf(nil, s.Modules) }

func commitsOf(out []plumbing.Hash, list []tree.Submodule) []plumbing.Hash {
	for _, m := range list {
		out = commitsOf(append(out, m.Commit), m.Modules)
	}
	return unique(out)
}

// unique sorts a list, and removes duplicates.
func unique(list []plumbing.Hash) []plumbing.Hash {
	slices.SortFunc(list, func(x, y plumbing.Hash) int { return bytes.Compare(x[:], y[:]) })
	return slices.Compact(list)
}

// WritePack writes a pack of the submodules' commits wants, with their trees and without history, to a machine that received the commits haves with Receive:
// what is in their trees is omitted. haves that are not stored with the submodules are ignored. It returns the number of objects: none, and nothing written, if nothing is missing.
func (s *Set) WritePack(ctx context.Context, w io.Writer, wants, haves []plumbing.Hash) (objects int, err error) {
	all := make(store.Union, 0, len(s.open))
	var known []plumbing.Hash
	for _, g := range s.open {
		all = append(all, g.db)
		for _, h := range haves {
			ok, err := g.has(h)
			if err != nil {
				return 0, err
			}
			if ok {
				known = append(known, h)
			}
		}
	}
	return upload.Snapshots(ctx, all, unique(slices.Clone(wants)), unique(known), w)
}

// Stored lists the commits that the repositories in a folder (see Resolver.Dir) have, and those of them that came with Receive.
func Stored(dir string) (all, came []plumbing.Hash, err error) {
	dirs, err := Repositories(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range dirs {
		list, err := (&repository{dir: d, refs: &refs.Store{Dir: d}}).commits()
		if err != nil {
			return nil, nil, err
		}
		all = append(all, list...)
		if filepath.Base(d) == received {
			came = list
		}
	}
	return unique(all), unique(came), nil
}

// Incoming is a pack of commits from another machine.
type Incoming struct {
	// What the commits are, for messages: submodules.
	What string
	// Commits are the commits that it brings; it has no objects of others.
	Commits []plumbing.Hash
	Pack    io.Reader
	Limits  pack.Limits
	// Complete is called when the pack was read: nothing is published before it returns nil. It may be nil.
	Complete func() error
	// Publish calls publish, which makes what was received visible and durable, and may do more before or after it; nil calls it.
	Publish func(publish func() error) error
	// ID names the quarantine.
	ID  string
	Now func() time.Time
}

// Receive stores a pack of commits, as WritePack writes it, in a folder of repositories (see Resolver.Dir, Mode), in a repository of its own: Resolve finds them there, and
// fetches nothing. The objects are checked like those of a fetch. A pack that lacks an object, or has others, is fault.Refused, and nothing of it
// is kept. It is durable on return. Only one may run at a time for each folder; neither Maintain.
func Receive(ctx context.Context, dir string, mode uint32, p Incoming) (err error) {
	// The mode of the folder itself is that of its first repository.
	g, err := makeRepository(filepath.Join(dir, received), mode, p.Now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.db.Close()) }()
	q, err := g.db.NewQuarantine(p.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Discard()) }()
	refuse := func(err error) error { return fault.New(fault.Refused, "", "the pack of %s: %w", p.What, err) }
	in, err := q.Ingest(ctx, bufio.NewReader(p.Pack), store.IngestOptions{Limits: p.Limits})
	if diskfull.Is(err) {
		return diskfull.Explain(syscall.ENOSPC) // the pack may be good
	}
	if err != nil {
		return refuse(err)
	}
	if p.Complete != nil {
		if err := p.Complete(); err != nil {
			return err
		}
	}
	commits := unique(slices.Clone(p.Commits))
	if err := exactly(ctx, q, in, commits); err != nil {
		return refuse(err)
	}
	publish := func() error {
		have, err := g.commits()
		if err != nil {
			return err
		}
		old, err := g.shallow()
		if err != nil {
			return err
		}
		err = g.publish(ctx, q, commits, have, old, append(slices.Clone(old), commits...))
		var missing *store.MissingError
		var wrong *object.WrongTypeError
		if errors.As(err, &missing) || errors.As(err, &wrong) || errors.Is(err, object.ErrCorrupt) {
			return refuse(err)
		}
		return err
	}
	if p.Publish == nil {
		return publish()
	}
	return p.Publish(publish)
}

// exactly refuses a pack that lacks one of the commits, or has an object that belongs to none of them.
func exactly(ctx context.Context, q *store.Quarantine, in *store.Ingested, commits []plumbing.Hash) error {
	seen := map[plumbing.Hash]bool{}
	var walk func(h plumbing.Hash, depth int) error
	// mark reports whether an object of the pack is found for the first time. What is not of the pack has nothing of it below: the sender omits whole trees.
	mark := func(h plumbing.Hash) bool {
		_, ok := in.Received(h)
		if !ok || seen[h] {
			return false
		}
		seen[h] = true
		return true
	}
	walk = func(h plumbing.Hash, depth int) error {
		if !mark(h) {
			return nil
		}
		if depth > maxDepth {
			return fmt.Errorf("tree %s: folders too deep", h)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := object.Get(q, h, plumbing.TreeObject)
		if err != nil {
			return err
		}
		for len(data) > 0 {
			e, rest, ok := object.NextEntry(data)
			if !ok {
				return fmt.Errorf("tree %s cannot be read", h)
			}
			data = rest
			switch {
			case e.IsGitlink():
			case e.IsTree():
				if err := walk(e.Hash, depth+1); err != nil {
					return err
				}
			default:
				mark(e.Hash)
			}
		}
		return nil
	}
	for _, h := range commits {
		if t, ok := in.Received(h); !ok || t != plumbing.CommitObject {
			return fmt.Errorf("commit %s is not in it", h.String()[:7])
		}
		seen[h] = true
		c, err := object.ReadHead(q, h)
		if err != nil {
			return err
		}
		if err := walk(c.Tree, 0); err != nil {
			return err
		}
	}
	if n := in.Objects - in.Added - len(seen); n != 0 {
		return fmt.Errorf("%d of its objects belong to none of its commits", n)
	}
	return nil
}

// maxDepth limits the nesting of folders, as git's core.maxTreeDepth does.
const maxDepth = 2048
