// Package pipeline runs deployments: the order of the procedures, the queue and
// the lock of each project, the journal, recovery, and the result.
//
// It owns the journal, which is the only authority on what a deployment did to a project: each change is appended, with a checksum, and
// fsynced before it happens. It owns the hidden refs below refs/corpus/ that pin the commits of running deployments and of archives (see
// pins.go), and the records and event logs.
//
// It never speaks SSH or pkt-lines and never changes the machine itself: the procedures do. One deployment runs per project at a time;
// others wait in the queue, in order of arrival. A deployment does not depend on its session: it ends by itself, by its deadline, or by
// Cancel.
//
// The stages of a deployment by file: queue (its turn), deploy (reading and checking, until accepted), execute (the archive, publishing
// what was pushed, the other procedures), then commit or fail, which both finish in the same way.
//
// A project in which a deployment runs is recorded (Config.Underway) before it writes anything; recovery examines projects with such notes
// and open records, and a deployment that finds its project's journal open ends the open deployment first.
//
// After a crash: a deployment that was accepted and not yet committing is rolled back, or, if it waited for signals and nothing has changed
// since, continued; one that was committing, or ready and one of its refs has moved, retries the compare-and-swap; one that ended is final; pins without a journal are removed.
// A second recovery changes nothing.
package pipeline
