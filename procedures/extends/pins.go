package extends

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// maxPins is the number of releases of a project that are kept; the oldest are removed.
const maxPins = 500

// Pins are the commits of the entries of a project's releases when they were first deployed, in a file.
type Pins struct {
	FS   vfs.FS
	Path string
}

// release is one line of the file.
type release struct {
	Code project.Commit            `json:"code"`
	Pins map[string]project.Commit `json:"pins"`
}

// Of returns the pins of one commit; nil if it has not been deployed yet.
func (p Pins) Of(code project.Commit) (map[string]project.Commit, error) {
	all, err := p.read()
	for _, r := range all {
		if r.Code == code {
			return r.Pins, err
		}
	}
	return nil, err
}

// Keep records the commits of a commit's entries, and returns the commits that recorded releases need, by entry without revision. It is durable on
// return.
func (p Pins) Keep(code project.Commit, pins map[string]project.Commit) (needed map[Parent]map[project.Commit]bool, err error) {
	all, err := p.read()
	if err != nil {
		return nil, err
	}
	known := false
	for _, r := range all {
		known = known || r.Code == code
	}
	if !known {
		all = append(all, release{code, pins})
		all = all[max(0, len(all)-maxPins):]
		text, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		if err := vfs.MkdirAll(p.FS, filepath.Dir(p.Path), 0o700); err != nil {
			return nil, fault.New(fault.Internal, "note the commits of recipes", "%w", err)
		}
		if err := vfs.WriteFileAtomic(p.FS, p.Path, append(text, '\n'), 0o600); err != nil {
			return nil, fault.New(fault.Internal, "note the commits of recipes", "%w", err)
		}
	}
	needed = map[Parent]map[project.Commit]bool{}
	for _, r := range all {
		for entry, c := range r.Pins {
			of, err := ParseEntry(entry)
			if err != nil {
				return nil, fault.New(fault.Internal, "read the commits of recipes", "%s: %w", p.Path, err)
			}
			of.Rev = ""
			if needed[of] == nil {
				needed[of] = map[project.Commit]bool{}
			}
			needed[of][c] = true
		}
	}
	return needed, nil
}

// Drop removes the records of a deleted project. It is durable on return.
func (p Pins) Drop() error {
	err := p.FS.Remove(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = vfs.SyncDir(p.FS, filepath.Dir(p.Path))
	}
	return err
}

func (p Pins) read() (all []release, err error) {
	text, err := vfs.ReadFile(p.FS, p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "read the commits of recipes", "%s: %w", p.Path, err)
	}
	return all, nil
}
