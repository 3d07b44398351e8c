package nspawn

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"corpus-git/container"
	"corpus-git/container/system"
	"corpus-git/internal/fault"
)

// group is the control group of a container (cgroups(7)): of version 2, or one in each of the version 1 hierarchies for memory and CPU.
type group struct {
	system.Host
	name string
}

func (d Kind) group(c container.Container) group { return group{d.Host, "corpus-git-" + d.ID(c)} }

// folders returns the folders of the group.
func (g group) folders() []string {
	if g.Second() {
		return []string{filepath.Join(g.CGroups, g.name)}
	}
	var out []string
	for _, h := range []string{"memory", "cpu"} {
		if _, err := os.Lstat(filepath.Join(g.CGroups, h)); err == nil {
			out = append(out, filepath.Join(g.CGroups, h, g.name))
		}
	}
	return out
}

// make creates the group with its limits, and returns its folders. A group without limits is created, too, since limits may be set while the container is
// running.
func (g group) make(l container.Limits) ([]string, error) {
	if g.Second() {
		// The file system refuses controllers that it does not have; set then reports what is missing.
		_ = os.WriteFile(filepath.Join(g.CGroups, "cgroup.subtree_control"), []byte("+memory +cpu"), 0o644) //nolint:gosec // it exists
	}
	for _, dir := range g.folders() {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as all control groups
			return nil, fault.New(fault.Failed, "", "make a control group: %w", err)
		}
	}
	return g.folders(), g.set(l)
}

// set writes the limits.
func (g group) set(l container.Limits) error {
	for _, f := range g.LimitFiles(l) {
		controller, _, _ := strings.Cut(f.File, ".")
		if g.Second() {
			controller = ""
		}
		file := filepath.Join(g.CGroups, controller, g.name, f.File)
		err := os.WriteFile(file, []byte(f.Value), 0o644) //nolint:gosec // it exists
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist) && f.None:
		case errors.Is(err, fs.ErrNotExist):
			return fault.New(fault.Refused, "", "this machine cannot limit that: there is no %s", file)
		case errors.Is(err, syscall.EBUSY):
			return fault.New(fault.Refused, "", "it uses more than that now").WithHint("stop it first, or give it more")
		default:
			return err
		}
	}
	return nil
}

// removeTries is the number of attempts to remove a group: its last process ends a moment after nspawn.
const removeTries = 100

// remove removes the group. It is not an error if it does not exist.
func (g group) remove() error {
	var errs []error
	for _, dir := range g.folders() {
		var err error
		for range removeTries {
			if err = removeGroups(dir); !errors.Is(err, syscall.EBUSY) {
				break
			}
			time.Sleep(system.Poll)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// removeGroups removes a control group and those below it.
func removeGroups(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeGroups(filepath.Join(dir, e.Name())))
		}
	}
	if rerr := os.Remove(dir); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}
