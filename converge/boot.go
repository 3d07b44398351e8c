package converge

import (
	"bytes"
	"io/fs"
	"strings"
)

// BootOf returns a text that differs after each start of the machine or of the container that this process is in; "" if it is unknown. proc is the folder
// /proc. The kernel's boot ID is the host's in a container, which is therefore told apart by the start of its first process, in clock ticks since the host's.
//
// Source: proc_sys_kernel(5), random/boot_id; proc_pid_stat(5), starttime.
func BootOf(proc fs.FS) string {
	id, err := fs.ReadFile(proc, "sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	boot := strings.TrimSpace(string(id))
	stat, err := fs.ReadFile(proc, "1/stat")
	if err != nil {
		return boot // hidden by the mount option hidepid
	}
	const afterName = 19                                            // starttime is the 22nd field, the 20th after the name
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name may contain spaces and parentheses
	if len(fields) <= afterName {
		return boot
	}
	return boot + "/" + string(fields[afterName])
}

// sameBoot reports whether a recorded boot is the present one. Records of earlier releases have the kernel's ID only.
func sameBoot(recorded, now string) bool {
	id, _, _ := strings.Cut(now, "/")
	return recorded == now || recorded == id
}
