// Package execx runs commands so that none outlives its purpose.
//
// It owns the session: every command leads one of its own, without a terminal,
// and when its context ends its group gets SIGTERM and, after a grace, the whole
// session SIGKILL. It streams output line by line, runs as another user where we
// are root, and notes each command in a folder while it runs, so that Reap can
// find after a crash what a dead server left running.
//
// It never decides what to run and logs nothing. A crash of this process ends
// the leaders of running commands and may leave what they started; Reap, called
// by recovery, ends that. What a step deliberately detaches into a session of its
// own (a daemon), and what a command left running that has ended, is not a step's
// process any more and is left alone.
package execx
