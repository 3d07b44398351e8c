package session

import (
	"context"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/store"
	"corpus-git/git/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// ingest reads the pack into a quarantine.
func (c *conversation) ingest(ctx context.Context) error {
	q, err := c.DB.NewQuarantine(c.ID)
	if err != nil {
		return err
	}
	var ended func()
	if c.Hold != nil {
		ended = c.Hold()
	}
	c.in = NewIncoming(c.DB, q, ended)
	_, err = q.Ingest(ctx, c.body, store.IngestOptions{Limits: c.PackLimits, Unpack: c.Limits.Unpack})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fault.New(fault.Refused, "", "the client ended the transfer: the pack is incomplete").WithHint("push again, unless you cancelled it; the connection was lost")
	}
	if err == nil {
		c.body = nil // nothing more is received, and a deployment may take long: the buffer is most of a session's memory
	}
	return err
}

// connect checks that the new values of refs exist completely and have the right type. All at once; one by one only to find out which one
// fails.
func (c *conversation) connect(ctx context.Context) error {
	var tips []*Item
	for _, i := range c.todo() {
		if i.New == "" || i.Role == Rollback {
			continue
		}
		if err := c.checkType(i); err != nil {
			i.refuse(Classify(err))
			continue
		}
		tips = append(tips, i)
	}
	list, _, err := c.Refs.ListReadable("refs/")
	if err != nil {
		c.setAll(err)
		return nil
	}
	have := make([]plumbing.Hash, 0, len(list))
	for _, r := range list {
		have = append(have, r.Hash)
	}
	check := func(items []*Item) error {
		news := make([]plumbing.Hash, len(items))
		for n, i := range items {
			news[n] = hash(i.New)
		}
		return c.in.q.Connected(ctx, store.Connect{Tips: news, Refs: have, Shallow: c.req.Shallow})
	}
	if len(tips) == 0 {
		return nil
	}
	all := check(tips)
	if all == nil {
		return c.fits(ctx)
	}
	for _, i := range tips {
		err := all
		if len(tips) > 1 {
			err = check([]*Item{i})
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			i.refuse(Classify(err))
			var s *store.ShallowError
			if errors.As(err, &s) {
				i.reason = "shallow update not allowed"
			}
		}
	}
	return c.fits(ctx)
}

// fits refuses a commit whose files could not be checked out, before anything is stopped for it.
func (c *conversation) fits(ctx context.Context) error {
	i := c.deploy
	if i == nil || i.Err != nil || i.Role == Rollback {
		return nil
	}
	live := plumbing.ZeroHash
	if c.Policy.Deployed != "" {
		var err error
		if live, err = c.Refs.Get(c.Policy.Deployed); err != nil {
			i.refuse(Classify(err))
			return nil
		}
	}
	if err := tree.Fits(ctx, c.in.Reader(), live, hash(i.New), c.Limits.WithDefaults().Files); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if fault.KindOf(err) == fault.Refused && fault.HintOf(err) == "" {
			err = refused("%w", err).WithHint("it cannot be written to a file system: rewrite the commit that added it (git rebase), then push again")
		}
		i.refuse(Classify(err))
	}
	return nil
}

// checkType demands a commit for a branch, and for what deploys a commit or a tag of one, which is followed.
func (c *conversation) checkType(i *Item) error {
	r := c.in.Reader()
	h, t, err := object.Peel(r, hash(i.New))
	if errors.Is(err, store.ErrNotFound) {
		return refused("%s: the push does not contain %s", printable.Line(i.Ref), i.New.Short()).WithHint("check with  git fsck  whether your clone is complete")
	}
	if err != nil {
		return err
	}
	_, branch := i.Branch()
	if !branch && !i.Role.Deploys() {
		return nil
	}
	if t != plumbing.CommitObject || branch && h != hash(i.New) {
		err := refused("%s: %s is not a commit, but a %s", printable.Line(i.Ref), i.New.Short(), t)
		if t == plumbing.CommitObject {
			err = refused("%s: %s is a tag, not a commit", printable.Line(i.Ref), i.New.Short())
		}
		return err.WithHint("push the commit that the tag points to:  git push %s %s", c.Policy.Remote, printable.Word("TAG^{commit}:"+i.Ref))
	}
	if h != hash(i.New) {
		i.tag = i.New
	}
	i.New = project.Commit(h.String())
	return nil
}
