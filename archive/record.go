package archive

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"corpus-git/archive/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// Schema is the version of Record that this program writes if possible, schemaShares that of an archive that shares a file with others,
// which earlier programs don't know. A record of a later version is an error.
const (
	Schema       = 1
	schemaShares = 2
)

const (
	recordFile   = "deployment.json"
	manifestFile = "manifest"
	tmpPrefix    = ".tmp-"
	spareDir     = ".spare"
)

// Verdict is the result of the deployment that an archive was made for.
type Verdict string

const (
	// Pending is the verdict until SetVerdict: the deployment is running, or a crash interrupted it.
	Pending Verdict = ""
	// Good is a deployment that went live. Only these count for retention.
	Good Verdict = "good"
	// Failed is a deployment that failed and was not rolled back.
	Failed Verdict = "failed"
	// RolledBack is a deployment that failed and was rolled back.
	RolledBack Verdict = "rolled back"
)

// Commits is one commit of each repository; "" if there is none.
type Commits struct {
	Code   string `json:"code,omitempty"`
	Pillar string `json:"pillar,omitempty"`
}

// Facts is what the caller knows about the deployment that an archive is made for.
type Facts struct {
	ID       string    `json:"id"`      // the deployment's
	Project  string    `json:"project"` // its name
	At       time.Time `json:"at"`      // of the deployment; names the archive
	Held     Commits   `json:"held"`    // live before the deployment: what this archive holds
	Incoming Commits   `json:"incoming"`
	By       string    `json:"by,omitempty"`      // who asked
	Trigger  string    `json:"trigger,omitempty"` // how it was asked for
}

// Sizes are totals of a tree. Disk is allocated bytes, Bytes the sizes of files.
type Sizes struct {
	Files int64 `json:"files"` // everything that is not a folder
	Dirs  int64 `json:"dirs"`
	Bytes int64 `json:"bytes"`
	Disk  int64 `json:"disk"`
}

// headerSize is about how much an entry takes in a tar besides its content.
const headerSize = 2 << 10

// tar estimates the size of a tar of the tree, too large rather than too small.
func (z Sizes) tar() int64 { return z.Bytes + headerSize*(z.Files+z.Dirs) }

// Record is deployment.json: the state of one archive. It is written atomically and durably.
type Record struct {
	Schema int `json:"schema"`
	// Seq is one more than that of the previous archive, and gives the order of archives regardless of the clock. 0 in archives of earlier
	// versions.
	Seq int64 `json:"seq,omitempty"`
	Facts
	Verdict Verdict `json:"verdict,omitempty"`
	Pinned  bool    `json:"pinned,omitempty"`
	// Trees names the folders that existed when the archive was made, of "project" and "pillar".
	Trees []string  `json:"trees"`
	Sizes Sizes     `json:"sizes"`
	Made  MakeStats `json:"made"`
	// Rollback is set from the moment a rollback to this archive begins.
	Rollback *Rollback `json:"rollback,omitempty"`
	// Packed is set from the moment the trees are files instead of folders.
	Packed *Packed `json:"packed,omitempty"`
	// Measured is the disk space of folders that no manifest describes: failed trees, dumps. See Measure.
	Measured map[string]Measured `json:"measured,omitempty"`
}

// MakeStats describes how an archive was made.
type MakeStats struct {
	Took time.Duration `json:"took_ns"`
	// Copied files were read, Kept ones were reused from the spare tree.
	Copied      int64 `json:"copied"`
	CopiedBytes int64 `json:"copied_bytes"`
	Kept        int64 `json:"kept"`
	// Changed files differ from the archive before; -1 if there is none to compare with.
	Changed int64      `json:"changed"`
	Notes   tree.Notes `json:"notes,omitzero"`
}

// Rollback is the state of a rollback.
type Rollback struct {
	Begun time.Time `json:"begun"`
	// Done is zero until the rollback has ended; while it is zero, the rollback must be run again.
	Done time.Time `json:"done,omitzero"`
	// Method is "exchange" (the archived tree itself went live) or "in place" (what differed was copied back).
	Method string     `json:"method,omitempty"`
	Proof  tree.Proof `json:"proof,omitzero"`
	// FailedKept reports whether the failed tree is beside this record.
	FailedKept bool `json:"failed_kept,omitempty"`
}

