package refs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"

	"github.com/go-git/go-git/v5/plumbing"
)

// Change is one change of a ref.
type Change struct {
	Name string
	// Old is the expected value. Zero: it must not exist.
	Old plumbing.Hash
	// New is the new value. Zero: it is deleted. Equal to Old: it is locked and compared, and stays.
	New plumbing.Hash
	// Any ignores Old, and whether the ref exists.
	Any bool
}

// ConflictError reports that a ref does not have the value that a change expects.
type ConflictError struct {
	Name       string
	Want, Have plumbing.Hash
}

func (e *ConflictError) Error() string {
	name := printable.Line(e.Name)
	switch {
	case e.Want.IsZero():
		return fmt.Sprintf("%s exists already, at %s", name, e.Have)
	case e.Have.IsZero():
		return fmt.Sprintf("%s does not exist, and was expected at %s", name, e.Want)
	default:
		return fmt.Sprintf("%s is at %s, and was expected at %s", name, e.Have, e.Want)
	}
}

// CompareAndSwap moves one ref from old to new. Zero old: it must not exist; zero new: it is deleted.
func (s *Store) CompareAndSwap(name string, old, new plumbing.Hash) error {
	return s.Update([]Change{{Name: name, Old: old, New: new}})
}

// update is a change under way.
type update struct {
	Change
	lock *lockFile
	have Ref
	set  bool // had a file or a line before
}

// Update makes all of the changes or none: it takes all locks, compares all old values, writes all new ones, and only then publishes them.
// It is durable when Update returns nil. After an error following the first rename (a failing disk) some refs may have changed; the error
// reports that.
func (s *Store) Update(changes []Change) error {
	p, err := s.Prepare(changes)
	if err != nil {
		return err
	}
	return p.Commit()
}

// Prepared are changes that are checked, locked and written, but not published. Until Commit or Abort, one of which is called once, nobody
// else can change these refs: an attempt gets a LockedError.
//
// Commit is Sync, Publish and Settle. A caller with more to make durable calls these one by one, each once, so that one journal commit of
// the file system covers what is written between them.
type Prepared struct {
	s   *Store
	ups []*update
	// written and removed are what Publish did and Settle makes durable.
	written []string
	removed map[string]bool
	// published reports that Publish was called.
	published bool
	// gone are files that Publish replaced or removed; they are let go when that is durable, so that no sync waits for it.
	gone vfs.Held
}

// Prepare returns the first part of Update, everything that may refuse the changes. beside are refs that are about to be created elsewhere,
// which the changes must not clash with. A crash leaves locks, see SweepLocks.
func (s *Store) Prepare(changes []Change, beside ...string) (*Prepared, error) {
	p, err := s.Stage(changes, beside...)
	if err != nil {
		return nil, err
	}
	if err := p.Sync(0); err != nil {
		p.Abort()
		return nil, err
	}
	return p, nil
}

