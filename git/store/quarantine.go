package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"corpus-git/git/fsck"
	"corpus-git/git/pack"

	"github.com/go-git/go-git/v5/plumbing"
)

// quarantinePrefix is git's own prefix for such folders; git prune removes those that were left.
const quarantinePrefix = "incoming-"

// Quarantine holds incoming objects, which are not visible outside of it until Migrate. It reads them, and all objects of the repository.
type Quarantine struct {
	db  *DB
	id  string
	dir string
	src *source
	view

	mu       sync.Mutex
	ended    bool
	ingested *Ingested
	unpack   bool // the pack is small enough to become loose objects
	synced   bool // the content is durable
	staged   []string

	settling  sync.Mutex // held by settle
	unsettled bool       // the index's name is not durable yet
	clearing  sync.WaitGroup
}

// NewQuarantine creates the folder objects/incoming-<id>. id is one path element of letters, digits, '-' and '_'. It returns an error if the
// folder exists.
func (db *DB) NewQuarantine(id string) (*Quarantine, error) {
	q, err := db.quarantine(id)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(q.dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(q.dir, "pack"), 0o777); err != nil {
		return nil, errors.Join(err, os.RemoveAll(q.dir))
	}
	return q, nil
}

// Quarantine opens an existing one, to migrate or discard it after a crash. The error is fs.ErrNotExist if it was completely migrated or
// discarded.
func (db *DB) Quarantine(id string) (*Quarantine, error) {
	q, err := db.quarantine(id)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(q.dir); err != nil {
		return nil, err
	}
	return q, q.src.rescan()
}

func (db *DB) quarantine(id string) (*Quarantine, error) {
	ok := id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
	if !ok {
		return nil, fmt.Errorf("%q is not a name for a quarantine", id)
	}
	dir := filepath.Join(db.main.dir, quarantinePrefix+id)
	src := &source{dir: dir, cache: db.main.cache}
	src.packs.Store(&[]*pack.Pack{})
	return &Quarantine{db: db, id: id, dir: dir, src: src, view: append(view{src}, db.view...)}, nil
}

