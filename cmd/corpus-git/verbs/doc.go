// Package verbs implements the commands, once, for everybody who runs them.
//
// Run takes a caller, the arguments, and three streams. The command on the machine runs it
// in its own process when no server is running, and otherwise asks the server to, over the
// control socket; the SSH server runs it for a key. So a verb behaves alike wherever it is typed, and its rights are checked in one place, here.
//
// It owns the arguments, the tables and the exit codes; what it does is done by the rooms
// behind Backend. Invariants: a caller without a right on a project learns nothing
// about it, not even whether it exists; a refusal is in the audit log; standard output
// carries the answer and standard error the reasons; with --json standard output is one
// document (or one a line), whose schema is that of project/status.
//
// A Backend is safe for concurrent use; one Run belongs to one. A crash leaves nothing.
package verbs
