package system

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"corpus-git/container"
	"corpus-git/internal/execx"
)

// Host is what a kind uses of this machine.
type Host struct {
	Run   execx.Commander
	Store container.Store
	// Env is the environment of the tools.
	Env []string
	// CGroups is the mount point of the control groups: /sys/fs/cgroup.
	CGroups string
}

// Poll is the interval at which a kind checks what it waits for.
const Poll = 50 * time.Millisecond

// Console is the file with the output of a container's console.
func (h Host) Console(c container.Container) string {
	return filepath.Join(h.Store.Folder(c.Name), "console.log")
}

// ID returns a name of a container for what all containers of this machine share, such as control groups and interfaces: those of two folders may have the same name.
func (h Host) ID(c container.Container) string {
	sum := sha256.Sum256([]byte(h.Store.Dir))
	return c.Name + "-" + hex.EncodeToString(sum[:3])
}

// Second reports whether the machine has only version 2 of control groups (cgroups(7)).
func (h Host) Second() bool {
	_, err := os.Lstat(filepath.Join(h.CGroups, "cgroup.controllers"))
	return err == nil
}

// period is the CPU period, in microseconds, that a quota applies to.
const period = 100_000

// Limit is a file of a control group and what is written to it. The name of the file begins with that of its controller.
type Limit struct {
	File, Value string
	// None reports that the value limits nothing.
	None bool
}

// LimitFiles returns the files for limits.
func (h Host) LimitFiles(l container.Limits) []Limit {
	second := h.Second()
	none := map[bool]string{true: "max", false: "-1"}[second]
	mem, quota := none, none
	if l.Memory > 0 {
		mem = strconv.FormatInt(l.Memory, 10)
	}
	if l.CPUs > 0 {
		quota = strconv.FormatInt(int64(l.CPUs*period), 10)
	}
	if second {
		return []Limit{{"memory.max", mem, mem == none}, {"cpu.max", fmt.Sprintf("%s %d", quota, period), quota == none}}
	}
	return []Limit{{"memory.limit_in_bytes", mem, mem == none}, {"cpu.cfs_period_us", strconv.Itoa(period), quota == none}, {"cpu.cfs_quota_us", quota, quota == none}}
}
