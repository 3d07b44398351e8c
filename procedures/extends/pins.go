package extends

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

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

// Release is what is recorded of a release.
type Release struct {
	// Pins are the commits of the entries.
	Pins map[string]project.Commit `json:"pins"`
	// Parts are set for a release that came in a bundle: of each commit in Pins the commit with what is needed of it, which alone is stored.
	Parts map[project.Commit]project.Commit `json:"parts,omitempty"`
}

// line is one release in the file.
type line struct {
	Code project.Commit `json:"code"`
	Release
}

// Of returns the record of one commit; nil if it has not been deployed yet.
func (p Pins) Of(code project.Commit) (*Release, error) {
	all, err := p.read()
	for _, r := range all {
		if r.Code == code {
			return &r.Release, err
		}
	}
	return nil, err
}

// Latest returns the newest records, the newest first.
func (p Pins) Latest(limit int) (out []Release, err error) {
	all, err := p.read()
	for _, r := range slices.Backward(all) {
		if len(out) == limit {
			break
		}
		out = append(out, r.Release)
	}
	return out, err
}

// Needed are the commits that recorded releases need.
type Needed struct {
	// Projects are those of projects of this server, Stored those that are stored with the project itself: from URLs, and out of bundles.
	Projects map[project.Name]map[project.Commit]bool
	Stored   map[project.Commit]bool
}

// Keep records a release, unless it is recorded, and returns what the recorded releases need. It is durable on return. Two calls, of Keep or Receive, must not run
// at the same time for one file.
func (p Pins) Keep(code project.Commit, r Release) (needed Needed, err error) {
	all, err := p.read()
	if err != nil {
		return needed, err
	}
	if !slices.ContainsFunc(all, func(l line) bool { return l.Code == code }) {
		if all, err = p.write(append(all, line{code, r})); err != nil {
			return needed, err
		}
	}
	needed = Needed{Projects: map[project.Name]map[project.Commit]bool{}, Stored: map[project.Commit]bool{}}
	for _, r := range all {
		for entry, c := range r.Pins {
			of, err := ParseEntry(entry)
			switch {
			case err != nil:
				return needed, fault.New(fault.Internal, "read the commits of recipes", "%s: %w", p.Path, err)
			case r.Parts != nil:
				needed.Stored[r.Parts[c]] = true
			case of.URL != "":
				needed.Stored[c] = true
			default:
				if needed.Projects[of.Name] == nil {
					needed.Projects[of.Name] = map[project.Commit]bool{}
				}
				needed.Projects[of.Name][c] = true
			}
		}
	}
	return needed, nil
}

// Agrees refuses a release with other commits than those that are recorded for the same commit here.
func (p Pins) Agrees(code project.Commit, pins map[string]project.Commit) error {
	own, err := p.Of(code)
	if err != nil || own == nil || maps.Equal(own.Pins, pins) {
		return err
	}
	for _, entry := range slices.Sorted(maps.Keys(own.Pins)) {
		if own.Pins[entry] != pins[entry] {
			return fault.New(fault.Refused, "", "%s was deployed here before, with %s at %s, and the bundle names %s", code.Short(), entry, own.Pins[entry].Short(), pins[entry].Short()).
				WithHint("%s", hintKept)
		}
	}
	return fault.New(fault.Refused, "", "%s was deployed here before, with fewer recipes than the bundle names", code.Short()).WithHint("%s", hintKept)
}

const hintKept = "a release keeps its recipes: push a new commit, which may be an empty one"

// Receive records a release that came in a bundle; it replaces a record with the same commits, and refuses as Agrees does. It is durable on return. See Keep.
func (p Pins) Receive(code project.Commit, r Release) error {
	if err := p.Agrees(code, r.Pins); err != nil {
		return err
	}
	all, err := p.read()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(l line) bool { return l.Code == code })
	switch {
	case i < 0:
		all = append(all, line{code, r})
	case maps.Equal(all[i].Parts, r.Parts):
		return nil
	default:
		all[i].Release = r
	}
	_, err = p.write(all)
	return err
}

// write replaces the file, without the oldest records if there are too many, and returns what it then has.
func (p Pins) write(all []line) ([]line, error) {
	all = all[max(0, len(all)-maxPins):]
	text, err := json.Marshal(all)
	if err == nil {
		err = vfs.MkdirAll(p.FS, filepath.Dir(p.Path), 0o700)
	}
	if err == nil {
		err = vfs.WriteFileAtomic(p.FS, p.Path, append(text, '\n'), 0o600)
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "note the commits of recipes", "%w", err)
	}
	return all, nil
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

func (p Pins) read() (all []line, err error) {
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
