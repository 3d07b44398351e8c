// Package procedures holds the phases of a deployment, one file each: archive, sync, release-sync, fixperms, install, rollback, notify, and Prepare,
// which comes before all of them, builds the configuration and checks every step before anything on the machine changes.
//
// Package upkeep maintains archives between deployments. Package permissions has the rules of owners and modes and the walk that applies
// them, pillar compiles a pillar, recipe reads a commit's .salt and makes the private copy that runs.
//
// It owns changes to the machine: together with archive and sls it is the only room that changes it. It keeps no journal, moves no ref, and does not
// decide the order; the pipeline does.
//
// Invariants: every procedure can be run again after a crash at any point and ends in the same state; none follows a symbolic link out of the
// project; data/ is never written to, only its owner and modes are fixed. As an ordinary user everything works except users and ownership, and the
// summary says so.
package procedures
