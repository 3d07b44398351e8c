package mirror

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

// lockVersion is the format of the lock.
const lockVersion = 1

// LockedRepository is what a revision was when it was pinned.
type LockedRepository struct {
	URL      string `json:"url"`
	Revision string `json:"revision"`
	// Ref is the branch or tag that the revision named, "" for a commit. Object is what it pointed to, a tag or a commit, Commit that commit.
	Ref    string `json:"ref,omitempty"`
	Object string `json:"object"`
	Commit string `json:"commit"`
	// SignedBy is who signed Object, or the key, if a signature was required.
	SignedBy string `json:"signed_by,omitempty"`
}

// LockedFile is what a file was when it was pinned.
type LockedFile struct {
	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// Lock is what a list's entries are pinned to, by their paths.
type Lock struct {
	Version      int                         `json:"version"`
	Repositories map[string]LockedRepository `json:"repositories"`
	Files        map[string]LockedFile       `json:"files"`
	Packages     map[string]LockedPackages   `json:"packages,omitempty"`
}

// LockName returns the lock of a list: repos.lock for repos.yaml.
func LockName(list string) string { return strings.TrimSuffix(list, filepath.Ext(list)) + ".lock" }

// ReadLock reads a lock; a missing one is empty.
func ReadLock(name string) (*Lock, error) {
	l := &Lock{Version: lockVersion}
	text, err := os.ReadFile(name) //nolint:gosec // beside the list that the operator names
	if err == nil && len(text) > maxList {
		err = fault.New(fault.Usage, "", "%s is longer than %d bytes", name, maxList)
	}
	if err == nil {
		if jerr := json.Unmarshal(text, l); jerr != nil {
			err = fault.New(fault.Usage, "", "%s: %w", name, jerr).WithHint("take it back from where the list is versioned")
		} else if l.Version != lockVersion {
			err = fault.New(fault.Usage, "", "%s has the format %d, and this release reads %d", name, l.Version, lockVersion)
		} else if p := l.invalid(); p != "" {
			err = fault.New(fault.Usage, "", "%s: the pin of %s is not complete, or was changed", name, printable.Clip(p, 200)).WithHint("take it back from where the list is versioned")
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if l.Repositories == nil {
		l.Repositories = map[string]LockedRepository{}
	}
	if l.Files == nil {
		l.Files = map[string]LockedFile{}
	}
	if l.Packages == nil {
		l.Packages = map[string]LockedPackages{}
	}
	return l, nil
}

// leads reports whether a ref is one that the revision names: "" for a hash.
func (r LockedRepository) leads() bool {
	if plumbing.IsHash(r.Revision) {
		return r.Ref == ""
	}
	return r.Ref != "" && (r.Ref == r.Revision || r.Ref == "refs/tags/"+r.Revision || r.Ref == "refs/heads/"+r.Revision) && plumbing.ReferenceName(r.Ref).Validate() == nil
}

// invalid returns the path of a pin whose hash or ref is not valid, "" if all are.
func (l *Lock) invalid() string {
	for p, r := range l.Repositories {
		if !plumbing.IsHash(r.Object) || !plumbing.IsHash(r.Commit) || !r.leads() {
			return p
		}
	}
	for p, f := range l.Files {
		if !validSum.MatchString(f.SHA256) {
			return p
		}
	}
	for p, x := range l.Packages {
		if !validSum.MatchString(x.Release) {
			return p
		}
	}
	return ""
}

// text returns the content of the lock's file.
func (l *Lock) text() ([]byte, error) {
	text, err := json.MarshalIndent(l, "", "  ")
	return append(text, '\n'), err
}

// write replaces the lock durably.
func (l *Lock) write(name string) error {
	text, err := l.text()
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(vfs.OS{}, name, text, 0o644)
}
