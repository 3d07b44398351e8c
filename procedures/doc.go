// Package procedures holds the phases of a deployment, one file each: archive,
// sync, release-sync, fixperms, install, rollback, notify, and what comes before
// all of them, Prepare, which builds the configuration and checks every step
// while nothing on the machine has changed.
//
// Package upkeep is what is done to archives between deployments. Which owners and modes files shall have, and the walk that
// sees to it, are package permissions'; how a pillar is compiled is package pillar's. What a commit's .salt has, and the private
// copy that runs, are package recipe's.
//
// It owns what happens to the machine: together with archive and sls this is
// the only room that changes it. It never keeps a journal, never moves a ref,
// never decides their order; the pipeline does.
//
// Invariants: every procedure can be run again after a crash at any point of it
// and ends in the same state; none follows a symbolic link out of the project;
// data/ is never written, only its owner and modes are fixed. As an ordinary
// user everything works but users and ownership, and the summary says so.
package procedures
