package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"corpus-git/git/tree"
	"corpus-git/internal/audit"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// run deploys and follows the deployment. An error means that the client has disconnected.
func (c *conversation) run(ctx context.Context) error {
	i := c.deploy
	d, err := c.deployment(ctx, i)
	if err != nil {
		i.Err = Classify(err)
		c.failed(i)
		c.verdict()
		return nil
	}
	if err := c.setHead(i); err != nil {
		i.Err = Classify(err)
		c.failed(i)
		c.verdict()
		return nil
	}
	var in project.Incoming
	if c.in != nil && d.Change.New != "" {
		c.in.hand(true)
		in = c.in
	}
	id, err := c.Deployer.Start(ctx, d, in)
	if err != nil {
		if in != nil {
			c.in.hand(false)
		}
		i.Err = Classify(err)
		c.failed(i)
		c.verdict()
		return nil
	}
	if err := c.follow(ctx, c.wire, id, c.show); err != nil && ctx.Err() == nil {
		c.Log.Warn().Err(err).Str("push", c.ID).Str("deployment", string(id)).Msg("following ended early")
	}
	res, err := c.Deployer.Wait(ctx, id)
	if err != nil {
		c.Log.Info().Str("push", c.ID).Str("deployment", string(id)).Msg("the client disconnected, the deployment continues")
		return err
	}
	if !res.Good() {
		kind := fault.Failed
		if res.State == project.Refused {
			kind = fault.Refused
		}
		i.reason = Reason(res)
		i.Err = fault.New(kind, "", "%s", i.reason)
	}
	return nil
}

// setHead points HEAD to the branch of a first push while neither exists: the checkout of that deployment takes the name of its branch from
// HEAD. That has no other effect yet: HEAD's branch deploys once it exists.
func (c *conversation) setHead(i *Item) error {
	ref := i.branch
	if i.Role == Deploy {
		ref = i.Ref
	}
	if ref == "" || c.Policy.Deployed != "" {
		return nil
	}
	head, err := c.Refs.Head()
	if err != nil || head == ref {
		return err
	}
	if h, err := c.Refs.Get(head); head != "" && (err != nil || !h.IsZero()) {
		return err // another first push went live meanwhile; the Deployer refuses this one
	}
	return c.Refs.SetHead(ref)
}

// verdict prints the last line about a deployment that did not start.
func (c *conversation) verdict() {
	c.show.showEvents(c.wire, event.Event{Kind: event.Verdict, Status: event.Bad, Text: "refused: nothing was changed"})
}

// deployment returns the deployment that the deploying item requests.
func (c *conversation) deployment(ctx context.Context, i *Item) (project.Deployment, error) {
	d := project.Deployment{Project: c.Policy.Project, Pusher: c.Pusher, Repo: c.Policy.Repo, Select: c.opts.Select, Set: c.opts.Set, AllowEmpty: c.opts.AllowEmpty, AllowMissing: c.opts.AllowMissing, Overwrite: c.opts.Force, Resume: c.opts.Resume, Signatures: c.signs, Tag: i.tag}
	change := func(old project.Commit, ref string) error {
		d.Change = project.Change{Ref: ref, Old: old, New: i.New}
		if c.Policy.Repo == project.PillarRepo {
			d.Pillar = i.New
		} else {
			d.Code = i.New
		}
		if old != "" {
			a, err := tree.Compare(ctx, c.in.Reader(), hash(old), hash(i.New))
			d.Forced = !a.FastForward
			return err
		}
		return nil
	}
	now := func() (project.Commit, error) {
		if c.Policy.Deployed == "" {
			return "", nil
		}
		h, err := c.Refs.Get(c.Policy.Deployed)
		if err != nil || h.IsZero() {
			return "", err
		}
		return project.Commit(h.String()), nil
	}
	switch i.Role {
	case Deploy:
		d.Trigger = project.TriggerPush
		return d, change(i.Old, i.Ref)
	case Rollback:
		d.Trigger = project.TriggerRollback
		prefix := strings.TrimPrefix(i.Ref, "refs/rollback/")
		if prefix == "last" {
			return d, nil
		}
		if c.Find == nil {
			d.Restore = project.ID(prefix)
			return d, nil
		}
		id, err := c.Find(ctx, c.Policy.Project, prefix)
		d.Restore = id
		return d, err
	}
	live, err := now()
	if err != nil {
		return d, err
	}
	ref := cmp.Or(c.Policy.Deployed, i.branch, master)
	switch {
	case i.Role == Plan:
		d.Trigger = project.TriggerPlan
		if live != i.New {
			err = change(live, ref)
		}
	case live == i.New:
		d.Trigger = project.TriggerRedeploy
	default:
		d.Trigger = project.TriggerPush
		err = change(live, ref)
	}
	return d, err
}

// apply stores and deletes the refs that do not deploy, after a successful deployment.
func (c *conversation) apply(ctx context.Context) {
	rest := c.rest()
	if len(rest) == 0 {
		return
	}
	if c.deploy != nil && c.deploy.Err != nil {
		for _, i := range rest {
			i.Err = refused("not stored, because %s was rejected", short(c.deploy.Ref))
		}
		return
	}
	if c.in != nil {
		if err := c.in.Migrate(ctx); err != nil {
			for _, i := range rest {
				i.Err = Classify(err)
			}
			c.failed(rest[0])
			return
		}
	}
	changes, moved, gone := changesOf(rest)
	var absent []string
	for _, i := range gone {
		absent = append(absent, printable.Line(i.Ref)+" is")
	}
	c.notes(absent, "ref", "refs", "not there: nothing to delete")
	var err error
	if c.held != nil {
		err, c.held = c.held.Commit(), nil
	} else {
		err = c.Refs.Update(changes)
	}
	if err != nil && len(changes) > 1 && !c.req.Caps.Has("atomic") {
		for n, i := range moved {
			if i.Err = Classify(c.Refs.Update(changes[n : n+1])); i.Err != nil {
				c.failed(i)
			}
		}
		err = nil
	}
	if err != nil {
		for _, i := range moved {
			i.Err = Classify(err)
		}
		c.failed(moved[0])
	}
	var done []audit.Entry
	var stored []string
	for _, i := range moved {
		if i.Err != nil || i.Old == i.New {
			continue
		}
		done = append(done, c.entry("push", auditTarget(i.Change, c.Policy.Repo), "", nil))
		if name, ok := i.Branch(); ok && i.Role == Store {
			stored = append(stored, printable.Line(name)+" is")
		}
	}
	if c.deploy != nil && len(done) < len(moved) && !c.settled(moved) {
		c.show.showEvents(c.wire, event.Event{Kind: event.Note, Text: fmt.Sprintf("%s was deployed and remains live; the refs rejected above were not stored", short(c.deploy.Ref))})
	}
	text := "stored, not deployed"
	if c.Policy.Deployed != "" {
		text += fmt.Sprintf(": %s deploys", short(c.Policy.Deployed))
	}
	c.notes(stored, "branch", "branches", text)
	if len(done) > 0 && c.Audit != nil {
		c.Audit(done...)
	}
}

// settled reports whether all items succeeded.
func (c *conversation) settled(items []*Item) bool {
	return !slices.ContainsFunc(items, func(i *Item) bool { return i.Err != nil })
}

// notes reports a few items one by one, "x is", and of many only the number.
func (c *conversation) notes(each []string, one, many, text string) {
	if n := len(each); n > maxExplained {
		each = []string{humanize.Plural(n, one, many) + " are"}
	}
	for _, x := range each {
		c.show.showEvents(c.wire, event.Event{Kind: event.Note, Text: x + " " + text})
	}
}
