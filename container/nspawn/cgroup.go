package nspawn

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"corpus-git/container"
	"corpus-git/internal/fault"
)

// group is the control group of a container (cgroups(7)): of version 2, or one in each of the version 1 hierarchies for memory and CPU.
type group struct{ at, name string }

func (d Kind) group(name string) group { return group{d.CGroups, "corpus-git-" + name} }

// second reports whether the machine has only version 2 of control groups.
func (g group) second() bool {
	_, err := os.Lstat(filepath.Join(g.at, "cgroup.controllers"))
	return err == nil
}

// The hierarchies of version 1, and the CPU period, in microseconds, that a quota applies to.
const (
	memory = "memory"
	cpu    = "cpu"
	period = 100_000
)

// folders returns the folders of the group.
func (g group) folders() []string {
	if g.second() {
		return []string{filepath.Join(g.at, g.name)}
	}
	var out []string
	for _, h := range []string{memory, cpu} {
		if _, err := os.Lstat(filepath.Join(g.at, h)); err == nil {
			out = append(out, filepath.Join(g.at, h, g.name))
		}
	}
	return out
}

// make creates the group with its limits, and returns its folders. A group without limits is created, too, since limits may be set while the container is
// running.
func (g group) make(l container.Limits) ([]string, error) {
	if g.second() {
		// The file system refuses controllers that it does not have; set then reports what is missing.
		_ = os.WriteFile(filepath.Join(g.at, "cgroup.subtree_control"), []byte("+memory +cpu"), 0o644) //nolint:gosec // it exists
	}
	for _, dir := range g.folders() {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as all control groups
			return nil, fault.New(fault.Failed, "", "make a control group: %w", err)
		}
	}
	return g.folders(), g.set(l)
}

// limit is a file of a control group and what is written to it.
type limit struct{ file, value string }

// set writes the limits.
func (g group) set(l container.Limits) error {
	mem, quota := "-1", "-1"
	if l.Memory > 0 {
		mem = strconv.FormatInt(l.Memory, 10)
	}
	if l.CPUs > 0 {
		quota = strconv.FormatInt(int64(l.CPUs*period), 10)
	}
	limits := []limit{
		{filepath.Join(g.at, memory, g.name, "memory.limit_in_bytes"), mem},
		{filepath.Join(g.at, cpu, g.name, "cpu.cfs_period_us"), strconv.Itoa(period)},
		{filepath.Join(g.at, cpu, g.name, "cpu.cfs_quota_us"), quota},
	}
	if g.second() {
		if mem == "-1" {
			mem = "max"
		}
		if quota == "-1" {
			quota = "max"
		}
		limits = []limit{{filepath.Join(g.at, g.name, "memory.max"), mem}, {filepath.Join(g.at, g.name, "cpu.max"), fmt.Sprintf("%s %d", quota, period)}}
	}
	for _, f := range limits {
		err := os.WriteFile(f.file, []byte(f.value), 0o644) //nolint:gosec // it exists
		unlimited := f.value == "-1" || f.value == "max" || f.value == fmt.Sprintf("max %d", period) || f.value == strconv.Itoa(period)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist) && unlimited:
		case errors.Is(err, fs.ErrNotExist):
			return fault.New(fault.Refused, "", "this machine cannot limit that: there is no %s", f.file)
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
			time.Sleep(poll)
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
