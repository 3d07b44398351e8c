package rootfs

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"corpus-git/internal/vfs"
)

// clear removes a tree, and unmounts at first what is mounted below it: what a tool that was killed had mounted there must not be removed with it. It is not an error if the tree does not
// exist.
func (m Maker) clear(dir string) error {
	points, err := mountsBelow(dir)
	for i := len(points) - 1; i >= 0; i-- { // the last mounted first
		err = errors.Join(err, unix.Unmount(points[i], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW))
	}
	if err != nil {
		return err
	}
	return vfs.RemoveAll(m.FS, dir)
}

// mountsBelow returns the mount points below a folder, in the order in which they were mounted. Source: proc_pid_mountinfo(5).
func mountsBelow(dir string) (points []string, err error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		if at := unescape(f[4]); strings.HasPrefix(at, strings.TrimSuffix(dir, "/")+"/") {
			points = append(points, at)
		}
	}
	return points, err
}

// unescape reads the octal escapes of a path.
func unescape(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' && i+3 < len(path) {
			if n, err := strconv.ParseUint(path[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
