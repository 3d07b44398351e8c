package execx

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Marker is the environment variable that ties a process to the owner that started it (the state directory of a
// server: one server owns it at a time) and to the session that it was started in.
func Marker(owner string) string {
	sid, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	return fmt.Sprintf("%s%s:%d", markerKey, owner, int(sid))
}

const markerKey = "CORPUS_PROCESS="

// Reap ends, with SIGKILL, every process that a dead owner started and that is still in the session it was started
// in. It returns how many it found, when none of them runs any more: one that is killed while it starts another leaves
// that one, so it looks again until a look finds nothing. Processes that went into a session of their own are daemons,
// and stay. proc is where proc(5) is mounted. The caller must be the owner now.
func Reap(proc, owner string) (int, error) {
	seen := map[int]bool{}
	for try := 0; ; try++ {
		n, err := reapOnce(proc, owner, seen)
		if err != nil || n == 0 {
			return len(seen), err
		}
		if try == reapTries {
			return len(seen), fmt.Errorf("%d processes do not end", n)
		}
		time.Sleep(reapPause)
	}
}

// A killed process that waits for a disk can take a while to go.
const (
	reapTries = 5000
	reapPause = 2 * time.Millisecond
)

// reapOnce kills what it finds in one look at proc, and tells how many those were.
func reapOnce(proc, owner string, seen map[int]bool) (int, error) {
	dirs, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || pid == os.Getpid() {
			continue
		}
		by, sid, ok := marked(filepath.Join(d, "environ"))
		if !ok || by != owner || sessionOf(filepath.Join(d, "stat")) != sid {
			continue
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			seen[pid] = true
			n++
		}
	}
	return n, nil
}

func marked(environ string) (owner string, sid int, ok bool) {
	data, err := os.ReadFile(environ)
	if err != nil {
		return "", 0, false
	}
	for kv := range bytes.SplitSeq(data, []byte{0}) {
		rest, found := bytes.CutPrefix(kv, []byte(markerKey))
		if !found {
			continue
		}
		i := bytes.LastIndexByte(rest, ':')
		if i < 0 {
			continue
		}
		n, err := strconv.Atoi(string(rest[i+1:]))
		return string(rest[:i]), n, err == nil
	}
	return "", 0, false
}

// sessionOf reads field 6 of /proc/PID/stat (proc(5)); the second field may hold spaces and parentheses.
func sessionOf(stat string) int {
	data, err := os.ReadFile(stat)
	if err != nil {
		return -1
	}
	i := bytes.LastIndexByte(data, ')')
	if i < 0 {
		return -1
	}
	f := bytes.Fields(data[i+1:])
	if len(f) < 4 {
		return -1
	}
	n, err := strconv.Atoi(string(f[3]))
	if err != nil {
		return -1
	}
	return n
}
