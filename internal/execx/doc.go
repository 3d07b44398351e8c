// Package execx runs commands so that none outlives its purpose.
//
// It owns the process group: every command leads a group of its own, and when
// its context ends the whole group gets SIGTERM and, after a grace, SIGKILL. It
// streams output line by line, runs as another user where we are root, and
// marks each process with the owner that started it, so that Reap can find after
// a crash what a dead server left running.
//
// It never decides what to run and logs nothing. A crash of this process
// leaves running children behind; Reap, called by recovery, ends them. What a
// step deliberately detaches into a session of its own (a daemon) is not a
// step's process any more and is left alone.
package execx
