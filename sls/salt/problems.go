package salt

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/sls"
	"corpus-git/sls/compile"
)

// compileError returns the error for Salt's messages about a file that it cannot compile.
func compileError(in *sls.Input, problems []string) error {
	return saltProblem(in, strings.Join(problems, "\n"))
}

var saltAt = regexp.MustCompile(`line (\d+)`)

// saltProblem returns the error for Salt's message about a file that does not compile. The excerpts of rendered
// text in it are omitted, since they can contain secrets.
func saltProblem(in *sls.Input, text string) error {
	first, _, _ := strings.Cut(text, "\n")
	if strings.Contains(text, "is running as PID") {
		return fault.New(fault.Busy, "run salt-call", "another Salt run holds the lock")
	}
	at := fault.Pos{}
	if f, err := in.Roots.SLS(in.SLS); err == nil {
		at.File = f.Display()
		if m := saltAt.FindStringSubmatch(text); m != nil {
			at.Line, _ = strconv.Atoi(m[1])
		}
	}
	err := errors.New(strings.TrimSpace(first))
	if strings.Contains(first, "is undefined") {
		err = &sls.UndefinedError{Text: strings.TrimSpace(first)}
	}
	return (&fault.Error{Op: compile.Op + " " + in.SLS, Kind: fault.Failed, Err: err}).
		WithPos(at).WithHint("this is Salt's own message; the file was given to salt-call")
}
