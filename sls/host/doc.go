// Package host is the interface between SLS files and the machine: commands, accounts, time.
//
// It owns the small interfaces through which state functions, template functions and
// grains reach the machine, and their real implementations. It never decides anything:
// which command runs, as whom and what its failure means is the caller's.
//
// Invariants: a command that was started is ended, with its whole process group, before
// Run returns. Every field of Host is safe for use by several goroutines. Nothing here
// survives the process; a crash leaves what the commands themselves left.
package host
