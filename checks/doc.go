// Package checks checks whether a project's services work: HTTP, TCP and Unix sockets, commands, systemd units, certificates.
//
// It owns how a check is run, how often it is tried, and what is reported of a failure. It does not decide when checks run nor what
// follows, changes nothing on the machine itself (a command that a project names may), and keeps nothing: a crash leaves only a
// command that execx.Reap ends.
//
// Invariants: every attempt ends within its timeout, every check within
// project.Check.Longest; what is read of a response is limited; connections are
// new ones each time, through no proxy.
package checks
