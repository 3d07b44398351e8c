package pages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

// changesEvery is how often a page is checked for changes.
const changesEvery = time.Second

// changes notifies a script by server-sent events when its page is out of date: the page of one project, or of all.
func (p *Pages) changes(w http.ResponseWriter, r *http.Request) error {
	if r.PathValue("name") != "" {
		if _, _, err := p.readable(r); err != nil {
			return err
		}
	}
	ctx, stop := p.guarded(r)
	defer stop()
	before, err := p.mark(ctx, r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := newFlow(w)
	if _, err := out.Write([]byte(": follows\n\n")); err != nil {
		return nil
	}
	every := time.NewTicker(changesEvery)
	defer every.Stop()
	for idle := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		now, err := p.mark(ctx, r)
		if err != nil {
			return nil
		}
		text := "data: changed\n\n"
		if now == before {
			if idle++; idle%20 != 0 { // a comment now and then shows who went away
				continue
			}
			text = ": nothing\n\n"
		}
		before = now
		if _, err := out.Write([]byte(text)); err != nil {
			return nil
		}
	}
}

// mark returns a text that changes when deployments start or end.
func (p *Pages) mark(ctx context.Context, r *http.Request) (string, error) {
	h := sha256.New()
	var names []project.Name
	if r.PathValue("name") != "" {
		name, err := project.ParseName(r.PathValue("name"))
		if err != nil {
			return "", err
		}
		names = append(names, name)
	} else {
		rights, err := p.Access.Rights(ctx, p.reader.Identity(r))
		if err != nil {
			return "", err
		}
		all, err := p.Status.List(ctx)
		if err != nil {
			return "", err
		}
		for _, x := range all {
			if rights.Can(x.Name, project.Read) {
				names = append(names, x.Name)
			}
		}
	}
	for _, name := range names {
		if err := p.markOf(ctx, h, name, len(names) == 1); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (p *Pages) markOf(ctx context.Context, h hash.Hash, name project.Name, whole bool) error {
	q, err := p.Runs.Queue(ctx, name)
	if err != nil {
		return err
	}
	fmt.Fprint(h, name, len(q.Waiting))
	if q.Running != nil {
		fmt.Fprint(h, q.Running.ID)
	}
	if !whole {
		return nil
	}
	if q.Running != nil {
		fmt.Fprint(h, q.Running.Procedure, q.Running.Step, q.Running.Waits)
	}
	last, err := p.Runs.Find(ctx, name, "")
	if err != nil && fault.KindOf(err) != fault.Usage { // it has none
		return err
	}
	fmt.Fprint(h, last.ID, last.State)
	return nil
}
