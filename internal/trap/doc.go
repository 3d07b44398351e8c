// Package trap stops a process at each system call that changes a file system, so that a test can kill it there, fail the
// call, or look at what is on the disk. It is imported by tests only.
//
// It owns a seccomp filter with a listener (seccomp(2), SECCOMP_RET_USER_NOTIF): the process puts it upon itself in Enter,
// and Start hands every trapped call to a function of the parent. It knows nothing of what the process does. Only calls of
// the process itself are told; those of the programs that it starts go on unseen.
//
// Invariants. A call is told before it happens, and the process stands still until it is answered; calls of several
// threads are told one after the other. A call interrupted by a signal is told once (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
// Linux 5.19). The filter stays until the last process that has it ends: what the process has started included.
//
// Needs no privilege: no_new_privs is set, so programs that it starts gain none by setuid.
package trap
