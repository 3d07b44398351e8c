package pack

import (
	"bufio"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"corpus-git/internal/offheap"

	"github.com/go-git/go-git/v5/plumbing"
)

// Object is one object of an incoming pack, resolved.
type Object struct {
	Type plumbing.ObjectType
	Hash plumbing.Hash
	Size int64
	// Data is the content, valid during the call only. It is nil for a blob that was streamed (Limits.StreamBytes).
	Data []byte
	// Added reports that the object was not in the pack but in Bases, and was appended to complete a thin pack.
	Added bool
	// Base is the content of the object that this one is a delta of, if any. Visit has seen it, unless it was Added.
	Base []byte
	// BaseNote is the Note of that object, nil if there is none.
	BaseNote any
	// Note may be set by Visit. It is kept while deltas of this object are resolved, and passed to their Visit as BaseNote.
	Note any
}

// Indexer ingests packs. Only Dir must be set.
type Indexer struct {
	// Dir is the existing folder for the pack, its .idx and .rev, and the temporary files.
	Dir string
	// Bases returns the objects that a thin pack builds on. Nil refuses thin packs.
	Bases Getter
	// Limits limits what the pack may contain and cost.
	Limits Limits
	// Workers is the number of goroutines; 0 means the number of CPUs, at most 4.
	Workers int
	// Visit, if set, is called for each object as often as it was received, in no particular order, from several goroutines. Its error ends
	// the ingestion and is returned, possibly wrapped.
	Visit func(*Object) error
	// Note, if set, recomputes the Note of an object that Visit has seen and that is read a second time.
	Note func(t plumbing.ObjectType, data []byte) any
	// Progress, if set, is called now and then with the number of completed objects and the total, from one goroutine at a time.
	Progress func(done, total int)
	// NoRev omits the .rev.
	NoRev bool
}

// Result describes an ingested pack. Nothing is synced to the disk yet.
type Result struct {
	// ID is the pack's trailer, which is in the files' names: <Dir>/pack-<ID>.pack, .idx, .rev. It differs from the received trailer if
	// the pack was thin, or held an object twice.
	ID plumbing.Hash
	// Pack, Idx and Rev are the files' paths. They are empty for a pack of no objects, which leaves no file. Rev is empty with NoRev.
	Pack, Idx, Rev string
	// Objects counts what the pack holds, Added those of them that completed it, Deltas those stored as deltas. An object that was received
	// more than once counts once, and is in the files once.
	Objects, Added, Deltas int
	// Bytes is the length of the pack on the wire.
	Bytes int64

	run *run
}

// Has reports whether the pack holds h.
func (r *Result) Has(h plumbing.Hash) bool {
	_, ok := r.Type(h)
	return ok
}

// Received returns the type of an object that was received: Added ones were not.
func (r *Result) Received(h plumbing.Hash) (plumbing.ObjectType, bool) {
	g := r.run
	defer runtime.KeepAlive(g)
	i, ok := g.findSorted(h)
	if !ok || int(i) >= g.recs.n-g.added {
		return 0, false
	}
	return plumbing.ObjectType(g.recs.at(i).real), true
}

// Type returns the type of an object of the pack.
func (r *Result) Type(h plumbing.Hash) (plumbing.ObjectType, bool) {
	g := r.run
	defer runtime.KeepAlive(g)
	i, ok := g.findSorted(h)
	if !ok {
		return 0, false
	}
	return plumbing.ObjectType(g.recs.at(i).real), true
}

// Index reads one pack from r, up to its trailer and not a byte further: what r has buffered beyond it stays in r. Its buffer must have at
// least 60 bytes, and should have 256 KiB or more. After an error nothing is left in Dir.
//
// Errors: one that wraps ErrCorrupt means an invalid pack; a *LimitError that it exceeds a limit; a *MissingBaseError that a delta's base
// does not exist; io.ErrUnexpectedEOF that the stream ended before the pack did; others are the reader's, the disk's, Visit's or ctx's.
func (x *Indexer) Index(ctx context.Context, r *bufio.Reader) (_ *Result, err error) {
	if r.Size() < 2*maxEntryHead {
		return nil, fmt.Errorf("a buffer of %d bytes is too small to read a pack", r.Size())
	}
	f, err := os.CreateTemp(x.Dir, "tmp_pack_")
	if err != nil {
		return nil, err
	}
	left := []string{f.Name()}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			for _, name := range left {
				_ = os.Remove(name)
			}
		}
	}()
	g := &run{x: x, ctx: ctx, lim: x.Limits.WithDefaults(), file: f, workers: x.Workers}
	if g.workers <= 0 {
		g.workers = min(runtime.NumCPU(), 4)
	}
	if err := g.scan(r); err != nil {
		return nil, err
	}
	if err := g.resolve(); err != nil {
		return nil, err
	}
	g.sort()
	if g.twice {
		if err := g.unique(); err != nil {
			return nil, err
		}
	}
	res := &Result{ID: g.trailer, Objects: g.recs.n, Added: g.added, Deltas: g.deltas, Bytes: g.wire, run: g}
	if g.recs.n == 0 {
		return res, os.Remove(f.Name())
	}
	base := filepath.Join(x.Dir, "pack-"+g.trailer.String())
	// The .idx comes last: a pack without one does not exist.
	if !x.NoRev {
		if err := writeFile(x.Dir, base+".rev", &left, g.writeRev); err != nil {
			return nil, err
		}
		res.Rev = base + ".rev"
	}
	if err := f.Chmod(0o444); err != nil {
		return nil, err
	}
	if err := os.Rename(f.Name(), base+".pack"); err != nil {
		return nil, err
	}
	left = append(left, base+".pack")
	if err := writeFile(x.Dir, base+".idx", &left, g.writeIdx); err != nil {
		return nil, err
	}
	res.Pack, res.Idx = base+".pack", base+".idx"
	g.file, g.refs, g.taken = nil, nil, nil
	return res, nil
}

