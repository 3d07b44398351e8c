// Package converge applies live releases again: after a start of the machine, and at intervals.
//
// It owns when that is due for which project, the result of the last run (the state), and that each change of state is notified once. The
// pipeline applies or compares a release: a run waits in the project's queue, and gives way to everything else. This package never deploys,
// and decides nothing about a run that has begun.
//
// The database has the state, one row for each project, and the start of the machine in which the project was applied last.
//
// A crash in a run loses that run: the pipeline records that the server stopped in it, and a run after a start of the machine is due again.
package converge
