// Package execx runs commands, and ends all of their processes.
//
// It owns the session: every command leads its own, without a terminal, and when its context ends, its group gets SIGTERM and, after
// a grace period, the whole session SIGKILL. It streams output line by line, runs as another user if we are root, and records each
// command in a folder while it runs, so that Reap can find after a crash what a dead server left running.
//
// It does not decide what to run and logs nothing. A crash of this process ends the leaders of running commands and may leave their
// children; Reap, called by recovery, ends those. Processes that detached into their own session (daemons), and those left by a
// command that has ended, do not belong to the step any more and are not ended.
package execx
