package nspawn

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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

// init returns the init of the container whose processes are in the group, 0 if there is none: it is the first process of a PID namespace (proc_pid_status(5), NSpid).
func (g group) init() (int, error) {
	for _, dir := range g.folders() {
		pids, err := members(dir)
		if err != nil {
			return 0, err
		}
		for _, pid := range pids {
			status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
			if err != nil {
				continue // it has ended
			}
			_, rest, _ := strings.Cut(string(status), "\nNSpid:")
			line, _, _ := strings.Cut(rest, "\n")
			if f := strings.Fields(line); len(f) > 1 && f[len(f)-1] == "1" && !strings.Contains(string(status), "\nState:\tZ") {
				return strconv.Atoi(pid)
			}
		}
	}
	return 0, nil
}

// members returns the processes of a control group and of those below it.
func members(dir string) (pids []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && e.Name() != "cgroup.procs" {
			return nil
		}
		var text []byte
		if err == nil {
			text, err = os.ReadFile(path) //nolint:gosec // below a control group
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) { // the group was removed meanwhile
			return nil
		}
		pids = append(pids, strings.Fields(string(text))...)
		return err
	})
	return pids, err
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
