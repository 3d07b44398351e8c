package kv

import (
	"context"
	"slices"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

// leaderKey is the key that names the leader of a project.
func leaderKey(name project.Name) string { return Projects + string(name) + "/leader" }

// Leads returns the leader that was elected last, "" if there is none.
func (s *Store) Leads(ctx context.Context, name project.Name) (string, error) {
	e, _, err := s.Get(ctx, leaderKey(name))
	return e.Value, err
}

// Elect returns the leader of a project, which the key projects/NAME/leader holds: the one that it names, if that is a candidate, otherwise the first candidate. token is the revision of that
// election: greater than those of all earlier ones, and the same for the same leader. Durable on return.
func (s *Store) Elect(ctx context.Context, name project.Name, candidates []string) (leader string, token int64, err error) {
	if len(candidates) == 0 {
		return "", 0, fault.New(fault.Refused, "", "no node may lead: all are drained, or none has the roles")
	}
	key := leaderKey(name)
	for {
		e, ok, err := s.Get(ctx, key)
		if err != nil || ok && slices.Contains(candidates, e.Value) {
			return e.Value, e.Revision, err
		}
		token, err := s.Set(ctx, Put{Key: key, Value: candidates[0], If: &e.Revision, By: "election"})
		if err == nil || fault.KindOf(err) != fault.Refused {
			return candidates[0], token, err
		}
		if ctx.Err() != nil {
			return "", 0, context.Cause(ctx)
		}
	}
}
