// Package remote deploys on another machine over ssh(1), with nothing installed there.
//
// It owns the connection: the machine's ssh client and its options, the copy of this program on the other machine, and the session over one
// command: requests and bundles in one direction, numbered events and results in the other. The other machine runs the same pipeline on
// itself, with its own journal, archive and rollback: a lost connection changes nothing there, and is reestablished to follow the
// deployment, which is identified by its ID.
//
// It does not decide what is deployed, reads no repository, and is never interactive: ssh refuses unknown host keys and logins that need a
// password. The agent and X11 are not forwarded. No secret is in an argument, where ps(1) would show it: settings of a deployment are in
// the bundle, on standard input.
//
// Invariants: the program's path contains its SHA-256, below the login's own cache, and is renamed there when it is complete. Host keeps
// one connection (ControlMaster of ssh_config(5)) for all its commands, and Close ends it; Hosts keeps those of nodes from one rollout to
// the next, and one session on each for a minute.
//
// A crash leaves the connection's socket in a temporary folder, at most one incomplete copy of the program beside its place, and the
// deployment there running.
package remote
