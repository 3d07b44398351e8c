package execx

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Marker is the environment variable that ties a process to a deployment and to the session of
// the server that started it.
func Marker(deployment string) string {
	sid, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	return fmt.Sprintf("%s%s:%d", markerKey, deployment, int(sid))
}

const markerKey = "CORPUS_PROCESS="

// Reap ends, with SIGKILL, every process that a dead server started for one of the deployments
// (all of them where ids is empty) and that is still in the session it was started in. It returns
// how many it found. Processes that went into a session of their own are daemons, and stay.
func Reap(proc string, ids ...string) (int, error) {
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
		id, sid, ok := marked(filepath.Join(d, "environ"))
		if !ok || !wanted(id, ids) || sessionOf(filepath.Join(d, "stat")) != sid {
			continue
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			n++
		}
	}
	return n, nil
}

func wanted(id string, ids []string) bool {
	for _, w := range ids {
		if w == id {
			return true
		}
	}
	return len(ids) == 0
}

func marked(environ string) (id string, sid int, ok bool) {
	data, err := os.ReadFile(environ)
	if err != nil {
		return "", 0, false
	}
	for kv := range bytes.SplitSeq(data, []byte{0}) {
		rest, found := bytes.CutPrefix(kv, []byte(markerKey))
		if !found {
			continue
		}
		i, s, found := bytes.Cut(rest, []byte(":"))
		if !found {
			continue
		}
		n, err := strconv.Atoi(string(s))
		return string(i), n, err == nil
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
