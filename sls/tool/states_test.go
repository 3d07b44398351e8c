package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/sls"
	"corpus-git/sls/host"
)

func input(t *testing.T, test bool) *sls.Input {
	t.Helper()
	return &sls.Input{
		SLS: "makina-projects.app.030_x", Script: "/private/recipe/030_x.pp", ScriptFile: ".salt/030_x.pp", Test: test,
		Host: &host.Host{Now: time.Now, Environ: []string{"PATH=" + t.TempDir()}},
	}
}

// The report is one that Puppet 7.23 wrote: a file that was made, a command that failed, a file that requires it.
func TestReportOfPuppet(t *testing.T) {
	text, err := os.ReadFile("testdata/failed.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "report.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "RECIPE", "/private/recipe")), 0o600))
	s := newStates(input(t, false), sls.Discard{}, "puppet")
	require.NoError(t, s.report(file))
	res := s.end(true, "exit status 6")
	require.Len(t, res.States, 4)
	made, failed, never, notify := res.States[0], res.States[1], res.States[2], res.States[3]

	require.Equal(t, "File[/outside/pout]", made.ID)
	require.Equal(t, "file", made.Function)
	require.Equal(t, ".salt/030_x.pp", made.File)
	require.Equal(t, 1, made.Line)
	require.True(t, made.Changed)

	require.Equal(t, sls.FailedState, failed.Outcome)
	require.Equal(t, 2, failed.Line)
	require.Contains(t, failed.Comment, "returned 3 instead of one of [0]")
	require.Equal(t, "Exec[fails]", res.Failed().ID)

	require.Equal(t, sls.FailedState, never.Outcome)
	require.True(t, never.Skipped, "it did not run, and is not what failed")
	require.Equal(t, "Notify[hi]", notify.ID)
}

func TestLinesOfPrograms(t *testing.T) {
	for _, c := range []struct {
		name, line string
		test       bool
		outcome    sls.Outcome
		changed    bool
		skipped    bool
		comment    string
	}{
		{name: "ok", line: `{"state": "a", "status": "ok"}`, outcome: sls.Succeeded},
		{name: "changed", line: `{"state": "a", "status": "changed"}`, outcome: sls.Succeeded, changed: true},
		{name: "would change", line: `{"state": "a", "status": "changed"}`, test: true, outcome: sls.WouldChange, changed: true},
		{name: "skipped", line: `{"state": "a", "status": "skipped"}`, outcome: sls.Succeeded, skipped: true},
		{name: "blocked", line: `{"state": "a", "status": "blocked"}`, outcome: sls.FailedState, skipped: true},
		{name: "failed", line: `{"state": "a", "status": "failed", "exit": 3, "comment": "c", "stderr": "e"}`, outcome: sls.FailedState, comment: "exit status 3\nc\ne"},
		{name: "unknown", line: `{"state": "a", "status": "fine"}`, outcome: sls.FailedState, comment: `"fine" is not a status of a state`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStates(input(t, c.test), sls.Discard{}, "lines")
			s.line(sls.Stdout, c.line)
			require.Len(t, s.res.States, 1)
			got := s.res.States[0]
			require.Equal(t, []any{c.outcome, c.changed, c.skipped, c.comment}, []any{got.Outcome, got.Changed, got.Skipped, got.Comment})
		})
	}
	s := newStates(input(t, false), sls.Discard{}, "lines")
	for _, l := range []string{"text", "{", `{"status": "failed"}`, `{"state": 1}`, `["state"]`} {
		s.line(sls.Stdout, l)
	}
	s.line(sls.Stderr, `{"state": "a", "status": "failed"}`)
	require.Empty(t, s.res.States, "these are output")
}

// A state whose end is missing must not pass for one that had nothing to do.
func TestStateWithoutAnEnd(t *testing.T) {
	s := newStates(input(t, false), sls.Discard{}, "lines")
	s.line(sls.Stdout, `{"state": "a", "begins": true}`)
	s.line(sls.Stdout, `{"state": "a", "status": "ok"}`)
	s.line(sls.Stdout, `{"state": "b", "begins": true}`)
	res := s.ended("run", 0, "")
	require.Len(t, res.States, 2)
	require.Equal(t, "run ended without reporting how the state b ended", res.Failed().Comment)

	s = newStates(input(t, false), sls.Discard{}, "lines")
	s.line(sls.Stdout, `{"state": "a", "begins": true}`)
	s.line(sls.Stdout, `{"state": "a", "status": "ok"}`)
	require.True(t, s.ended("run", 0, "").OK())
}

// A tool that fails and reports nothing must not pass for one that had nothing to do.
func TestFailureWithoutStates(t *testing.T) {
	s := newStates(input(t, false), sls.Discard{}, "lines")
	s.line(sls.Stdout, `{"state": "a", "status": "ok"}`)
	res := s.end(true, "it ended with exit status 7")
	require.False(t, res.OK())
	require.Equal(t, "030_x.pp", res.Failed().ID)
	require.Equal(t, "it ended with exit status 7", res.Failed().Comment)
}

func TestMissingToolsAreRefused(t *testing.T) {
	for _, r := range []sls.Runner{Ansible{}, Puppet{}, Program{Group: "lines", Path: filepath.Join(t.TempDir(), "run")}} {
		_, err := r.Check(t.Context(), input(t, false))
		require.Equal(t, fault.Refused, fault.KindOf(err), r.Name())
		require.NotEmpty(t, fault.HintOf(err))
		at, ok := fault.PosOf(err)
		require.True(t, ok)
		require.Equal(t, ".salt/030_x.pp", at.File)
	}
}
