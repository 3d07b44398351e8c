// Package checks asks what a project serves whether it works: HTTP, TCP and Unix
// sockets, commands, systemd units, certificates.
//
// It owns how one check is asked, how often, and what is told of an answer that
// is not good. It never decides when checks run nor what follows, changes
// nothing on the machine itself (a command that a project names may), and keeps
// nothing: a crash leaves nothing behind but a command that execx.Reap ends.
//
// Invariants: every attempt ends within its timeout, every check within
// project.Check.Longest; what is read of an answer is bounded; connections are
// new ones each time, through no proxy.
package checks
