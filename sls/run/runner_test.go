package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/salt"
)

// fakeSalt stands for salt-call where only the choice is tested.
type fakeSalt struct{ checked, applied int }

func (*fakeSalt) Name() string { return "salt-call" }

func (f *fakeSalt) Check(_ context.Context, in *sls.Input) (*sls.Checked, error) {
	f.checked++
	return &sls.Checked{SLS: in.SLS, Runner: "salt-call"}, nil
}

func (f *fakeSalt) Apply(_ context.Context, in *sls.Input, _ sls.Sink) (*sls.StepResult, error) {
	f.applied++
	return &sls.StepResult{SLS: in.SLS, Runner: "salt-call"}, nil
}

func TestAutoChooses(t *testing.T) {
	plain := "a:\n  test.nop: []\n"
	needy := "a:\n  test.nop: []\nb:\n  lvm.pv_present:\n    - name: /x\n"
	typo := "a:\n  test.npo: []\n"
	for _, tt := range []struct {
		sls    string
		salt   bool
		runner string
		kind   fault.Kind
	}{
		{plain, true, "builtin", 0},
		{plain, false, "builtin", 0},
		{needy, true, "salt-call", 0},
		{needy, false, "", fault.Refused},
		{typo, true, "", fault.Failed},
		{"#!py\n", true, "salt-call", 0},
		{"#!py\n", false, "", fault.Refused},
	} {
		a, salt := &Auto{Builtin: &Builtin{}}, &fakeSalt{}
		if tt.salt {
			a.Salt = salt
		}
		in := input(t, map[string]string{"app.sls": tt.sls})
		c, err := a.Check(context.Background(), in)
		res, aerr := a.Apply(context.Background(), in, sls.Discard{})
		if tt.runner == "" {
			require.Equal(t, tt.kind, fault.KindOf(err), "%v", err)
			require.Equal(t, tt.kind, fault.KindOf(aerr), "%v", aerr)
			p, ok := fault.PosOf(err)
			require.True(t, ok)
			require.Equal(t, "app.sls", p.File)
			require.NotZero(t, p.Line)
			require.NotEmpty(t, fault.HintOf(err))
			require.Zero(t, salt.applied)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, aerr)
		require.Equal(t, tt.runner, c.Runner)
		require.Equal(t, tt.runner, res.Runner)
		if tt.runner == "salt-call" {
			require.NotEmpty(t, c.Needs)
		}
	}
}

func TestScript(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "10_x.sh")
	write := func(text string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(script, []byte(text), 0o600))
		require.NoError(t, os.Chmod(script, mode))
	}
	in := input(t, nil)
	machine := *in.Host
	machine.Environ = append(slices.Clone(machine.Environ), "CORPUS_PROJECT=app")
	in.Host = &machine
	in.Script, in.Cfg = script, py.NewDict("name", "app", "project_root", dir)

	write("#!/bin/sh\necho \"$CORPUS_PROJECT $(cat) $(pwd)\"\necho oops >&2\n", 0o700)
	c, err := Script{}.Check(context.Background(), in)
	require.NoError(t, err)
	require.Equal(t, "script", c.Runner)
	rec := &recorder{}
	res, err := Script{}.Apply(context.Background(), in, rec)
	require.NoError(t, err)
	require.True(t, res.OK())
	require.ElementsMatch(t, []string{`10_x.sh stdout app {"name": "app", "project_root": "` + dir + `"} ` + dir, "10_x.sh stderr oops"}, rec.lines)

	write("#!/bin/sh\necho why >&2\nexit 7\n", 0o700)
	res, err = Script{}.Apply(context.Background(), in, sls.Discard{})
	require.NoError(t, err)
	require.Equal(t, 7, res.Failed().Command.ExitStatus)
	require.Equal(t, "why", res.Failed().Command.StderrTail)

	write("#!/bin/sh\ntouch "+dir+"/ran\n", 0o700)
	in.Test = true
	res, err = Script{}.Apply(context.Background(), in, sls.Discard{})
	require.NoError(t, err)
	require.Equal(t, sls.WouldChange, res.States[0].Outcome)
	require.NoFileExists(t, filepath.Join(dir, "ran"))
	in.Test = false

	write("x", 0o600)
	_, err = Script{}.Check(context.Background(), in)
	require.Equal(t, fault.Failed, fault.KindOf(err))

	write("#!/bin/sh\necho up; sleep 60\n", 0o700)
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	_, err = Script{}.Apply(ctx, in, &cancelSink{cancel: func() { cancel(stop) }})
	require.ErrorIs(t, err, stop)
}

func BenchmarkFileStates(b *testing.B) {
	dir := b.TempDir()
	in := &sls.Input{SLS: "app", Cfg: py.NewDict("d", dir)}
	benchInput(b, in, "{% for i in range(1000) %}\nf{{ i }}:\n  file.managed:\n    - name: "+dir+"/f{{ i }}\n    - contents: \"{{ i }}\"\n{% endfor %}\n")
}

// What was pushed is planned although it is in git only.
func TestSaltCallSeesRootsThatAreNotOnDisk(t *testing.T) {
	bin, dir := filepath.Join(t.TempDir(), "salt-call"), t.TempDir()
	require.NoError(t, os.WriteFile(bin, []byte("#!/bin/sh\necho '{\"local\": {}}'\n"), 0o755))
	in := input(t, map[string]string{"a.sls": "x:\n  test.nop: []\n"})
	in.SLS, in.Test = "makina-projects.app.a", true
	in.Roots[0].Mount = "makina-projects/app"
	s := &salt.Call{Bin: bin, Dir: dir}
	for range 2 { // each time again
		_, err := s.Apply(context.Background(), in, sls.Discard{})
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(dir, "roots", "makina-projects", "app", "a.sls"))
		require.NoError(t, err)
		require.Equal(t, "x:\n  test.nop: []\n", string(b))
	}
	require.Error(t, s.Configure(in), "Configure itself copies nothing")
}