func writeFile(dir, name string, left *[]string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(dir, "tmp_idx_")
	if err != nil {
		return err
	}
	*left = append(*left, f.Name(), name)
	err = write(f)
	if err == nil {
		err = f.Chmod(0o444)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// record is what is kept of each object: 40 bytes, no pointers.
type record struct {
	off  int64
	hash plumbing.Hash
	crc  uint32
	base int32 // an OFSDelta's base, as the number of a record
	typ  uint8 // as stored
	real uint8 // resolved; 0 means not yet
	head uint8 // length of the entry's head
	held bool  // was passed on to be resolved, or as a base, during the first pass
}

func (r *record) delta() bool { return r.typ >= uint8(plumbing.OFSDeltaObject) }

// records is allocated in chunks, so that a wrong count in the pack costs nothing and pointers stay valid. The first chunk is in the heap:
// most packs need no more.
type records struct {
	n      int
	few    []record
	pieces [][]record
	blocks []*offheap.Block[record] // of pieces
}

const (
	fewRecords  = 1 << 7
	recordPiece = 1 << 14
)

func (r *records) at(i int32) *record {
	if i < fewRecords {
		return &r.few[i]
	}
	i -= fewRecords
	return &r.pieces[uint32(i)/recordPiece][uint32(i)%recordPiece]
}

func (r *records) add() *record {
	switch {
	case r.n == 0:
		r.few = make([]record, fewRecords)
	case r.n >= fewRecords && (r.n-fewRecords)%recordPiece == 0:
		b := offheap.Make[record](recordPiece)
		r.blocks = append(r.blocks, b)
		r.pieces = append(r.pieces, b.Slice())
	}
	r.n++
	return r.at(int32(r.n - 1))
}

// find returns the record that begins at off.
func (r *records) find(off int64) (int32, bool) {
	lo, hi := 0, r.n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if r.at(int32(mid)).off < off {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return int32(lo), lo < r.n && r.at(int32(lo)).off == off
}

// run is one ingestion.
type run struct {
	x       *Indexer
	ctx     context.Context
	lim     Limits
	file    *os.File
	workers int

	recs    records
	wire    int64 // bytes of the pack received
	end     int64 // offset of the trailer, or of the next object to append
	trailer plumbing.Hash
	deltas  int
	added   int
	total   atomic.Int64 // inflated bytes
	makes   int64        // the sum of the result sizes in deltas
	rebuilt atomic.Int64 // bytes that were resolved again
	early   atomic.Int64 // deltas that were resolved during the first pass

	first, next       []int32 // children of each record: the first, and a child's next sibling; -1 ends
	refs              []refDelta
	taken             []atomic.Bool // by the index in refs of the first delta with this base: those that an object of that name has taken
	large, largeDelta int64         // sizes of the largest object that is a delta or the base of one, as deltas state it, and of the largest delta
	order             []int32       // records in the order of names
	inOrder           *offheap.Block[int32]
	fan               [256]uint32 // where in order the names of each first byte end
	twice             bool        // some object occurs more than once

	progress sync.Mutex
	done     int
	reported int
	expected int
}

// refDelta is a delta that names its base.
type refDelta struct {
	base plumbing.Hash
	rec  int32
}

// MissingBaseError reports that a delta's base is neither in the pack nor in the repository.
type MissingBaseError struct {
	Base   plumbing.Hash
	Offset int64 // of the delta
	Deltas int   // that could not be resolved
}

func (e *MissingBaseError) Error() string {
	return fmt.Sprintf("delta at byte %d of the pack builds on %s, which is neither in the pack nor in the repository (%d unresolved)", e.Offset, e.Base, e.Deltas)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *MissingBaseError) Is(target error) bool { return target == ErrCorrupt }

// grown adds n to the inflated bytes.
func (g *run) grown(n int64) error {
	if t := g.total.Add(n); t > g.lim.TotalBytes {
		return &LimitError{Name: "TotalBytes", Limit: g.lim.TotalBytes}
	}
	return nil
}

// complete passes an object to Visit and counts it.
func (g *run) complete(o *Object) error {
	if g.x.Visit != nil {
		if err := g.x.Visit(o); err != nil {
			return err
		}
	}
	return nil
}

func (g *run) reportProgress(n int) {
	if g.x.Progress == nil {
		return
	}
	g.progress.Lock()
	defer g.progress.Unlock()
	if g.done += n; g.done-g.reported >= 1000 || g.done == g.expected {
		g.reported = g.done
		g.x.Progress(g.done, g.expected)
	}
}

// seal rewrites count and trailer of a pack that has grown.
func (g *run) seal() error {
	var head []byte
	head = appendHeader(head, uint32(g.recs.n))
	if _, err := g.file.WriteAt(head, 0); err != nil {
		return err
	}
	h := sha1.New()
	if _, err := io.Copy(h, io.NewSectionReader(g.file, 0, g.end)); err != nil {
		return err
	}
	h.Sum(g.trailer[:0])
	if _, err := g.file.WriteAt(g.trailer[:], g.end); err != nil {
		return err
	}
	return g.file.Truncate(g.end + hashLen)
}
