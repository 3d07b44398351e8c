package trap

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// variable tells Enter which descriptor leads to the parent, and whether calls that only read are trapped.
const variable = "CORPUS_GIT_TRAP"

// Enter traps this process, if it was started by Start, and returns when the parent listens. Call it first in main; without Start it does
// nothing. The trap can't be removed.
func Enter() error {
	v := os.Getenv(variable)
	if v == "" {
		return nil
	}
	if err := os.Unsetenv(variable); err != nil {
		return err
	}
	number, reads := strings.CutSuffix(v, "r")
	sock, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%s=%q: %w", variable, v, err)
	}
	listener, err := install(filter(reads))
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	// From here on nothing is opened or written: nobody responds yet. sendmsg is not trapped.
	err = unix.Sendmsg(sock, []byte{1}, unix.UnixRights(listener), nil, 0)
	var ack [1]byte
	if err == nil {
		_, _, err = unix.Recvfrom(sock, ack[:], 0)
	}
	return errors.Join(err, unix.Close(listener), unix.Close(sock))
}

// install puts a filter on all threads. The listener is for another process: this one must not touch it.
func install(prog []unix.SockFilter) (listener int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	n, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(prog)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// Offsets in struct seccomp_data of linux/seccomp.h; the low half of an argument on a little-endian machine.
const (
	dataNumber, dataArch, dataArg1, dataArg2 = 0, 4, 24, 32
)

// filter returns the program that the kernel runs at each system call: classic BPF, see seccomp(2).
func filter(reads bool) []unix.SockFilter {
	op := func(code uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k}
	}
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equals = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		anyBit = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret    = unix.BPF_RET | unix.BPF_K
	)
	allow, tell := op(ret, unix.SECCOMP_RET_ALLOW, 0, 0), op(ret, unix.SECCOMP_RET_USER_NOTIF, 0, 0)
	out := []unix.SockFilter{op(load, dataArch, 0, 0), op(equals, auditArch, 1, 0), allow, op(load, dataNumber, 0, 0)}
	all := kinds()
	for _, n := range slices.Sorted(maps.Keys(all)) {
		k := all[n]
		switch {
		case k.reads && !reads:
		case n == unix.SYS_OPENAT && !reads:
			out = append(out, op(equals, n, 0, 4), op(load, dataArg2, 0, 0), op(anyBit, writing, 0, 1), tell, allow)
		case n == unix.SYS_IOCTL:
			out = append(out, op(equals, n, 0, 4), op(load, dataArg1, 0, 0), op(equals, frFICLONE, 0, 1), tell, allow)
		default:
			out = append(out, op(equals, n, 0, 1), tell)
		}
	}
	return append(out, allow)
}
