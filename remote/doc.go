// Package remote deploys on another machine over ssh(1), with nothing installed there.
//
// It owns the way there: the ssh client of the machine and its options, the copy of this program on the other one, and the frames that
// bundle apply --events  prints. The other machine runs the same pipeline on itself, with its own journal, archive and rollback: a connection
// that is cut off changes nothing there, and is made again to follow the deployment, which is known by its ID.
//
// It never decides what is deployed, reads no repository, and never asks anybody anything: host keys that are not known and logins that
// need a password are refused by ssh. The agent and X11 are not forwarded. No secret stands in an argument, where ps(1) would show it: what is set
// for a deployment travels in the bundle, on standard input.
//
// Invariants: the program stands at a path that names its SHA-256, below the login's own cache, and gets it when every byte is
// there. Host keeps one connection (ControlMaster of ssh_config(5)) for all its commands, and Close ends it.
//
// A crash leaves the connection's socket in a temporary folder, at most one unfinished copy of the program beside its place, and the deployment
// there going on.
package remote
