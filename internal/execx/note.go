package execx

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Key is the environment variable that holds the name of a command's note.
const Key = "CORPUS_PROCESS"

// note is the record of one running command: an empty file, which needs no room on a full disk. Its name is "starting-<random>" until the
// command has a process, then "<pid>-<start time>-<boot>". The process leads a session, so the number identifies all processes that it
// starts, as long as one of them lives.
//
// The file is the same for all notes, which are links to it: making a file takes ten times as long as linking one.
//
// Notes need no fsync: they are about processes that outlive a killed server, and none outlives the machine.
type note struct{ path, boot string }

const (
	starting = "starting-"
	// linked is the name of the file that notes are links to. It stays until Reap.
	linked = ".note"
)

// openNote writes the note of a command that is about to start. Without a folder, or if it can't be written, there is none: running the
// command is more important.
func openNote(dir, boot string) note {
	if dir == "" {
		return note{}
	}
	path := filepath.Join(dir, starting+strconv.FormatUint(rand.Uint64(), 36)) //nolint:gosec // a name that no other command has
	if os.Link(filepath.Join(dir, linked), path) == nil {
		return note{path, boot}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return note{}
	}
	f, err := os.OpenFile(filepath.Join(dir, linked), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		_ = f.Close() // it is empty
		if os.Link(f.Name(), path) == nil {
			return note{path, boot}
		}
	}
	f, err = os.CreateTemp(dir, starting) // there are no more links, or the file system has none
	if err != nil {
		return note{}
	}
	_ = f.Close() // it is empty
	return note{f.Name(), boot}
}

// env returns the environment variable for the command.
func (n note) env() []string {
	if n.path == "" {
		return nil
	}
	return []string{Key + "=" + n.path}
}

// started renames the note for its process, which started at the given time.
func (n *note) started(pid int, start uint64) {
	if n.path == "" {
		return
	}
	if n.boot == "" {
		n.boot = Boot()
	}
	name := filepath.Join(filepath.Dir(n.path), fmt.Sprintf("%d-%d-%s", pid, start, n.boot))
	if os.Rename(n.path, name) == nil {
		n.path = name
	}
}

// close removes the note: what the command left running on purpose must not be ended.
func (n note) close() {
	if n.path != "" {
		_ = os.Remove(n.path)
	}
}

// noted is a note as Reap reads it.
type noted struct {
	token string // of a command that was starting: its environment contains it
	pid   int
	start uint64
}

// readNotes returns the notes of commands that may still run.
func readNotes(dir string) (notes []noted, paths []string, err error) {
	names, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil, nil
	}
	now := Boot()
	for _, e := range names {
		path := filepath.Join(dir, e.Name())
		paths = append(paths, path)
		if strings.HasPrefix(e.Name(), starting) {
			notes = append(notes, noted{token: Key + "=" + path})
			continue
		}
		part := strings.SplitN(e.Name(), "-", 3)
		if len(part) != 3 || part[2] != now {
			continue // from before the machine started
		}
		pid, perr := strconv.Atoi(part[0])
		start, serr := strconv.ParseUint(part[1], 10, 64)
		if perr == nil && serr == nil {
			notes = append(notes, noted{pid: pid, start: start})
		}
	}
	return notes, paths, err
}

// Boot identifies the machine's boot, within which process numbers and start times are valid.
func Boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.ReplaceAll(strings.TrimSpace(string(id)), "-", "")
}

// procStat is what proc_pid_stat(5) reports about a process: fields 3, 6 and 22.
type procStat struct {
	state   byte
	session int
	start   uint64 // in clock ticks since the machine started
}

func statOf(proc string, pid int) (st procStat, ok bool) {
	data, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return st, false
	}
	// The second field is the program's name, and may hold spaces and parentheses.
	i := strings.LastIndexByte(string(data), ')')
	f := strings.Fields(string(data[i+1:]))
	if i < 0 || len(f) < 20 {
		return st, false
	}
	session, serr := strconv.Atoi(f[3])
	start, terr := strconv.ParseUint(f[19], 10, 64)
	return procStat{state: f[0][0], session: session, start: start}, serr == nil && terr == nil
}
