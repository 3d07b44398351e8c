package pack

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Limits bounds what a pack may ask of the machine. A zero field means its default; a negative one means no bound.
type Limits struct {
	// PackBytes is the length of the pack on the wire. Default 4 GiB.
	PackBytes int64
	// Objects is the number of objects in a pack. Default 20 million. Independent of it, memory is taken only for objects that came.
	Objects int64
	// ObjectBytes is the inflated size of one object. Default 2 GiB.
	ObjectBytes int64
	// DeltaBytes is the size of an object that is stored as a delta, or is the base of one, which lies in memory as a whole.
	// Default 512 MiB, which is also the size up to which git makes deltas (core.bigFileThreshold).
	DeltaBytes int64
	// DeltaDepth is the longest chain of deltas. Default 4095, the most that git pack-objects makes.
	DeltaDepth int
	// Ratio is the inflated size of an object divided by its bytes on the wire, looked at above 1 MiB of inflated size. Deflate
	// itself cannot pass 1032. Default: no bound.
	Ratio int64
	// TotalBytes is the sum of the inflated sizes of all objects, deltas resolved. It stops a pack of many bombs, each below the
	// other limits. Default 1 TiB.
	TotalBytes int64
	// DeltaTotal is the sum of the objects that are made from deltas, beyond deltaRatio bytes for each byte of the pack. It bounds the time that a small
	// pack can ask for; as much again may be made anew, where bases did not fit into BaseMemory. Default 4 GiB.
	DeltaTotal int64
	// StreamBytes is the size from which a blob that is no delta is hashed as it comes and never held. Default 8 MiB. It is no refusal.
	StreamBytes int64
	// Memory is shared with other ingestions: what a pack with deltas of large objects needs is taken of it. nil has no bound.
	Memory *Memory
	// BaseMemory is the memory for bases of deltas; what does not fit is made anew when needed. Default 64 MiB. It is no refusal.
	BaseMemory int64
}

// WithDefaults fills in the defaults.
func (l Limits) WithDefaults() Limits {
	def := func(p *int64, v int64) {
		if *p == 0 {
			*p = v
		} else if *p < 0 {
			*p = 1<<63 - 1
		}
	}
	def(&l.PackBytes, 4<<30)
	def(&l.Objects, 20_000_000)
	def(&l.ObjectBytes, 2<<30)
	def(&l.DeltaBytes, 512<<20)
	def(&l.Ratio, 1<<63-1)
	def(&l.TotalBytes, 1<<40)
	def(&l.DeltaTotal, 4<<30)
	def(&l.StreamBytes, 8<<20)
	def(&l.BaseMemory, 64<<20)
	if l.DeltaDepth == 0 {
		l.DeltaDepth = 4095
	} else if l.DeltaDepth < 0 {
		l.DeltaDepth = 1<<31 - 1
	}
	return l
}

// Commits, tags and trees are held in memory to be checked, several at a time: what is larger than this is no honest one.
const (
	maxCommit = 16 << 20 // and tags
	maxTree   = 64 << 20 // a folder of a million files
)

// deltaRatio is what a pack's deltas may make of each of its bytes without being counted. Repositories of source come to 50 or less, those of generated
// files that change often to some hundreds.
const deltaRatio = 1000

// checkPromised counts what a delta makes, as it says, when off bytes of the pack have come.
func (g *run) checkPromised(size, off int64) error {
	if g.makes = added(g.makes, size); g.makes > added(g.lim.DeltaTotal, deltaRatio*off) {
		return &LimitError{Name: "DeltaTotal", Limit: g.lim.DeltaTotal, Got: g.makes}
	}
	return nil
}

// again counts an object that is made, or inflated, once more.
func (g *run) again(size int64) error {
	if n := g.rebuilt.Add(size); n > added(g.lim.DeltaTotal, deltaRatio*g.wire) {
		return &LimitError{Name: "DeltaTotal", Limit: g.lim.DeltaTotal, Got: n}
	}
	return nil
}

// added is the sum of two sizes, or the largest that there is.
func added(a, b int64) int64 {
	if a > 1<<63-1-b {
		return 1<<63 - 1
	}
	return a + b
}

// checked refuses an object that would have to be held whole and is larger than any honest one of its type.
func (g *run) checked(t plumbing.ObjectType, size, offset int64) error {
	var most int64
	switch t {
	case plumbing.CommitObject, plumbing.TagObject:
		most = min(maxCommit, g.lim.DeltaBytes)
	case plumbing.TreeObject:
		most = min(maxTree, g.lim.DeltaBytes)
	default:
		return nil
	}
	if size > most {
		return &LimitError{Name: "Checked", Limit: most, Got: size, Offset: offset}
	}
	return nil
}

// ErrLimit is in the chain of every *LimitError.
var ErrLimit = errors.New("over a limit")

// LimitError says which limit a pack is over. Name is the field of Limits.
type LimitError struct {
	Name       string
	Limit, Got int64
	// Offset is the place in the pack, 0 where the limit is about the whole pack.
	Offset int64
}

func (e *LimitError) Error() string {
	what := map[string]string{
		"PackBytes":   "pack is longer than %s",
		"Objects":     "pack has more than %s objects",
		"ObjectBytes": "object is larger than %s",
		"DeltaBytes":  "object stored as a delta is larger than %s",
		"Checked":     "a commit, tag or tree is larger than %s",
		"Memory":      "its deltas are of objects too large for the memory of %s that pushes may use",
		"DeltaTotal":  "its deltas make too much of few bytes: more than %s",
		"DeltaDepth":  "chain of deltas is longer than %s",
		"Ratio":       "object inflates to more than %s times its bytes",
		"TotalBytes":  "objects are larger than %s together",
	}[e.Name]
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	if strings.HasSuffix(e.Name, "Bytes") || e.Name == "Checked" || e.Name == "Memory" || e.Name == "DeltaTotal" {
		number = size
	}
	s := fmt.Sprintf(what, number(e.Limit))
	if e.Got > 0 {
		s += " (" + number(e.Got) + ")"
	}
	if e.Offset > 0 {
		s += fmt.Sprintf(", at byte %d of the pack", e.Offset)
	}
	return s
}

// size is a number of bytes as the configuration has it where that is exact, 4GiB, and else rounded.
func size(n int64) string {
	f, unit := float64(n), ""
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if f < 1024 {
			break
		}
		f, unit = f/1024, u
	}
	if unit == "" {
		return fmt.Sprintf("%d bytes", n)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") + unit
}

// Is makes errors.Is(err, ErrLimit) true.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }
