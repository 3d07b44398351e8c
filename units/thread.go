package units

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// setgroups sets the supplementary groups of this thread only: unix.Setgroups sets those of all threads.
func setgroups(groups []uint32) error {
	var p unsafe.Pointer
	if len(groups) > 0 {
		p = unsafe.Pointer(&groups[0])
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(p), 0); e != 0 {
		return e
	}
	return nil
}
