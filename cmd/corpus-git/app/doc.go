// Package app wires the rooms together: it is the only package that imports all of them.
//
// It owns the process: reading the configuration, the lock on the state directory, the
// order in which things start and stop, signals, the ready line, and the decision whether a verb runs in this process or in the server. What a verb does
// is in package verbs, and what a room does is in the room.
//
// Invariants: one process owns a state directory (flock(2) on its lock file) from before
// the database is opened until after it is closed; each deployment that a crash left open
// is in its project's queue before the first connection is accepted, and is
// ended in the background; a server that is asked to stop first refuses new deployments, and exits when the running ones have ended or shutdown_grace has
// expired.
//
// A crash leaves a lock file, whose lock the kernel has released, a stale socket and addr.json, which the next start replaces, and whatever the
// pipeline's recovery repairs.
package app
