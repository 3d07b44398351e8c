// Package pipeline runs deployments: the order of the procedures, the queue and
// the lock of each project, the journal, recovery, and the result.
//
// It owns the journal, which is the only truth about what a deployment did to a
// project: each change is appended, checksummed and fsynced before it happens. It owns the hidden refs below refs/corpus/ that keep
// the commits of deployments under way and of archives (see pins.go), and the
// records and event logs.
//
// It never speaks SSH or pkt-lines and never touches the machine itself: the
// procedures do. One deployment runs per project at a time; others wait in the
// queue, first come first served. The end of a session changes nothing: a
// deployment ends by itself, by its deadline, or by Cancel.
//
// A deployment, file by file: queue (its turn), deploy (what it is about, until
// accepted), execute (the archive, the publication of what was pushed, the other
// procedures), then commit or fail, both to the same end.
//
// A project in which a deployment is under way is noted (Config.Underway) before anything of it
// is written; recovery looks where notes and open records say, and a deployment that finds its
// project's journal open ends that one first.
//
// After a crash: accepted without committing is rolled back; committing retries
// the compare-and-swap; ended is final; pins without a journal are removed. A
// second recovery changes nothing.
package pipeline
