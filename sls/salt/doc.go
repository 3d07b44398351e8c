// Package salt runs steps through Salt: by a salt-call for each (Call), or all of a deployment in one Salt process (Session,
// which a Driver opens). config.go writes Salt's configuration, ondisk.go puts the file roots on disk as Salt may see them,
// functions.go answers the functions of makina-states that templates call within Salt, results.go reads what Salt answers.
//
// A salt-call for each step spends most of its time on starting: Python, the minion, its loaders. Here Salt starts
// once. A small program (driver.py), run by Salt's own interpreter, lets Salt's own entry point read the
// configuration and make the minion, and then takes steps from a pipe. Each step runs in a fork of that minion, so
// it begins as a salt-call of its own would: no module's globals, environment, umask or cached lists of an earlier
// step are there. Answers are JSON lines on a pipe of their own; what states print goes to another.
//
// What would make a fresh salt-call differ is looked at before each step. The configuration, the pillar, the
// project's own modules and the packages of Salt's Python: where one changed, the process is replaced. Grains: where
// they changed, the step makes a minion of its own. Salt's cache of files is emptied.
//
// It owns the directory it is given (mode 0700: it holds the pillar) and the process. It never chooses what runs,
// and knows nothing of what a step means. Results are read by the same code as those of salt-call.
//
// Invariants: the process, its forks and their commands are one process group, and end as one when the context of
// Apply does. When the process dies, the step that ran is named in the error with the end of Salt's log, and the next
// step starts another process. What goes over the pipe is bounded.
//
// Concurrency: a Session runs one step at a time; others wait. Close ends it.
//
// A crash of the server ends the process: it kills its group when the pipe of requests closes during a step. The
// directory stays, for the server's next start to remove.
package salt
