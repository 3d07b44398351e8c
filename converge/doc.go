// Package converge applies live releases again: after a boot, and at intervals.
//
// It owns the schedule of each project, the result of the last run (the state), and the guarantee that each change of state is notified
// once. The pipeline applies or compares a release: a run waits in the project's queue, and yields to everything else. This package never
// deploys, and decides nothing about a run that has begun.
//
// The database holds the state, one row for each project, and the boot during which the project was last applied.
//
// A crash during a run loses that run: the pipeline records that the server stopped in it, and a run after a boot is due again.
package converge
