package resume

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/project"
	"corpus-git/project/junit"
	"corpus-git/sls"
)

// Paused is where a deployment waits for signals, for a later process of the server to continue it. It holds no secret.
type Paused struct {
	Point
	// At is when it began to wait, Step the step that waits, and Wait what it waits for.
	At   time.Time `json:"at"`
	Step string    `json:"step"`
	Wait string    `json:"wait"`
	// Ended: the step has ended, and the deployment waits behind it. Otherwise a state of the step waits. Done is what the step has done.
	Ended bool     `json:"ended,omitempty"`
	Done  sls.Done `json:"done,omitzero"`
	// Waits are the waits of the step that ended before.
	Waits []string `json:"waits,omitempty"`
	// Written is what the step has written into the file of its outputs.
	Written string `json:"written,omitempty"`
	// Since are the deployments whose changes outside of the tree were undone before the steps.
	Since []project.ID `json:"since,omitempty"`
	// Others are the recipes of other projects that were read: the mount and the digest of each.
	Others []string `json:"others,omitempty"`
	// Install and Begun are when the steps, and this step, began. Timings and Tests are what is recorded of the steps so far.
	Install time.Time        `json:"install"`
	Begun   time.Time        `json:"begun"`
	Timings []project.Timing `json:"timings,omitempty"`
	Tests   []junit.Summary  `json:"tests,omitempty"`
}

// Result returns the result of a step that had ended.
func (p Paused) Result() *sls.StepResult {
	res := &sls.StepResult{SLS: p.Step, Started: p.Begun}
	for _, s := range p.Done.States {
		res.States = append(res.States, sls.StateResult{Outcome: sls.Succeeded, Changed: s.Changed, Skipped: !s.Ran, Started: s.Started, Duration: s.Duration})
	}
	return res
}

// DoneOf returns what a step has done that has ended without a failure.
func DoneOf(res *sls.StepResult) (out sls.Done) {
	for i, s := range res.States {
		out.States = append(out.States, sls.DoneState{N: i, Ran: !s.Skipped, Changed: s.Changed, Started: s.Started, Duration: s.Duration})
	}
	return out
}

// maxChanged is how many changed files Changed names.
const maxChanged = 3

// Changed names a few files of a working copy, except .git, that were created, written or renamed, or whose folder lost a name, after a time.
func Changed(dir string, after time.Time) (names []string) {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return nil //nolint:nilerr // it is for people: what cannot be read is not named
		}
		if d.IsDir() && p == filepath.Join(dir, ".git") {
			return fs.SkipDir
		}
		var st unix.Stat_t
		if unix.Lstat(p, &st) == nil && time.Unix(st.Ctim.Unix()).After(after) {
			if name, err := filepath.Rel(dir, p); err == nil {
				if slices.Contains(names, filepath.Dir(name)) { // its own change says more than its folder's
					names = slices.DeleteFunc(names, func(n string) bool { return n == filepath.Dir(name) })
				}
				names = append(names, name)
			}
		}
		if len(names) > maxChanged {
			names[maxChanged] = "…"
			return errors.New("enough")
		}
		return nil
	})
	return names
}
