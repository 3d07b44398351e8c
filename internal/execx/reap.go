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

// Reap kills, with SIGKILL, the processes of the commands recorded in a folder: every process of their sessions, whatever its environment,
// process group and parent are now. It returns their number when none of them is running any more: a process may start another while it is
// killed, so Reap repeats until it finds none. Then the folder is empty. Processes that created their own session are daemons, and
// stay. proc is where proc(5) is mounted. The caller must be the only user of the folder.
func Reap(proc, dir string) (int, error) {
	notes, paths, err := readNotes(dir)
	if err != nil {
		return 0, err
	}
	seen := map[int]bool{}
	for try := 0; len(notes) > 0; try++ {
		n, err := reapOnce(proc, notes, seen)
		if err != nil {
			return len(seen), err
		}
		if n == 0 {
			break
		}
		if try == reapTries {
			return len(seen), fmt.Errorf("%d processes do not end", n)
		}
		time.Sleep(reapPause)
	}
	for _, p := range paths {
		if err := os.Remove(p); err != nil && !os.IsNotExist(err) {
			return len(seen), err
		}
	}
	return len(seen), nil
}

// A killed process that waits for a disk can take a while to end.
const (
	reapTries = 5000
	reapPause = 2 * time.Millisecond
)

// reapOnce kills what one pass over proc finds, and returns the number.
func reapOnce(proc string, notes []noted, seen map[int]bool) (int, error) {
	dirs, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return 0, err
	}
	sessions := map[int]uint64{} // and from which start time on
	var tokens [][]byte
	for _, n := range notes {
		if n.token == "" {
			sessions[n.pid] = n.start
		} else {
			tokens = append(tokens, []byte(n.token))
		}
	}
	n := 0
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || pid == os.Getpid() {
			continue
		}
		st, ok := statOf(proc, pid)
		if !ok || st.state == 'Z' {
			continue
		}
		from, ours := sessions[st.session]
		if !(ours && st.start >= from) && !hasToken(filepath.Join(d, "environ"), tokens) {
			continue
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			seen[pid] = true
			n++
		}
	}
	return n, nil
}

// sessionPIDs returns the live processes of a session: those that its leader, which started at start, or its descendants started.
func sessionPIDs(proc string, leader int, start uint64) ([]int, error) {
	dirs, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return nil, err
	}
	var out []int
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil {
			continue
		}
		if st, ok := statOf(proc, pid); ok && st.state != 'Z' && st.session == leader && st.start >= start {
			out = append(out, pid)
		}
	}
	return out, nil
}

// hasToken looks for one of the tokens among the variables of an environment.
func hasToken(environ string, tokens [][]byte) bool {
	if len(tokens) == 0 {
		return false
	}
	data, err := os.ReadFile(environ)
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(data, []byte{0}) {
		for _, t := range tokens {
			if bytes.Equal(kv, t) {
				return true
			}
		}
	}
	return false
}

// endSession kills what is left of a command's session, including processes outside of its process group.
func endSession(leader int, start uint64) {
	for range 10 { // a process that starts another while it is killed leaves that one
		n, err := reapOnce("/proc", []noted{{pid: leader, start: start}}, map[int]bool{})
		if err != nil || n == 0 {
			return
		}
		time.Sleep(reapPause)
	}
}