// Archive is one archive as listed.
type Archive struct {
	Record
	// Path is the archive's folder.
	Path string `json:"path"`
	// Own is the disk space of the archive, the allocated bytes of everything in its folder: what deleting it frees. If a file system
	// shares extents between copies (reflinks), deleting may free less.
	Own int64 `json:"own"`
	// Estimated reports that Own is partly estimated, for a folder that Measure has not walked yet.
	Estimated bool `json:"estimated,omitempty"`
	// Shared is what it shares with other archives: the file of a packed tree that is the base of several. It is freed with the last of
	// them. Nothing is ever shared with the live tree.
	Shared int64            `json:"shared"`
	shared map[uint64]int64 // the same by inode
	// Whole reports that every archived tree is here (none was made live by a rollback), FailedTree that the failed tree is.
	Whole      bool `json:"whole"`
	FailedTree bool `json:"failed_tree"`
	// Snapshot is the scan of the live trees by Make; nil if Make did not make this archive now.
	Scan *tree.Snapshot `json:"-"`
}

// treePath returns the path of an archived tree, failedPath that of a failed one.
func (a Archive) treePath(name string) string   { return filepath.Join(a.Path, name) }
func (a Archive) failedPath(name string) string { return filepath.Join(a.Path, name+failedSuffix) }

const failedSuffix = ".failed"

// List returns all archives, newest first; none for a project without archives. A folder without a readable record is not an archive; Sweep
// handles it.
func (s *Store) List() ([]Archive, error) {
	names, err := s.fs.ReadDir(s.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "list archives", "%w", err)
	}
	var out []Archive
	for _, n := range names {
		if _, _, ok := layout.ParseArchiveName(n); !ok {
			continue
		}
		a, err := s.read(filepath.Join(s.dir(), n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b Archive) int {
		return cmp.Or(cmp.Compare(b.Seq, a.Seq), b.At.Compare(a.At), strings.Compare(b.Path, a.Path))
	})
	return out, nil
}

