package vfs

import "golang.org/x/sys/unix"

// Unwritten reports whether nobody has a file open for writing, or mapped: the kernel grants a lease for reading only then (fcntl(2), "Leases"). fd is open for reading
// only. The lease ends with the descriptor; until then an open for writing waits. false is the answer also where the file system has no leases.
func Unwritten(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	return err == nil
}
