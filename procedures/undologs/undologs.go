// Package undologs keeps the undo logs of deployments that went live, for a later rollback past them and for undeploy.
//
// It owns <state>/undo/live. It undoes nothing. A log is moved there by one rename, so a crash leaves it in the old or the new place.
package undologs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/undo"
)

// Logs are the undo logs of all projects below a state directory.
type Logs struct {
	FS    vfs.FS
	State layout.State
}

// Log is the undo log of a deployment that went live.
type Log struct {
	ID  project.ID
	Dir string
	// seq counts the logs of a project; a newer one has a higher number.
	seq int
}

// List returns the undo logs of a project's deployments that went live, the newest first.
func (t Logs) List(name project.Name) ([]Log, error) {
	parent := t.State.LiveUndo(name.String())
	names, err := t.FS.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []Log
	for _, n := range names {
		number, id, ok := strings.Cut(n, "-")
		if seq, nerr := strconv.Atoi(number); ok && nerr == nil {
			out = append(out, Log{ID: project.ID(id), Dir: filepath.Join(parent, n), seq: seq})
		}
	}
	slices.SortFunc(out, func(a, b Log) int { return cmp.Compare(b.seq, a.seq) })
	return out, err
}

// Since returns the folders of the logs of the deployments in since, or of all if it is nil, the newest first.
func (t Logs) Since(name project.Name, since []project.ID) (dirs []string, err error) {
	logs, err := t.List(name)
	for _, l := range logs {
		if since == nil || slices.Contains(since, l.ID) {
			dirs = append(dirs, l.Dir)
		}
	}
	return dirs, err
}

// droppedFile names the file with the deployment whose undo log was removed last because of a limit.
const droppedFile = "dropped"

// Prune removes the oldest logs until only most are left, and returns the number removed. A later rollback past those deployments
// reports it. Nothing may be running in the project meanwhile. It is durable on return, and can be run again.
func (t Logs) Prune(name project.Name, most int) (removed int, err error) {
	logs, err := t.List(name)
	if err != nil || len(logs) <= most {
		return 0, err
	}
	// The record comes first: a log that is recorded as removed may still exist, but never the other way round.
	path := filepath.Join(t.State.LiveUndo(name.String()), droppedFile)
	if err := vfs.WriteFileAtomic(t.FS, path, []byte(string(logs[most].ID)+"\n"), 0o600); err != nil {
		return 0, err
	}
	for _, l := range slices.Backward(logs[most:]) {
		if err := undo.Drop(t.FS, l.Dir); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// Dropped returns the newest deployment whose undo log was removed; "" if there is none.
func (t Logs) Dropped(name project.Name) (project.ID, error) {
	text, err := vfs.ReadFile(t.FS, filepath.Join(t.State.LiveUndo(name.String()), droppedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return project.ID(strings.TrimSpace(string(text))), err
}

// Keep moves the undo log in dir, of a deployment that went live, to the end of the existing ones. It is durable on return.
func (t Logs) Keep(name project.Name, id project.ID, dir string) error {
	parent := t.State.LiveUndo(name.String())
	if err := vfs.MkdirAll(t.FS, parent, 0o700); err != nil {
		return err
	}
	logs, err := t.List(name)
	if err != nil {
		return err
	}
	last := 0
	if len(logs) > 0 {
		last = logs[0].seq
	}
	return vfs.RenameDurable(t.FS, dir, filepath.Join(parent, fmt.Sprintf("%08d-%s", last+1, id)))
}

// Drop removes the undo logs of all deployments of a project. It is durable on return.
func (t Logs) Drop(name project.Name) error {
	return vfs.RemoveAll(t.FS, t.State.LiveUndo(name.String()))
}