// Show finds one archive by its deployment's ID, by the folder's name, or by a unique prefix of the ID.
func (s *Store) Show(id string) (Archive, error) {
	all, err := s.List()
	if err != nil {
		return Archive{}, err
	}
	var found []Archive
	for _, a := range all {
		if a.ID == id || filepath.Base(a.Path) == id {
			return a, nil
		}
		if len(id) >= 4 && strings.HasPrefix(a.ID, id) {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Archive{}, fault.New(fault.Usage, "find archive", "%w: %q", ErrNotFound, id).
			WithHint("corpus-git archives list %s names them", s.project.Name())
	}
	return Archive{}, fault.New(fault.Usage, "find archive", "%q fits %d archives", id, len(found)).WithHint("type more of the ID")
}

// ErrNotFound is wrapped if no archive has the given ID.
var ErrNotFound = errors.New("no such archive")

func (s *Store) read(path string) (Archive, error) {
	b, err := vfs.ReadFile(s.fs, filepath.Join(path, recordFile))
	if err != nil {
		return Archive{}, fmt.Errorf("read archive: %w", err)
	}
	a := Archive{Path: path}
	if err := json.Unmarshal(b, &a.Record); err != nil {
		return Archive{}, fault.New(fault.Internal, "read archive", "%s: %w", filepath.Join(path, recordFile), err)
	}
	if a.Schema != Schema && a.Schema != schemaShares {
		return Archive{}, fault.New(fault.Refused, "read archive", "%s has schema %d, this program knows %d", path, a.Schema, schemaShares).
			WithHint("a newer corpus-git wrote it: use that one")
	}
	return s.describe(a)
}

// describe fills in what the content of an archive's folder shows.
func (s *Store) describe(a Archive) (Archive, error) {
	names, err := s.fs.ReadDir(a.Path)
	if err != nil {
		return Archive{}, fmt.Errorf("read archive: %w", err)
	}
	var held []string
	unpacked := false
	packed, files := 0, map[string]bool{}
	for _, t := range a.Trees {
		for _, f := range a.packedFiles(t) {
			files[filepath.Base(f)] = true
		}
	}
	for _, n := range names {
		st, err := s.fs.Lstat(filepath.Join(a.Path, n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Archive{}, fmt.Errorf("read archive: %w", err)
		}
		of, isFailed := strings.CutSuffix(n, failedSuffix)
		isFailed = isFailed && slices.Contains(trees(), of)
		if files[n] {
			packed++
		}
		a.FailedTree = a.FailedTree || isFailed
		switch m, ok := a.Measured[n]; {
		case n == reserveFile: // until the verdict
		case n == rollbackFile:
			unpacked = true
		case !st.IsDir() && st.Nlink > 1 && strings.HasSuffix(n, packedSuffix):
			a.share(st.Ino, st.Allocated())
		case !st.IsDir():
			a.Own += st.Allocated()
		case slices.Contains(a.Trees, n):
			held = append(held, n)
		case ok && m.Ino == st.Ino && m.Mtime == st.Mtime:
			a.Own += m.Disk
		default:
			a.Estimated = true
			if isFailed && of == layout.ArchivedTree {
				a.Own += a.Sizes.Disk // about the size of the tree it was made from
			}
		}
	}
	// A rollback may have exchanged one tree and copied the other back in place; then the archive is not whole.
	every := len(held) == len(a.Trees)
	a.Estimated = a.Estimated || len(held) > 0 && !every
	if len(held) > 0 && (every || slices.Contains(held, layout.ArchivedTree)) {
		a.Own += a.Sizes.Disk
	}
	a.Whole = (every && (len(held) > 0 || a.Rollback == nil)) || (a.Packed != nil && packed == len(files))
	if a.Rollback != nil && (a.Rollback.Done.IsZero() || unpacked) {
		a.Whole = false // in the middle of the exchange the name may be that of the failed tree, also if another machine ended it
	}
	return a, nil
}

// write writes a record durably.
func (s *Store) write(path string, r Record) error {
	b, err := r.encode()
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(s.fs, filepath.Join(path, recordFile), b, 0o600)
}

// encode returns the content of deployment.json.
func (r Record) encode() ([]byte, error) {
	r.Schema = Schema
	if r.Packed.shares() {
		r.Schema = schemaShares
	}
	b, err := json.MarshalIndent(r, "", "  ")
	return append(b, '\n'), err
}

// update changes one record durably.
func (s *Store) update(id, op string, change func(*Record) error) (Archive, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.Show(id)
	if err != nil {
		return Archive{}, err
	}
	if err := change(&a.Record); err != nil {
		return Archive{}, err
	}
	end, err := s.cfg.Begin()
	if err != nil {
		return Archive{}, explain(op, err)
	}
	defer end()
	if err := s.write(a.Path, a.Record); err != nil {
		return Archive{}, explain(op, err)
	}
	return a, nil
}

// SetVerdict records the result of the deployment; it is durable on return. Repeating it is not an error.
func (s *Store) SetVerdict(id string, v Verdict) error {
	a, err := s.update(id, "set verdict", func(r *Record) error {
		switch v {
		case Pending, Good, Failed, RolledBack:
			r.Verdict = v
			return nil
		}
		return fault.New(fault.Internal, "set verdict", "unknown verdict %q", v)
	})
	if err == nil && v != Pending {
		s.releaseSpace(a)
	}
	return err
}

// Pin excludes an archive from every rotation until Unpin; it is durable on return.
func (s *Store) Pin(id string) (Archive, error) {
	return s.update(id, "pin", func(r *Record) error { r.Pinned = true; return nil })
}

// Unpin undoes Pin.
func (s *Store) Unpin(id string) (Archive, error) {
	return s.update(id, "unpin", func(r *Record) error { r.Pinned = false; return nil })
}
