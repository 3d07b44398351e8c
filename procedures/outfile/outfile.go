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

// fileName is the name of the file in its folder.
const fileName = "outputs"

// Path returns the file of a deployment's steps. It is the same for all steps, since Salt is started once; each step finds it empty. Several servers on one
// machine may run deployments with the same ID, as nodes of a hub: each server has its own file, named after its state.
func Path(state layout.State, id project.ID) string {
	sum := sha256.Sum256([]byte(state.Path()))
	return filepath.Join(os.TempDir(), fmt.Sprintf("corpus-git-outputs-%x-%s", sum[:4], id), fileName)
}

// Drop removes a deployment's file after its steps, or after a crash.
func Drop(state layout.State, id project.ID) error {
	if id == "" || strings.ContainsAny(string(id), "/.") {
		return nil
	}
	return drop(filepath.Dir(Path(state, id)))
}

func drop(dir string) error {
	return errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+nextSuffix), os.RemoveAll(dir+oldSuffix))
}

// Series gives each step of a deployment an empty file, and an empty folder for reports. A step that left them as it found them passes them on to the next one; otherwise
// they are made again, from then on while the step before runs, and removed while the next one does. Drop removes what is left in the end, or by a crash. It is for one
// goroutine.
type Series struct {
	// File is the path, of Path.
	File    string
	Machine *host.Host

	next  chan error    // the result of making it for the next step; nil if that has not begun
	of    *host.Group   // for which group that is
	found *found        // what the last step found; nil if it did not leave it like that
	whose *host.Group   // for which group that is
	ahead bool          // a step left something, so the next ones probably do
	more  bool          // whether another step may follow
	gone  chan struct{} // closed when what the last step left is removed; nil if nothing is being removed
}

// Prepare begins to make what the first step finds, as Begin does for those after one that left something.
func (s *Series) Prepare(group *host.Group) {
	if s.found == nil {
		s.prepare(group)
	}
}

func (s *Series) prepare(group *host.Group) {
	if s.next != nil {
		return
	}
	next := make(chan error, 1)
	s.next, s.of = next, group
	go func() { next <- s.make(s.dir()+nextSuffix, group) }()
}

// Begin makes what a step finds; more reports that another step may follow. Members of the group may write it if it is not nil and this process is root:
// steps run as the project's user.
func (s *Series) Begin(group *host.Group, more bool) error {
	if s.found == nil || !same(s.whose, group) || !s.found.still(s.dir()) {
		s.found = nil
		if err := s.again(group); err != nil {
			return err
		}
		found, err := find(s.dir())
		if err != nil {
			return err
		}
		s.found, s.whose = found, group
	}
	if s.more = more; more && s.ahead {
		s.prepare(group)
	}
	return nil
}

// same reports whether two groups are the same one; a step may have created it.
func same(a, b *host.Group) bool { return a == b || a != nil && b != nil && a.GID == b.GID }

// again makes what a step finds, or takes what was made for it if that is for the same group.
func (s *Series) again(group *host.Group) error {
	made := false
	if s.next != nil {
		made = s.made() == nil && same(s.of, group) && os.Rename(s.dir()+nextSuffix, s.dir()) == nil
	}
	if !made {
		if err := s.make(s.dir(), group); err != nil {
			return err
		}
	}
	return s.admit(s.dir(), group, 0o710)
}

// made waits for what is being made for the next step.
func (s *Series) made() error {
	if s.next == nil {
		return nil
	}
	err := <-s.next
	s.next = nil
	return err
}

// End keeps what a step that succeeded left as it found it, for the next one, and removes anything else: after a step that succeeded, beside what follows, otherwise
// nothing is left when it returns.
func (s *Series) End(ok bool) {
	if s.gone != nil {
		<-s.gone
		s.gone = nil
	}
	if !ok {
		s.found = nil
		_ = errors.Join(s.made(), drop(s.dir()))
		return
	}
	if s.found != nil && s.found.still(s.dir()) {
		return
	}
	s.found, s.ahead = nil, true
	if s.more {
		s.prepare(s.whose)
	}
	old := s.dir() + oldSuffix
	if os.Rename(s.dir(), old) != nil {
		_ = os.RemoveAll(s.dir()) // Begin fails if something is left
		return
	}
	gone := make(chan struct{})
	s.gone = gone
	go func() {
		defer close(gone)
		_ = os.RemoveAll(old)
	}()
}

// Close removes what was made for a step that did not begin.
func (s *Series) Close() {
	if s.next != nil {
		s.End(false)
	}
}

// nextSuffix and oldSuffix are the ends of the folders' names before and after their step.
const nextSuffix, oldSuffix = ".next", ".old"

func (s *Series) dir() string { return filepath.Dir(s.File) }

// make makes a folder as a step finds it, but for nobody else than this process yet.
func (s *Series) make(dir string, group *host.Group) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(dir, filepath.Base(s.File))
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
	if err := s.admit(file, group, 0o660); err != nil {
		return err
	}
	return s.admit(Reports(file), group, 0o770)
}

// admit gives the group access to a path.
func (s *Series) admit(path string, group *host.Group, mode fs.FileMode) error {
	if s.Machine.EUID != 0 || group == nil {
		return nil
	}
	if err := os.Chown(path, 0, group.GID); err != nil {
		return err
	}
	return os.Chmod(path, mode)
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
