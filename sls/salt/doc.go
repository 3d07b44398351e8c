// Package salt runs steps through Salt: with one salt-call for each (Call), or all steps of a deployment in one Salt process
// (Session, which a Driver opens). config.go writes Salt's configuration, ondisk.go writes the file roots to disk as Salt
// may see them, functions.go answers the functions of makina-states that templates call within Salt, results.go reads Salt's
// answers.
//
// A separate salt-call for each step spends most of its time starting up: Python, the minion, its loaders. Here Salt starts
// once. A small program (driver.py), run by Salt's own interpreter, lets Salt's own entry point read the configuration and
// create the minion, and then reads steps from a pipe. Each step runs in a fork of that minion, so it begins in the same
// state as in a separate salt-call: no module globals, environment, umask or cached lists of an earlier step remain. Answers
// are JSON lines on a separate pipe; the output of states goes to another.
//
// Everything that would make a fresh salt-call differ is checked before each step. If the configuration, the pillar, the
// project's own modules or the packages of Salt's Python have changed, the process is replaced. If grains have changed, the
// step creates its own minion. Salt's cache of files is emptied.
//
// It owns the directory that it is given (mode 0700, since it contains the pillar) and the process. It never chooses what
// runs, and does not know what a step means. Results are read by the same code as those of salt-call.
//
// Invariants: the process, its forks and their commands are one process group, and are ended together when the context of
// Apply ends. If the process dies, the error names the step that was running and contains the end of Salt's log, and the
// next step starts another process. The amount of data on the pipe is limited.
//
// Concurrency: a Session runs one step at a time; others wait. Close ends it.
//
// A crash of the server ends the process: it kills its group when the pipe of requests closes during a step. The
// directory remains until the server's next start removes it.
package salt
