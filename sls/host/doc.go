// Package host is the interface between SLS files and the machine: commands, accounts, time.
//
// It owns the small interfaces through which state functions, template functions and grains access the machine, and their real
// implementations. The caller decides which command runs, as which user, and what its failure means.
//
// Invariants: when Run returns, the whole process group of the command has ended. Every field of Host is safe for concurrent use. Nothing
// here outlives the process; a crash leaves the effects of the commands.
package host
