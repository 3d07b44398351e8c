package procedures

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
)

// Bounds of what is looked at, and told, of processes.
const (
	maxProcesses     = 100_000
	maxOldProcesses  = 10
	maxCommandBytes  = 4 << 10
	maxCommandLength = 100
)

// OldProcesses tells, in lines for the pusher, which processes still run in a tree of the project that is not live any more: with their working
// directory or their program in an archive, or in a folder of the project that was deleted. proc is /proc. A process that cannot be looked at, as it ended
// or is another user's, is passed over.
func (e *Env) OldProcesses(proc string) []string {
	dir, err := os.Open(proc)
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(maxProcesses)
	_ = dir.Close()
	var lines []string
	more := 0
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		at := e.oldPlace(filepath.Join(proc, name))
		switch {
		case at == "":
		case len(lines) == maxOldProcesses:
			more++
		default:
			lines = append(lines, fmt.Sprintf("%d  %s  in %s", pid, printable.Shorten(printable.Line(e.hide(commandOf(filepath.Join(proc, name)))), maxCommandLength), printable.Line(e.hide(at))))
		}
	}
	if more > 0 {
		lines = append(lines, "and "+humanize.Plural(more, "more process", "more processes"))
	}
	return lines
}

// oldPlace is where in a tree that is not live any more a process runs, "" where it does not.
func (e *Env) oldPlace(process string) string {
	for _, link := range []string{"cwd", "exe"} {
		at, err := os.Readlink(filepath.Join(process, link))
		if err != nil {
			continue
		}
		gone := strings.HasSuffix(at, " (deleted)")
		if strings.HasPrefix(at, e.Paths.Archives()+"/") || gone && (strings.HasPrefix(at, e.Paths.Live()+"/") || at == e.Paths.Live()+" (deleted)") {
			return at
		}
	}
	return ""
}

// commandOf is the beginning of a process' command line.
func commandOf(process string) string {
	f, err := os.Open(filepath.Join(process, "cmdline"))
	if err != nil {
		return "?"
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, maxCommandBytes))
	words := bytes.ReplaceAll(bytes.TrimRight(data, "\x00"), []byte{0}, []byte(" "))
	return string(words)
}
