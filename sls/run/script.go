package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/host"
)

// Script is the runner of steps that are executables: Input.Script is run from its location, with the cfg
// as one JSON document on standard input. It runs in the project's directory.
type Script struct{}

var _ sls.Runner = Script{}

// Name implements Runner.
func (Script) Name() string { return "script" }

// Check implements Runner. A step that is not on disk yet (the tree of a pushed commit) is accepted as it
// is.
func (s Script) Check(_ context.Context, in *sls.Input) (*sls.Checked, error) {
	out := &sls.Checked{SLS: in.SLS, File: shownScript(in), Runner: s.Name(), States: 1}
	st, err := os.Stat(in.Script)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return out, nil
	case err != nil:
		return nil, fault.New(fault.Internal, "check "+in.SLS, "%w", err)
	}
	if err := executable(in, st); err != nil {
		return nil, err
	}
	missing, err := interpreter(in)
	if err != nil || missing == "" {
		return out, err
	}
	at := fault.Pos{File: shownScript(in), Line: 1}
	if in.First {
		return nil, fault.New(fault.Refused, "check "+in.SLS, "its interpreter %s is not installed on this machine", missing).
			WithPos(at).WithHint("install it, or change the first line; no step runs before this one that could install it")
	}
	out.Warnings = []sls.Warning{{At: at, Text: "its interpreter " + missing + " is not installed on this machine: something has to install it before"}}
	return out, nil
}

func shownScript(in *sls.Input) string {
	if in.ScriptFile != "" {
		return in.ScriptFile
	}
	return in.Script
}

func executable(in *sls.Input, st fs.FileInfo) error {
	if !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
		return fault.New(fault.Failed, "check "+in.SLS, "the step is not an executable file").
			WithPos(fault.Pos{File: shownScript(in)}).WithHint("chmod +x it, and commit that")
	}
	return nil
}

// Apply implements Runner. The result has one state, named after the file.
func (s Script) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	st, err := os.Stat(in.Script)
	if err != nil {
		return nil, fault.New(fault.Failed, "run "+in.SLS, "%w", err)
	}
	if err := executable(in, st); err != nil {
		return nil, err
	}
	given := in.Cfg
	if given == nil {
		given = py.NewDict()
	}
	cfg, err := py.ToJSON(given, py.JSONOptions{Unicode: true})
	if err != nil {
		return nil, fault.New(fault.Internal, "run "+in.SLS, "the cfg has no form in JSON: %w", err)
	}
	began := in.Host.Now()
	id := filepath.Base(in.Script)
	shown := shownScript(in)
	ref := sls.StateRef{ID: id, Name: shown, Function: "script.run", SLS: in.SLS, File: shown, Num: 1, Of: 1}
	sink.StateStart(ref)
	res := &sls.StepResult{SLS: in.SLS, File: shown, Runner: s.Name(), Started: began}
	state := sls.StateResult{StateRef: ref, Started: began, Outcome: sls.Succeeded, Changed: !in.Test}
	if in.Test {
		state.Outcome, state.Changed = sls.WouldChange, true
		state.Comment = "The script would have been executed"
	} else if err := in.Undo.ManualStep("executable " + shown); err != nil {
		return res, err
	} else if err := s.run(ctx, in, sink, id, cfg+"\n", &state); err != nil {
		return res, err
	}
	state.Duration = in.Host.Now().Sub(began)
	res.Duration = state.Duration
	res.States = []sls.StateResult{state}
	sink.StateDone(state)
	return res, nil
}

func (s Script) run(ctx context.Context, in *sls.Input, sink sls.Sink, id, stdin string, state *sls.StateResult) error {
	dir := filepath.Dir(in.Script)
	if v, ok := in.Cfg.GetStr("project_root"); ok {
		if p, isStr := v.(string); isStr {
			if st, err := os.Stat(p); err == nil && st.IsDir() {
				dir = p
			}
		}
	}
	tail := &execx.Tail{Max: 16 << 10}
	out := execx.NewLines(func(l string) { sink.Output(id, sls.Stdout, l) })
	serr := execx.NewLines(func(l string) {
		_, _ = tail.Write([]byte(l + "\n"))
		sink.Output(id, sls.Stderr, l)
	})
	st, err := in.Host.Exec.Run(ctx, execx.Cmd{
		Argv: []string{in.Script}, Dir: dir, Env: in.Host.Environ,
		Stdin: strings.NewReader(stdin), Stdout: out, Stderr: serr,
	})
	_, _ = out.Close(), serr.Close()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	state.Command = &sls.CommandResult{Line: shownScript(in), Dir: dir, ExitStatus: st.Exit, StderrTail: host.LastLines(tail.String(), 40)}
	switch {
	case err != nil:
		state.Outcome, state.Changed, state.Command.ExitStatus = sls.FailedState, false, -1
		state.Comment = err.Error()
		if missing, _ := interpreter(in); missing != "" {
			state.Comment = "its interpreter " + missing + " is not installed on this machine"
		}
	case st.Exit != 0:
		state.Outcome = sls.FailedState
		state.Comment = "The script failed"
	default:
		state.Comment = "The script ran"
	}
	return nil
}
