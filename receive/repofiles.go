package receive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/checkout"
	"corpus-git/git/store"
	"corpus-git/git/tree"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/project"
	"corpus-git/receive/session"
)

// config is the configuration of a repository that is pushed to.
const config = store.Config + `[receive]
	autogc = false
`

// Create creates the bare repository if it is missing, and missing parts of it. It is idempotent, and durable on return. made reports that
// there was none. The pillar's repository is readable by its owner only; fixperms may change that.
func (r *Repository) Create(ctx context.Context) (made bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if _, err := project.ParseName(string(r.name)); err != nil {
		return false, err
	}
	over, err := r.all.Underway.Begin(r.name)
	if err != nil {
		return false, err
	}
	defer over()
	dir := r.Dir()
	there, err := r.Exists()
	if err != nil {
		return false, err
	}
	f := r.all.fs()
	if !there {
		if err := vfs.MkdirAll(f, filepath.Dir(dir), 0o755); err != nil {
			return false, err
		}
		mode := uint32(0o755)
		if r.repo == project.PillarRepo {
			mode = 0o700
		}
		if err := f.Mkdir(dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
		if err := store.Init(dir); err != nil {
			return false, err
		}
		if err := vfs.WriteFileAtomic(f, filepath.Join(dir, "config"), []byte(config), 0o644); err != nil {
			return true, err
		}
		return true, r.handOver(dir)
	}
	for _, sub := range []string{"objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags"} {
		if err := f.Mkdir(filepath.Join(dir, sub), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
	}
	_, err = os.Stat(filepath.Join(dir, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		err = vfs.WriteFileAtomic(f, filepath.Join(dir, "config"), []byte(config), 0o644)
	}
	if err == nil {
		err = r.handOver(dir)
	}
	return false, err
}

// reader reads the repository, and the objects in in if they were pushed to this one.
func (r *Repositories) reader(o *opened, in project.Incoming) (store.Reader, error) {
	if in == nil {
		return r.objects(o)
	}
	i, ok := in.(*session.Incoming)
	if !ok {
		return nil, fmt.Errorf("incoming objects of another make: %T", in)
	}
	if i.Dir() != o.dir {
		return r.objects(o)
	}
	return i.Reader(), nil
}

// Tree returns a commit's files; objects in in, which may be nil, are visible. The repository stays open, and the file system valid, until
// ctx ends.
func (r *Repository) Tree(ctx context.Context, c project.Commit, in project.Incoming) (fs.FS, error) {
	o, err := r.acquire()
	if err != nil {
		return nil, err
	}
	rd, err := r.all.reader(o, in)
	if err != nil {
		r.all.release(o)
		return nil, err
	}
	t, err := tree.FS(ctx, rd, hashOf(c), "")
	if err != nil {
		r.all.release(o)
		return nil, err
	}
	context.AfterFunc(ctx, func() { r.all.release(o) })
	return t, nil
}

// Checkout checks a published commit out into a working copy, on the deployed branch and with the repository's tags. With Submodules.Fetch
// the submodules that Submodules found are checked out; otherwise their folders are empty. It can be repeated, and is durable on return.
func (r *Repository) Checkout(ctx context.Context, want project.Checkout) (project.CheckoutStats, error) {
	var out project.CheckoutStats
	err := r.change(ctx, func(o *opened) error {
		branch, err := o.refs.Head()
		if err != nil {
			return err
		}
		list, _, err := o.refs.ListReadable("refs/tags/") // a broken tag does not stop a deployment
		if err != nil {
			return err
		}
		tags := make(map[string]plumbing.Hash, len(list))
		for _, t := range list {
			tags[t.Name] = t.Hash
		}
		db, err := r.all.objects(o)
		if err != nil {
			return err
		}
		abs, err := filepath.Abs(o.dir)
		if err != nil {
			return err
		}
		dir, err := filepath.Abs(want.Dir)
		if err != nil {
			return err
		}
		req := checkout.Request{
			Objects: db, Repo: abs, Commit: hashOf(want.Commit), Dir: dir, Branch: branch, Tags: tags, MaxFiles: r.all.MaxFiles, Now: r.all.Now, Snapshot: want.Snapshot,
			Keep: want.Keep, NoSync: want.NoSync,
		}
		if want.Owner != nil {
			req.Owner = &checkout.Owner{UID: want.Owner.UID, GID: want.Owner.GID, Perm: want.Owner.Perm}
		}
		if want.Submodules.Fetch {
			id, _, err := peelCommit(db, hashOf(want.Commit))
			if err != nil {
				return err
			}
			set, err := r.modules(ctx, db, id)
			if err != nil {
				return err
			}
			defer set.Close()
			req.Modules = set.Modules
		}
		st, err := checkout.Sync(ctx, req)
		if err != nil {
			return err
		}
		out = project.CheckoutStats{
			Written: st.Written, Removed: st.Removed, Unchanged: st.Unchanged, Untracked: st.Untracked,
			Local: st.LocalChanges.First, LocalCount: st.LocalChanges.Count, Kept: st.Kept.First, KeptCount: st.Kept.Count,
			Bytes: st.Bytes, Touched: st.Touched, Notes: st.Notes,
		}
		if st.Overwritten.Count > 0 {
			out.Notes = append(out.Notes, overwritten(st.Overwritten))
		}
		return nil
	})
	return out, err
}

// TryCheckout returns the error that Checkout would return because of changes in the working copy, and these changes: Local and Kept of its
// statistics. It writes nothing; objects of in (which may be nil) are used too. A folder that is not a checkout is ignored.
func (r *Repository) TryCheckout(ctx context.Context, want project.Checkout, in project.Incoming) (out project.CheckoutStats, err error) {
	dir, err := filepath.Abs(want.Dir)
	if err != nil {
		return out, err
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git", "index")); err != nil {
		return out, nil //nolint:nilerr // not checked out by us
	}
	err = r.with(ctx, func(o *opened) error {
		rd, err := r.all.reader(o, in)
		if err != nil {
			return err
		}
		abs, err := filepath.Abs(o.dir)
		if err != nil {
			return err
		}
		st, err := checkout.Preview(ctx, checkout.Request{
			Objects: rd, Repo: abs, Commit: hashOf(want.Commit), Dir: dir, MaxFiles: r.all.MaxFiles, Now: r.all.Now, Keep: want.Keep,
		})
		out.Local, out.LocalCount, out.Kept, out.KeptCount = st.LocalChanges.First, st.LocalChanges.Count, st.Kept.First, st.Kept.Count
		return err
	})
	return out, err
}

// Refresh updates the index of the working copy dir after the deployment itself changed owners and modes: then the next Checkout, and an
// operator's git status, need not read those files again. It is called after fixperms; files whose content may have changed since Checkout
// are still compared later. A folder that is not a checkout is ignored. It changes only the index.
func (r *Repository) Refresh(ctx context.Context, dir string) error {
	if _, err := project.ParseName(string(r.name)); err != nil {
		return err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	n, err := checkout.Refresh(ctx, dir)
	r.all.Log.Debug().Str("project", string(r.name)).Str("repo", string(r.repo)).Int("files", n).Err(err).Msg("refreshed the index")
	return err
}

func overwritten(p checkout.Paths) string {
	first := p.First[:min(len(p.First), 3)]
	text := fmt.Sprintf("overwrote untracked %s: %s", humanize.Plural(p.Count, "file"), strings.Join(printable.Lines(first), ", "))
	if p.Count > len(first) {
		text += ", …"
	}
	return text
}

// maxPaths is the maximum number of paths in a Description.
const maxPaths = 20

// Describe compares two commits; old may be "".
func (r *Repository) Describe(ctx context.Context, old, new project.Commit, in project.Incoming) (project.Description, error) {
	var d project.Description
	err := r.with(ctx, func(o *opened) error {
		rd, err := r.all.reader(o, in)
		if err != nil {
			return err
		}
		facts, err := tree.Describe(rd, hashOf(new))
		if err != nil {
			return err
		}
		from := hashOf(old)
		if !from.IsZero() {
			// A commit before a rollback may be gone from the repository; then all of new counts as new.
			if ok, err := rd.Has(from); err != nil {
				return err
			} else if !ok {
				from = plumbing.ZeroHash
			}
		}
		adv, err := tree.Compare(ctx, rd, from, hashOf(new))
		if err != nil {
			return err
		}
		diff, err := tree.Diff(ctx, rd, from, hashOf(new), maxPaths)
		if err != nil {
			return err
		}
		d = project.Description{
			Subject: facts.Subject, Author: facts.Author.Name, Time: facts.Author.When,
			Commits: adv.Commits, CommitsMore: adv.More, Files: diff.Files(), Bytes: diff.Bytes, Forced: old != "" && (from.IsZero() || !adv.FastForward),
		}
		for _, p := range diff.Paths {
			d.Paths = append(d.Paths, printable.Line(p.Path))
			d.Kinds += string(rune(p.Status))
		}
		return r.describeLinks(ctx, diff.Links, &d)
	})
	return d, err
}
