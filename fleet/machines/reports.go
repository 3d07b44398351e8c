package machines

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"time"

	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// seenWithin is how exact the time of a report is that says what the one before it said: a rollout contacts all nodes.
const seenWithin = time.Minute

// recorded is a report that was recorded: the SHA-256 of what it says, and its time.
type recorded struct {
	sum  [sha256.Size]byte
	seen time.Time
}

// RecordReport records a node's report, and its facts if they have changed. An unknown node is ignored. Durable on return, except for the time of a report that is the same as one within the last
// minute. An agent that does not know this hub's keys is told of them afterwards.
func (f *Fleet) RecordReport(ctx context.Context, name string, said fleet.NodeReport) error {
	if err := f.record(ctx, name, said); err != nil {
		return err
	}
	f.tellLater(name, said.HubKeys)
	return nil
}

// record is RecordReport without the latter.
func (f *Fleet) record(ctx context.Context, name string, said fleet.NodeReport) error {
	timeless := said
	timeless.Seen = time.Time{}
	text, err := json.Marshal(timeless)
	if err != nil {
		return err
	}
	own := recorded{sha256.Sum256(text), said.Seen}
	f.reports.Lock()
	old, known := f.recorded[name]
	f.reports.Unlock()
	same := known && old.sum == own.sum
	if same && said.Seen.Sub(old.seen).Abs() < seenWithin {
		return nil
	}
	if err := f.Store.RecordReport(ctx, name, said); err != nil {
		return err
	}
	f.reports.Lock()
	defer f.reports.Unlock()
	if _, still := f.recorded[name]; same && still { // not removed meanwhile: it has these facts
		f.recorded[name] = own
		return nil
	}
	if _, err := f.Get(ctx, name); fault.KindOf(err) == fault.Refused {
		return nil
	} else if err != nil {
		return err
	}
	if f.Facts != nil {
		if err := f.Facts(ctx, name, said.Facts); err != nil {
			return err
		}
	}
	if f.recorded == nil {
		f.recorded = map[string]recorded{}
	}
	f.recorded[name] = own
	return nil
}

// Remove removes a node with its facts, as fleet.Store.Remove does. A node of a rollout that runs is fault.Refused: it could neither be finished nor rolled back. After a crash the facts may be gone and the node still there; its next report sets them again.
func (f *Fleet) Remove(ctx context.Context, name string) error {
	if of := f.deployedBy(name); of != "" {
		return fault.New(fault.Refused, "node remove", "%s belongs to a rollout of %s that is running", name, of).WithHint("wait for its end, or cancel it:  corpus-git rollout cancel %s", of)
	}
	f.reports.Lock()
	defer f.reports.Unlock()
	err := f.Removable(ctx, name)
	if err != nil {
		return err
	}
	delete(f.recorded, name)
	if f.Facts != nil {
		if err := f.Facts(ctx, name, nil); err != nil {
			return err
		}
	}
	return f.Store.Remove(ctx, name)
}

// deployedBy returns a project of which a rollout that runs includes a node, "" for none.
func (f *Fleet) deployedBy(node string) project.Name {
	f.mu.Lock()
	active := maps.Clone(f.active)
	f.mu.Unlock()
	for of, r := range active { // a rollout that begins is locked while it elects a leader
		if r.Needs(node) {
			return of
		}
	}
	return ""
}
