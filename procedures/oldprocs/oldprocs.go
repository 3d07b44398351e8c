// Package oldprocs finds processes that are running in a tree of a project that is no longer live. It reads /proc, and stops no process.
package oldprocs

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
	"corpus-git/layout"
)

// Limits on the processes that are examined and reported.
const (
	maxProcesses     = 100_000
	maxOldProcesses  = 10
	maxCommandBytes  = 4 << 10
	maxCommandLength = 100
)

// List returns, as lines for the pusher, the processes that are still running in a tree of the project that is no longer live: those whose
// working directory or program is in an archive, or in a deleted folder of the project. proc is /proc. A process that can't be examined,
// because it has ended or belongs to another user, is skipped. hide cleans and redacts the lines.
func List(proc string, of layout.Project, hide func(string) string) []string {
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
		at := placeOf(filepath.Join(proc, name), of)
		switch {
		case at == "":
		case len(lines) == maxOldProcesses:
			more++
		default:
			lines = append(lines, fmt.Sprintf("%d  %s  in %s", pid, printable.Shorten(printable.Line(hide(commandOf(filepath.Join(proc, name)))), maxCommandLength), printable.Line(hide(at))))
		}
	}
	if more > 0 {
		lines = append(lines, "and "+humanize.Plural(more, "more process", "more processes"))
	}
	return lines
}

// placeOf returns where in a tree that is no longer live a process is running, "" if it is not in one.
func placeOf(process string, of layout.Project) string {
	for _, link := range []string{"cwd", "exe"} {
		at, err := os.Readlink(filepath.Join(process, link))
		if err != nil {
			continue
		}
		gone := strings.HasSuffix(at, " (deleted)")
		if strings.HasPrefix(at, of.Archives()+"/") || gone && (strings.HasPrefix(at, of.Live()+"/") || at == of.Live()+" (deleted)") {
			return at
		}
	}
	return ""
}

// commandOf returns the beginning of a process' command line.
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