// Stage is Prepare that leaves syncing to Sync.
func (s *Store) Stage(changes []Change, beside ...string) (_ *Prepared, err error) {
	p := &Prepared{s: s, ups: make([]*update, len(changes))}
	ups := p.ups
	for i, c := range changes {
		if err := CheckName(c.Name); err != nil && !(c.New.IsZero() && wellFormed(c.Name)) {
			return nil, err
		}
		ups[i] = &update{Change: c}
	}
	slices.SortFunc(ups, func(a, b *update) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(ups); i++ {
		if ups[i].Name == ups[i-1].Name {
			return nil, fmt.Errorf("%s is changed twice in one update", ups[i].Name)
		}
	}
	defer func() {
		if err != nil {
			p.Abort()
		}
	}()
	if err := s.clashes(ups, beside); err != nil {
		return nil, err
	}
	for _, u := range ups {
		if u.lock, err = s.lock(u.Name); err != nil {
			return nil, s.lockError(ups, u, err)
		}
	}
	for _, u := range ups {
		if err := s.verify(u); err != nil {
			return nil, err
		}
	}
	// Again under the locks: a ref may have been created in between.
	if err := s.clashes(ups, beside); err != nil {
		return nil, err
	}
	return p, write(ups)
}

// Commit publishes the changes. They are durable when it returns nil; see Update for errors.
func (p *Prepared) Commit() error {
	err := p.Sync(0)
	if err == nil {
		err = p.Publish()
	}
	if err != nil {
		p.Abort()
		return err
	}
	return p.Settle(0)
}

// Sync makes the new values durable, each in its lock. Those on the file system covered, given by its device number, already are: the
// caller has synced it since Stage; 0 is none.
func (p *Prepared) Sync(covered uint64) error {
	var all []*update
	for _, u := range p.ups {
		if u.moves() && !u.New.IsZero() {
			all = append(all, u)
		}
	}
	if len(all) <= writers {
		for _, u := range all {
			if err := u.lock.sync(covered); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, writers)
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for n := w; n < len(all) && errs[w] == nil; n += writers {
				errs[w] = all[n].lock.sync(covered)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// Publish makes the changes visible; it fails if a new value is not durable. The changes are durable after Settle. After an error call
// Abort; as in Update some may have changed.
func (p *Prepared) Publish() error {
	if err := p.s.apply(p); err != nil {
		return err
	}
	p.unlock()
	p.published = true
	return nil
}

// Settle makes durable what Publish published, and removes folders that are now empty. What is on the file system covered, given by its device
// number, already is: the caller has synced it since Publish; 0 is none.
func (p *Prepared) Settle(covered uint64) error {
	defer p.gone.Release()
	err := p.s.syncNames(p.written, p.removed, covered)
	for _, u := range p.ups {
		if u.New.IsZero() {
			p.s.prune(u.Name)
		}
	}
	return err
}

// Abort releases the locks, and changes nothing. After Publish it does nothing.
func (p *Prepared) Abort() {
	if p.published {
		return
	}
	p.gone.Release()
	p.unlock()
	for _, u := range p.ups {
		p.s.prune(u.Name)
	}
}

func (p *Prepared) unlock() {
	for _, u := range p.ups {
		if u.lock != nil {
			u.lock.unlock()
		}
	}
}

// writers is how many locks are written at once: a disk makes many files durable in the time of one.
const writers = 32

// write writes the new values, each into its lock.
func write(ups []*update) error {
	for _, u := range ups {
		if !u.moves() || u.New.IsZero() {
			continue
		}
		if _, err := u.lock.file.Write([]byte(u.New.String() + "\n")); err != nil {
			return err
		}
	}
	return nil
}

func (u *update) moves() bool { return u.New != u.have.Hash }

// lockError explains a lock that failed because a ref exists where a folder is needed.
func (s *Store) lockError(ups []*update, u *update, err error) error {
	var clash *ClashError
	if errors.As(err, &clash) {
		for _, o := range ups {
			if o.Name == clash.With && o.New.IsZero() {
				return fmt.Errorf("%w: delete %s in an update before", err, clash.With)
			}
		}
	}
	return err
}

// SymbolicError reports a symbolic ref, which is not changed itself.
type SymbolicError struct{ Name, To string }

func (e *SymbolicError) Error() string {
	return fmt.Sprintf("%s is a symbolic ref, and stands for %s", e.Name, e.To)
}

// verify compares a ref, which is locked, with what the change expects.
func (s *Store) verify(u *update) error {
	r, ok, err := s.read(u.Name)
	if err != nil && !(u.Any && errors.Is(err, ErrCorrupt)) {
		return err
	}
	if r.Symbolic != "" {
		return &SymbolicError{u.Name, r.Symbolic}
	}
	u.have, u.set = r, ok
	if !u.Any && r.Hash != u.Old {
		return &ConflictError{u.Name, u.Old, r.Hash}
	}
	return nil
}

// clashes finds refs that would be a folder of another's name, among the changes, existing refs, and those about to be created.
func (s *Store) clashes(ups []*update, beside []string) error {
	made := map[string]bool{}
	for _, name := range beside {
		made[name] = true
	}
	gone := map[string]bool{}
	for _, u := range ups {
		if u.New.IsZero() {
			gone[u.Name] = true
		} else {
			made[u.Name] = true
		}
	}
	for _, u := range ups {
		if u.New.IsZero() {
			continue
		}
		for i := strings.LastIndexByte(u.Name, '/'); i > len("refs"); i = strings.LastIndexByte(u.Name[:i], '/') {
			above := u.Name[:i]
			if made[above] {
				return &ClashError{u.Name, above}
			}
			if gone[above] || !wellFormed(above) {
				continue // a folder may have a name that no ref has: refs/tags/a./b
			}
			if _, ok, err := s.read(above); err != nil {
				return err
			} else if ok {
				return &ClashError{u.Name, above}
			}
		}
		for _, name := range beside {
			if strings.HasPrefix(name, u.Name+"/") {
				return &ClashError{u.Name, name}
			}
		}
		below, err := s.List(u.Name + "/")
		if err != nil {
			return err
		}
		for _, r := range below {
			if !gone[r.Name] {
				return &ClashError{u.Name, r.Name}
			}
		}
	}
	return nil
}

// apply publishes the changes. Deletions come first, and packed-refs before the files, so that no old value reappears.
func (s *Store) apply(p *Prepared) (err error) {
	ups, moved := p.ups, 0
	defer func() {
		if err != nil && moved > 0 {
			err = fmt.Errorf("%d of %d refs have moved: %w", moved, len(ups), err)
		}
	}()
	deletes := slices.ContainsFunc(ups, func(u *update) bool { return u.New.IsZero() && u.set })
	if deletes {
		// Held until the files are gone: otherwise a ref could be packed just before its file is removed, and reappear.
		s.packing.Lock()
		defer s.packing.Unlock()
		l, err := s.lock("packed-refs")
		if err != nil {
			return err
		}
		defer l.unlock()
		if err := s.unpack(ups); err != nil {
			return err
		}
	}
	p.removed = map[string]bool{} // the folders of refs
	for _, u := range ups {
		if !u.New.IsZero() || !u.set {
			continue
		}
		p.gone.Keep(s.fs(), s.path(u.Name))
		if err := s.fs().Remove(s.path(u.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		moved++
		p.removed[filepath.Dir(s.path(u.Name))] = true
		u.lock.unlock() // a ref may be created in the place of its folder
	}
	for _, u := range ups {
		if u.New.IsZero() || !u.moves() {
			continue
		}
		if u.set {
			p.gone.Keep(s.fs(), s.path(u.Name))
		}
		if err := u.lock.publish(); err != nil {
			return err
		}
		moved++
		p.written = append(p.written, u.Name)
	}
	return nil
}

// unpack removes deleted refs from packed-refs, whose lock is held and stays.
func (s *Store) unpack(ups []*update) error {
	p, err := s.packedRefs()
	if err != nil {
		return err
	}
	next := &packed{complete: p.complete}
	for _, r := range p.refs {
		i, ok := slices.BinarySearchFunc(ups, r.Name, func(u *update, n string) int { return cmp.Compare(u.Name, n) })
		if !ok || !ups[i].New.IsZero() {
			next.refs = append(next.refs, r)
		}
	}
	if len(next.refs) == len(p.refs) {
		return nil
	}
	// Not renamed from the lock, which must stay.
	return vfs.WriteFileAtomic(s.fs(), s.path("packed-refs"), next.format(), 0o644)
}
