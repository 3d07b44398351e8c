package undo

import (
	"slices"
	"strings"
)

// Item is one thing that was changed.
type Item struct {
	// Noun is file, folder, link, or that of an action; Name its path or name.
	Noun string `json:"noun,omitempty"`
	Name string `json:"name"`
	// State made the change.
	State State `json:"state,omitzero"`
	// Why is what prevented undoing it.
	Why string `json:"why,omitempty"`
}

// Report is the result of an undo.
type Report struct {
	// Undone were restored and verified by this call; Unchanged needed nothing.
	Undone    []Item `json:"undone,omitempty"`
	Unchanged []Item `json:"unchanged,omitempty"`
	// Left were changed by someone else since then, and were left unchanged.
	Left []Item `json:"left,omitempty"`
	// Failed could not be restored.
	Failed []Item `json:"failed,omitempty"`
	// Manual can't be undone automatically.
	Manual []Item `json:"manual,omitempty"`
}

// Whole reports whether everything that can be restored was restored.
func (r Report) Whole() bool { return len(r.Left) == 0 && len(r.Failed) == 0 }

// Once returns the report of several logs with each thing in it once: a thing that was changed several times is listed once, and as undone if it
// is neither left nor failed in any of them.
func (r Report) Once() Report {
	seen := map[string]bool{}
	once := func(list []Item) (out []Item) {
		for _, i := range list {
			key := i.Name
			if !strings.HasPrefix(key, "/") { // a path may be a file at one time and a link at another
				key = i.Noun + "\x00" + key
			}
			if !seen[key] {
				seen[key] = true
				out = append(out, i)
			}
		}
		return out
	}
	r.Failed = once(r.Failed)
	r.Left = once(r.Left)
	r.Undone = once(r.Undone)
	r.Unchanged = once(r.Unchanged)
	listed := map[Item]bool{}
	r.Manual = slices.DeleteFunc(slices.Clone(r.Manual), func(i Item) bool { // each release ran it
		again := listed[i]
		listed[i] = true
		return again
	})
	return r
}
