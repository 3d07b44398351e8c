package project

import (
	"slices"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/internal/quantity"
)

// The values of the key on_rollback: what a rollback does once the trees are restored. Each includes those before it.
const (
	// RollbackTree only fixes permissions and runs the checks, as the original did.
	RollbackTree = "tree"
	// RollbackUndo undoes what steps changed outside the trees, and restarts services that they restarted.
	RollbackUndo = "undo"
	// RollbackSteps applies the steps of the restored release.
	RollbackSteps = "steps"
)

// DefaultRollbackTimeout limits the steps of a rollback if cfg sets no limit.
const DefaultRollbackTimeout = 15 * time.Minute

// onRollback holds the keys of rollbacks.
type onRollback struct {
	reach    string
	limit    time.Duration
	packages bool
}

// OnRollback returns the value of on_rollback for a rollback to this release: RollbackTree, RollbackUndo or RollbackSteps, which is the default
// except in environments of class dev.
func (c *Cfg) OnRollback() string { return c.reach }

// RollbackTimeout returns the time limit for the steps that are applied after a rollback to this release.
func (c *Cfg) RollbackTimeout() time.Duration { return c.limit }

// UndoPackages reports whether a rollback of a deployment of this release removes the packages that it installed, and reinstalls those
// that it removed or replaced: the key packages of undo.
func (c *Cfg) UndoPackages() bool { return c.packages }

// rollbacks reads and validates the keys of rollbacks.
func (c *Cfg) rollbacks() error {
	words := []string{RollbackSteps, RollbackUndo, RollbackTree}
	c.reach, c.limit = RollbackSteps, DefaultRollbackTimeout
	if c.class == ClassDev {
		c.reach = RollbackTree
	}
	if l := c.root.get([]string{"on_rollback"}); l.sub != nil || l.value != nil {
		if l.sub != nil || !slices.Contains(words, py.Str(l.value)) {
			return cfgError(l.layer, "on_rollback", "must be one of: %s", strings.Join(words, ", "))
		}
		c.reach = py.Str(l.value)
	}
	if l := c.root.get([]string{"rollback_timeout"}); l.sub != nil || l.value != nil {
		d, err := quantity.ParseDuration(py.Str(l.value))
		if n, ok := asInt(l.value); ok { // seconds
			d, err = time.Duration(min(max(n, 0), int64(maxCheckTime/time.Second)+1))*time.Second, nil
		}
		if l.sub != nil || err != nil || d < time.Second || d > maxCheckTime {
			return cfgError(l.layer, "rollback_timeout", "must be a duration such as 90s or 5m, at most %s", quantity.FormatDuration(maxCheckTime))
		}
		c.limit = d
	}
	return c.undo()
}

// undo reads the key of the same name.
func (c *Cfg) undo() error {
	l := c.root.get([]string{"undo"})
	if l.sub == nil && l.value == nil {
		return nil
	}
	bad := "takes  packages: true  or  packages: false"
	if l.sub == nil {
		return cfgError(l.layer, "undo", "%s", bad)
	}
	var err error
	l.sub.each(func(k *leaf) {
		v, ok := k.value.(bool)
		switch {
		case py.Str(k.key) != "packages" || k.sub != nil || !ok && k.value != nil:
			err = cfgError(k.nearest(l.layer), "undo", "%s", bad)
		default:
			c.packages = v
		}
	})
	return err
}
