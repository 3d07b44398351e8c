// Package trap stops a process at each system call that changes a file system, so that a test can kill it there, fail the
// call, or inspect the disk. It is imported only by tests.
//
// It owns a seccomp filter with a listener (seccomp(2), SECCOMP_RET_USER_NOTIF): the process installs it in Enter, and Start passes every
// trapped call to a function of the parent. It knows nothing of what the process does. Only calls of the process itself are reported, not
// those of programs that it starts.
//
// Invariants: a call is reported before it happens, and the process waits for the answer; calls of several threads are reported one after
// the other. A call interrupted by a signal is reported once (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, Linux 5.19). The filter stays until
// the last process that has it ends, including those that the process has started.
//
// It needs no privilege: no_new_privs is set, so programs that it starts gain none by setuid.
package trap