// sweep removes stale quarantines.
func (db *DB) sweep() error {
	list, err := os.ReadDir(db.main.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		id, ok := strings.CutPrefix(e.Name(), quarantinePrefix)
		if !ok || !e.IsDir() || db.opt.KeepQuarantine != nil && db.opt.KeepQuarantine(id) {
			continue
		}
		st, err := e.Info()
		if err != nil {
			continue
		}
		if db.opt.StaleAfter > 0 && db.opt.Now().Sub(st.ModTime()) < db.opt.StaleAfter {
			continue
		}
		if err := os.RemoveAll(filepath.Join(db.main.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// ID returns the ID given to NewQuarantine.
func (q *Quarantine) ID() string { return q.id }

// IngestOptions are the options of Ingest. The zero value is valid.
type IngestOptions struct {
	Limits pack.Limits
	// Workers is that of pack.Indexer.
	Workers int
	// Progress is that of pack.Indexer.
	Progress func(done, total int)
	// Unpack is the number of objects up to which Migrate makes loose objects of the pack, as git's transfer.unpackLimit does; 0 keeps every
	// pack.
	Unpack int
}

// Ingested describes what was received.
type Ingested struct {
	*pack.Result
	links *links
}

// Ingest reads one pack from r (see pack.Indexer.Index for its errors and for what stays in r), completes a thin one, and checks every
// object (*fsck.Error). A quarantine takes one pack; after an error it can only be discarded.
func (q *Quarantine) Ingest(ctx context.Context, r *bufio.Reader, o IngestOptions) (*Ingested, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || q.ingested != nil {
		return nil, errors.New("quarantine is used up")
	}
	in := &Ingested{links: newLinks()}
	x := &pack.Indexer{
		Dir: filepath.Join(q.dir, "pack"), Bases: q.db, Limits: o.Limits, Workers: o.Workers, Progress: o.Progress,
		Visit: in.visit,
		Note: func(t plumbing.ObjectType, data []byte) any {
			if t != plumbing.TreeObject {
				return nil
			}
			return fsck.TreeBounds(data)
		},
	}
	res, err := x.Index(ctx, r)
	if err != nil {
		return nil, err
	}
	in.Result = res
	if err := q.src.rescan(); err != nil {
		return nil, err
	}
	if err := q.checkModules(in.links); err != nil {
		return nil, err
	}
	if err := in.links.clash(); err != nil {
		return nil, err
	}
	q.ingested, q.unpack = in, res.Objects <= o.Unpack
	return in, nil
}

// visit checks a received object, and records what it needs.
func (in *Ingested) visit(o *pack.Object) error {
	if o.Added {
		return nil // checked when it was received; its links are checked by those that use it
	}
	seen := fsck.Callbacks{Link: in.links.add, Modules: in.links.module}
	if o.Type != plumbing.TreeObject || o.Base == nil {
		return fsck.Check(o.Type, o.Hash, o.Data, seen)
	}
	// Many trees are similar: most of them are checked only where they differ.
	before, _ := o.BaseNote.(fsck.Bounds)
	bounds, err := fsck.CheckTree(o.Hash, o.Data, o.Base, before, seen)
	o.Note = bounds
	return err
}

// checkModules checks the blobs that are .gitmodules of a tree.
func (q *Quarantine) checkModules(l *links) error {
	for h := range l.modules {
		t, size, err := q.Header(h)
		if errors.Is(err, ErrNotFound) {
			continue // reported by the connectivity check
		}
		if err != nil {
			return err
		}
		if t != plumbing.BlobObject {
			continue
		}
		var data []byte
		if size <= 10<<20 {
			if _, data, err = q.Get(h); err != nil {
				return err
			}
		}
		if err := fsck.Modules(h, size, data); err != nil {
			return err
		}
	}
	return nil
}

// Stage does everything in Migrate that is not visible yet: when it returns the content is durable and in its place except the index. A
// caller with more files to make durable does so between the two. The quarantine can still be read. A
// crash leaves a pack without an index, which is not used, and which maintenance removes.
//
// covered is the device number of a file system that the caller has synced since Ingest, 0 for none.
func (q *Quarantine) Stage(covered uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || q.unpack {
		return nil
	}
	_, err := q.stage(covered)
	return err
}

// stage renames all files of the pack but its index into place, and returns the index's name, "" if there is none.
func (q *Quarantine) stage(covered uint64) (index string, err error) {
	from, to := filepath.Join(q.dir, "pack"), q.packs()
	list, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool {
		return !slices.Contains([]string{".pack", ".rev", ".idx"}, filepath.Ext(e.Name()))
	})
	for _, e := range list {
		if q.synced {
			break
		}
		if err := syncFile(filepath.Join(from, e.Name()), covered); err != nil {
			return "", err
		}
	}
	q.synced = true
	if err := os.Mkdir(to, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	for _, e := range list {
		if filepath.Ext(e.Name()) == ".idx" {
			index = e.Name()
			continue
		}
		if err := q.place(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return "", err
		}
	}
	return index, nil
}

// place gives a file of the quarantine its name in the repository. If the file system supports links it keeps the old name, which the
// quarantine reads.
func (q *Quarantine) place(from, to string) error {
	if slices.Contains(q.staged, to) {
		return nil
	}
	if os.Link(from, to) != nil {
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	q.staged = append(q.staged, to)
	return nil
}

// unstage undoes stage, except for files of a pack that existed before.
func (q *Quarantine) unstage() {
	for _, path := range q.staged {
		if _, err := os.Lstat(strings.TrimSuffix(path, filepath.Ext(path)) + ".idx"); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(path) // what stays is not a pack, and maintenance removes it
		}
	}
}

func (q *Quarantine) packs() string { return filepath.Join(q.db.main.dir, "pack") }

// Migrate publishes the quarantine: it is durable, and visible in the DB, when Migrate returns. After an interruption at any point, calling
// it again completes it. The quarantine can still be read afterwards. A second call does nothing, nor does one after Discard.
func (q *Quarantine) Migrate() error {
	settle, err := q.Publish()
	if err == nil {
		err = settle(0)
	}
	if err != nil {
		return err
	}
	return q.clear()
}

// Publish is Migrate except that what is visible when it returns is durable only when settle has returned, and that the quarantine's folder is
// there until Discard. settle may be called beside other uses of the quarantine, and again after an error; covered is the device number of a file
// system that the caller has synced since Publish, 0 for none.
func (q *Quarantine) Publish() (settle func(covered uint64) error, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return q.settle, nil
	}
	if q.unpack {
		if err := q.db.main.putAll(q.src); err != nil {
			return nil, err
		}
		q.ended = true
		q.src.close()
		return q.settle, nil
	}
	index, err := q.stage(0)
	if err != nil {
		return nil, err
	}
	if index != "" {
		// The index makes the pack visible. One sync covers both names; an index that a crash leaves without its pack is skipped, by git too.
		if err := os.Rename(filepath.Join(q.dir, "pack", index), filepath.Join(q.packs(), index)); err != nil {
			return nil, err
		}
		q.unsettled = true
	}
	if err := q.db.main.rescan(); err != nil {
		return nil, err
	}
	q.ended = true
	q.src.close()
	return q.settle, nil
}

// settle makes durable what Publish made visible, and begins to remove what is left.
func (q *Quarantine) settle(covered uint64) error {
	q.settling.Lock()
	defer q.settling.Unlock()
	if q.unsettled {
		if err := syncDirUnlessCovered(q.packs(), covered); err != nil {
			return err
		}
		q.unsettled = false
	}
	q.clearing.Go(func() { _ = os.RemoveAll(q.dir) })
	return nil
}

// clear returns when nothing is left of the folder.
func (q *Quarantine) clear() error {
	q.settling.Lock()
	defer q.settling.Unlock()
	q.clearing.Wait()
	return os.RemoveAll(q.dir)
}

// Discard removes the quarantine and its content. After Migrate, and a second time, it does nothing; after Publish it removes only the folder.
func (q *Quarantine) Discard() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return q.clear()
	}
	q.ended = true
	q.unstage()
	q.src.close()
	return os.RemoveAll(q.dir)
}
