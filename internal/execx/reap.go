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

// Reap ends, with SIGKILL, what is left of the commands noted in a folder: every process of their sessions, whatever its
// environment, its process group and its parent have become. It returns how many it found, when none of them runs any
// more: one that is killed while it starts another leaves that one, so it looks again until a look finds nothing. Then the
// dir is empty. A process that went into a session of its own is a daemon, and stays. proc is where proc(5) is mounted. The
// caller must be the only owner of the folder.
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

// A killed process that waits for a disk can take a while to go.
const (
	reapTries = 5000
	reapPause = 2 * time.Millisecond
)

// reapOnce kills what it finds in one look at proc, and tells how many those were.
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

// sessionPIDs are the processes of a session that live: all that its leader, which started at start, or its descendants began.
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

// endSession kills what is left of a command's session: what left its process group, too.
func endSession(leader int, start uint64) {
	for range 10 { // what starts another while it is killed leaves that one
		n, err := reapOnce("/proc", []noted{{pid: leader, start: start}}, map[int]bool{})
		if err != nil || n == 0 {
			return
		}
		time.Sleep(reapPause)
	}
}
