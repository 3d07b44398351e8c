package pipeline_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/pipeline"
	"corpus-git/project"
)

// hangs is a hook, or a state's command, that reports when it has begun and never ends.
const hangs = "touch $MARK; exec sleep 600"

// begin starts a push whose hooks and commands know the file mark, and waits until one of them has made it.
func (m *machine) begin(old, new project.Commit, mark string) project.ID {
	m.t.Helper()
	id, err := m.p.Start(m.t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerPush, Repo: project.Code, Pusher: project.Pusher{Key: "marie"},
		Change: project.Change{Ref: "refs/heads/master", Old: old, New: new}}, nil)
	require.NoError(m.t, err)
	m.awaitFile(mark)
	return id
}

func (m *machine) awaitFile(mark string) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		_, err := os.Stat(mark)
		return err == nil
	}, time.Minute, time.Millisecond)
}

// What a project brings for a rollback, and for after the end, may hang: cancel ends it, in each place, and the tree that was live is.
func TestCancelEndsWhatHangsBesideARollback(t *testing.T) {
	sls := func(line string) string {
		return "own:\n  cmd.run:\n    - name: |\n        " + line + "\n"
	}
	const fails = "fail:\n  cmd.run:\n    - name: 'false'\n"
	for name, c := range map[string]struct {
		live, pushed map[string]string
		says         string
		want         project.State
	}{
		"a pre-rollback hook": {
			live:   map[string]string{".salt/hooks/pre-rollback.d/10.sh": "#!/bin/sh\n" + hangs},
			pushed: map[string]string{".salt/010.sls": fails}, says: "pre-rollback hook 10.sh", want: project.RolledBack,
		},
		"a rollback hook": {
			live:   map[string]string{".salt/hooks/rollback.d/10.sh": "#!/bin/sh\n" + hangs},
			pushed: map[string]string{".salt/010.sls": fails}, says: "rollback hook 10.sh", want: project.RolledBack,
		},
		"a rollback.sls": {
			live:   map[string]string{".salt/rollback.sls": sls(hangs)},
			pushed: map[string]string{".salt/010.sls": fails}, says: "rollback.sls failed", want: project.RolledBack,
		},
		"a notify hook": {
			pushed: map[string]string{".salt/hooks/notify.d/10.sh": "#!/bin/sh\n" + hangs}, says: "notify hook 10.sh", want: project.Live,
		},
		"a notify.sls": {
			pushed: map[string]string{".salt/notify.sls": sls(hangs)}, says: "notify.sls failed", want: project.Live,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			mark := filepath.Join(t.TempDir(), "mark")
			files := func(page string, more map[string]string) map[string]string {
				out := map[string]string{"page": page}
				for n, text := range more {
					out[n] = os.Expand(text, func(string) string { return mark })
				}
				return out
			}
			one := m.commit(project.Code, "", files("one", c.live))
			res, out := m.push(project.Code, "", one)
			require.Equal(t, project.Live, res.State, out)
			two := m.commit(project.Code, one, files("two", c.pushed))
			id := m.begin(one, two, mark)
			_, err := m.p.Cancel(t.Context(), "app", id, project.Pusher{Key: "ops"})
			require.NoError(t, err)
			res, out = m.follow(id)
			require.Equal(t, c.want, res.State, out)
			require.Contains(t, out, c.says)
			require.Contains(t, out, "stopped: the deployment was cancelled")
			want := "one"
			if c.want == project.Live {
				want = "two"
			}
			require.Equal(t, want, m.live("page"), out)
		})
	}
}

// A deployment that was cancelled, and whose rollback hangs, is cancelled again.
func TestCancelTwice(t *testing.T) {
	m := newMachine(t)
	step, hook := filepath.Join(t.TempDir(), "step"), filepath.Join(t.TempDir(), "hook")
	hung := func(mark string) string { return os.Expand(hangs, func(string) string { return mark }) }
	one := m.commit(project.Code, "", map[string]string{"page": "one", ".salt/hooks/rollback.d/10.sh": "#!/bin/sh\n" + hung(hook)})
	res, out := m.push(project.Code, "", one)
	require.Equal(t, project.Live, res.State, out)
	two := m.commit(project.Code, one, map[string]string{"page": "two", ".salt/010.sls": "own:\n  cmd.run:\n    - name: " + hung(step) + "\n"})
	id := m.begin(one, two, step)
	for _, mark := range []string{step, hook} {
		m.awaitFile(mark)
		_, err := m.p.Cancel(t.Context(), "app", id, project.Pusher{Key: "ops"})
		require.NoError(t, err)
	}
	res, out = m.follow(id)
	require.Equal(t, project.RolledBack, res.State, out)
	require.Contains(t, res.Reason, "cancelled by ops")
	require.Equal(t, "one", m.live("page"))
}

// A server that stops waits for what hangs no longer than it says.
func TestShutdownEndsWhatHangsBesideARollback(t *testing.T) {
	m := newMachine(t)
	m.patience = 10 * time.Millisecond
	m.start()
	mark := filepath.Join(t.TempDir(), "mark")
	hook := "#!/bin/sh\n" + os.Expand(hangs, func(string) string { return mark })
	one := m.commit(project.Code, "", map[string]string{"page": "one", ".salt/hooks/rollback.d/10.sh": hook})
	res, out := m.push(project.Code, "", one)
	require.Equal(t, project.Live, res.State, out)
	two := m.commit(project.Code, one, map[string]string{"page": "two", ".salt/010.sls": "own:\n  cmd.run:\n    - name: 'false'\n"})
	id := m.begin(one, two, mark)
	now, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, m.p.Shutdown(now), context.Canceled)
	res, out = m.follow(id)
	require.Equal(t, project.RolledBack, res.State, out)
	require.Equal(t, "one", m.live("page"))
	require.Equal(t, 30*time.Second, pipeline.DefaultStopTimeout, "docs/recipe.md says it")
}
