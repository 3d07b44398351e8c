package changes

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/pipeline"
	"corpus-git/project"
	"corpus-git/receive"
	"corpus-git/receive/session"
)

// writer makes changes; each calls at.
type writer struct {
	verbs.Runs
	verbs.Access
	pipeline.Repository
	at func()
}

func (w writer) Start(context.Context, project.Deployment, project.Incoming) (project.ID, error) {
	w.at()
	return "id", nil
}

func (w writer) Grant(context.Context, access.Identity, project.Name, string, project.Right) error {
	w.at()
	return nil
}

func (w writer) CompareAndSwap(context.Context, project.Change) error {
	w.at()
	return nil
}

type creations struct {
	receive.Projects
	at func()
}

func (c creations) Create(context.Context, access.Identity, project.Name) error {
	c.at()
	return nil
}

type pushes struct {
	session.Deployer
	writer
}

func (p pushes) Start(ctx context.Context, d project.Deployment, in project.Incoming) (project.ID, error) {
	return p.writer.Start(ctx, d, in)
}

// No other writer can make a change between the check of a request and its change, and none of them is made without the lock.
func TestCheckAndChangeAreOneStep(t *testing.T) {
	var g Gate
	made := 0
	shared := writer{at: func() {
		require.False(t, g.mu.TryLock(), "a change without the lock")
		require.True(t, g.mu.TryRLock(), "changes without a condition do not exclude each other")
		g.mu.RUnlock()
		made++
	}}
	ctx := t.Context()
	others := map[string]func(){
		"a verb": func() { _, _ = g.Backend(&verbs.Backend{Runs: shared}, nil).Runs.Start(ctx, project.Deployment{}, nil) },
		"another verb": func() {
			_ = g.Backend(&verbs.Backend{Access: shared}, nil).Access.Grant(ctx, access.Identity{}, "app", "marie", project.Read)
		},
		"a push":        func() { _, _ = g.Deployer(pushes{writer: shared}).Start(ctx, project.Deployment{}, nil) },
		"a new project": func() { _ = g.Lookup(creations{at: shared.at}).Create(ctx, access.Identity{}, "app") },
		"a branch":      func() { _ = g.Repository(shared).CompareAndSwap(ctx, project.Change{}) },
	}
	for name, change := range others {
		before := made
		change()
		require.Equal(t, before+1, made, name)
	}
	alone := func() { require.False(t, g.mu.TryRLock(), "another writer could make a change") }
	checks, order := 0, []string{}
	b := g.Backend(&verbs.Backend{Runs: writer{at: func() {
		if len(order) == 1 {
			alone()
		}
		order = append(order, "change")
	}}}, func() error {
		alone()
		checks++
		order = append(order, "check")
		return nil
	})
	for range 2 {
		_, err := b.Runs.Start(ctx, project.Deployment{}, nil)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"check", "change", "change"}, order, "what the request itself changed is not compared")
	require.True(t, g.mu.TryLock(), "the lock is free again")
	g.mu.Unlock()

	other := errors.New("it is another one now")
	_, err := g.Backend(&verbs.Backend{Runs: writer{at: func() { t.Error("a change after a failed check") }}}, func() error { return other }).Runs.Start(ctx, project.Deployment{}, nil)
	require.ErrorIs(t, err, other)
}
