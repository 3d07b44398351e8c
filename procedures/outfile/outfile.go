// Package outfile manages the file to which the steps of a deployment write their outputs, and the folder for their test reports next to it.
//
// It owns their paths and who may write them, and opens the file for its reader. A crash leaves the file behind, and Drop removes it.
package outfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/sls/host"
)

// Variable is the environment variable that names the file to the steps.
const Variable = "CORPUS_OUTPUTS"

// ReportsVariable is the environment variable that names the folder for test reports.
const ReportsVariable = "CORPUS_TEST_REPORTS"

// Reports returns the folder for test reports next to a file of outputs.
func Reports(file string) string { return filepath.Join(filepath.Dir(file), "tests") }

// Path returns the file of a deployment's steps. It is the same for all steps, since Salt is started once; each step finds it empty. Several servers on one
// machine may run deployments with the same ID, as nodes of a hub: each server has its own file, named after its state.
func Path(state layout.State, id project.ID) string {
	sum := sha256.Sum256([]byte(state.Path()))
	return filepath.Join(os.TempDir(), fmt.Sprintf("corpus-git-outputs-%x-%s", sum[:4], id), "outputs")
}

// Drop removes a deployment's file after a crash.
func Drop(state layout.State, id project.ID) error {
	if id == "" || strings.ContainsAny(string(id), "/.") {
		return nil
	}
	return os.RemoveAll(filepath.Dir(Path(state, id)))
}

// Make recreates the file and the folder for reports. If group is not nil, and this process is root, members of that group may write it: steps run as the
// project's user.
func Make(file string, machine *host.Host, group *host.Group) error {
	dir := filepath.Dir(file)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(Reports(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if machine.EUID != 0 || group == nil {
		return nil
	}
	for _, x := range []struct {
		path string
		mode fs.FileMode
	}{{file, 0o660}, {Reports(file), 0o770}, {dir, 0o710}} {
		if err := os.Chown(x.path, 0, group.GID); err != nil {
			return err
		}
		if err := os.Chmod(x.path, x.mode); err != nil {
			return err
		}
	}
	return nil
}

// Open opens what a step wrote, for reading. A step that removed the file, or put something else in its place, a link or a fifo, is fault.Failed.
func Open(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, syscall.ELOOP) {
			return nil, replaced()
		}
		return nil, fault.New(fault.Failed, "", "the step removed the file of %s", Variable)
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		_ = f.Close() // it was only read
		return nil, replaced()
	}
	return f, nil
}

func replaced() error {
	return fault.New(fault.Failed, "", "the step put something else in the place of the file of %s", Variable).WithHint("append to the file:  echo name=value >> \"$%s\"", Variable)
}
