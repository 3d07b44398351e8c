package pipeline

import (
	"fmt"
	"runtime/debug"

	"corpus-git/internal/fault"
)

// recoverPanic runs f, which reads and runs files of a project, and turns a panic in it into an error of the kind Internal: the deployment fails
// or is rolled back as with any other error, and those of other projects continue. A panic outside f, in the code that decides and records, ends
// the server, whose next start recovers from the journal. Panics in goroutines that f starts are not caught.
func (dep *deployment) recoverPanic(op string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			dep.p.cfg.Logger.Error().Str("project", dep.rec.Project.String()).Str("deployment", string(dep.rec.ID)).Str("panic", dep.redact.String(fmt.Sprint(p))).
				Bytes("stack", debug.Stack()).Msg("panic")
			err = fault.New(fault.Internal, op, "panic: %v", p).WithHint("this is a bug in corpus-git: please report it with the stack trace in the server's log")
		}
	}()
	return f()
}
