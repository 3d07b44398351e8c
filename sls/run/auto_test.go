package run_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/sls/run"
)

// stand is a runner that records what it applied.
type stand struct{ applied []string }

func (*stand) Name() string { return "salt-call" }
func (s *stand) Check(_ context.Context, in *sls.Input) (*sls.Checked, error) {
	return &sls.Checked{SLS: in.SLS, Runner: s.Name()}, nil
}
func (s *stand) Apply(_ context.Context, in *sls.Input, _ sls.Sink) (*sls.StepResult, error) {
	s.applied = append(s.applied, in.SLS)
	return &sls.StepResult{SLS: in.SLS, Runner: s.Name()}, nil
}

type logs struct {
	sls.Discard
	lines []string
}

func (l *logs) Output(_ string, _ sls.Stream, line string) { l.lines = append(l.lines, line) }

// A template may call, in a branch, what only Salt has: the file goes there where there is a Salt, and is built in if there is none.
func TestAutoAsksSaltForBranches(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "app.sls"), []byte("a:\n  file.managed:\n    - name: "+dir+"/out\n    - template: jinja\n    - source: salt://t\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t"), []byte("{% if pillar.x is defined %}{{ salt['network.interfaces']() }}{% endif %}\n"), 0o644))
	in := &sls.Input{SLS: "app", Roots: fileroot.Roots{fileroot.OnDisk(dir)}, Host: host.New(execx.OS{}), Grains: py.NewDict(), Pillar: py.NewDict()}
	for runner, d := range map[string]*run.Auto{"builtin": {Builtin: &run.Builtin{}}, "salt-call": {Builtin: &run.Builtin{}, Salt: &stand{}}} {
		c, err := d.Check(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, runner, c.Runner)
		var said logs
		res, err := d.Apply(t.Context(), in, &said)
		require.NoError(t, err)
		require.Equal(t, runner, res.Runner)
	}
}

func TestAutoKeepsToWhatWasChecked(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".sls"), []byte(text), 0o644))
	}
	write("plain", "a:\n  test.nop: []\n")
	write("needs", "a:\n  lvm.pv_present: []\n")
	input := func(name string) *sls.Input {
		return &sls.Input{SLS: name, Roots: fileroot.Roots{fileroot.OnDisk(dir)}, Host: host.New(execx.OS{}), Grains: py.NewDict()}
	}
	salt := &stand{}
	d := &run.Auto{Builtin: &run.Builtin{}, Salt: salt}
	for name, runner := range map[string]string{"plain": "builtin", "needs": "salt-call"} {
		c, err := d.Check(t.Context(), input(name))
		require.NoError(t, err)
		require.Equal(t, runner, c.Runner)
	}
	// The file no longer needs Salt; the push said that it goes there.
	write("needs", "a:\n  test.nop: []\n")
	var said logs
	res, err := d.Apply(t.Context(), input("needs"), &said)
	require.NoError(t, err)
	require.Equal(t, "salt-call", res.Runner)
	require.Empty(t, said.lines)

	// The file needs Salt now: it goes there, and says so.
	write("plain", "a:\n  lvm.pv_present: []\n")
	res, err = d.Apply(t.Context(), input("plain"), &said)
	require.NoError(t, err)
	require.Equal(t, "salt-call", res.Runner)
	require.Len(t, said.lines, 1)
	require.Contains(t, said.lines[0], "state function lvm.pv_present (plain.sls:2)")
	require.Equal(t, []string{"needs", "plain"}, salt.applied)

	// Without Salt there is nowhere to go.
	d.Salt = nil
	_, err = d.Apply(t.Context(), input("plain"), &said)
	require.ErrorContains(t, err, "lvm.pv_present")
}
