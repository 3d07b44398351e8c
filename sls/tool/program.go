package tool

import (
	"context"
	"fmt"
	"os"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
)

// Program is the runner of steps that a program of the operator applies. The program is run as
//
//	PATH check|plan|apply FILE
//
// in the folder of FILE, with {"mode", "file", "cfg"} as JSON on standard input. docs/guide/tools.md has the contract.
type Program struct {
	// Group is the name of its folder, and the extension of the files that it applies.
	Group string
	// Path is the program.
	Path string
}

var _ sls.Runner = Program{}

// The exit statuses of a program with a special meaning; 0 is success and others are failures.
const (
	exitNoCheckMode = 3 // for plan: unknown before it runs
)

// Name implements Runner.
func (p Program) Name() string { return p.Group }

// Check implements Runner: the program with the argument check.
func (p Program) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	if fi, err := os.Stat(p.Path); err != nil || !fi.Mode().IsRegular() || fi.Mode()&0o111 == 0 {
		return nil, fault.New(fault.Refused, "check "+shown(in), "%s applies .%s files here, and is not an executable file", p.Path, p.Group).
			WithPos(fault.Pos{File: shown(in)}).WithHint("the operator of this server: install it, chmod +x")
	}
	there, err := exists(in)
	if err != nil {
		return nil, err
	}
	if there {
		w, end, err := begin(in)
		if err != nil {
			return nil, err
		}
		defer end()
		if err := w.check(ctx, nil, p.Path, "check", in.Script); err != nil {
			return nil, err
		}
	}
	return &sls.Checked{SLS: in.SLS, File: shown(in), Runner: p.Name()}, nil
}

// ended is the result of a program of the operator, which must report the end of each state that it reports the beginning of.
func (s *states) ended(program string, exit int, tail string) *sls.StepResult {
	if exit == 0 && s.current != "" {
		return s.end(true, fmt.Sprintf("%s ended without reporting how the state %s ended", program, s.current))
	}
	return s.end(exit != 0, fmt.Sprintf("%s ended with exit status %d\n%s", program, exit, tail))
}

// Apply implements Runner.
func (p Program) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	if err := manual(in, p.Group); err != nil {
		return nil, err
	}
	mode := "apply"
	if in.Test {
		mode = "plan"
	}
	given := in.Cfg
	if given == nil {
		given = py.NewDict()
	}
	doc, err := py.ToJSON(py.NewDict("mode", mode, "file", in.Script, "cfg", given), py.JSONOptions{Unicode: true})
	if err != nil {
		return nil, fault.New(fault.Internal, "run "+in.SLS, "cfg has no form in JSON: %w", err)
	}
	w := &work{in: in}
	s := newStates(in, sink, p.Name())
	exit, tail, err := w.run(ctx, []string{p.Path, mode, in.Script}, nil, doc+"\n", s.line)
	if err != nil {
		return s.res, err
	}
	if in.Test && exit == exitNoCheckMode {
		s.done(sls.StateResult{
			StateRef: sls.StateRef{ID: baseOf(shown(in)), Name: shown(in), Function: p.Group, SLS: in.SLS, File: shown(in)},
			Outcome:  sls.WouldChange, Changed: true, Comment: "what it changes is known when it ran",
		})
		return s.end(false, ""), nil
	}
	return s.ended(p.Path, exit, tail), nil
}
