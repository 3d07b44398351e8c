package pack

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Limits limits the resources that a pack may take. A zero field means its default; a negative one means no limit.
type Limits struct {
	// PackBytes is the length of the pack on the wire. Default 4 GiB.
	PackBytes int64
	// Objects is the number of objects in a pack. Default 20 million. Regardless of it, memory is allocated only for objects that arrived.
	Objects int64
	// ObjectBytes is the inflated size of one object. Default 2 GiB.
	ObjectBytes int64
	// DeltaBytes is the size of an object that is stored as a delta or is the base of one, which is held in memory as a whole. Default 512 MiB,
	// up to which git makes deltas (core.bigFileThreshold).
	DeltaBytes int64
	// DeltaDepth is the longest chain of deltas. Default 4095, the most that git pack-objects makes.
	DeltaDepth int
	// Ratio is the inflated size of an object divided by its bytes on the wire, checked above 1 MiB of inflated size. Deflate itself can't
	// exceed 1032. Default: no limit.
	Ratio int64
	// TotalBytes is the sum of the inflated sizes of all objects, deltas resolved. It refuses a pack of many bombs each of which is below
	// the other limits. Default 1 TiB.
	TotalBytes int64
	// DeltaTotal is the sum of the objects that result from deltas, beyond deltaRatio bytes for each byte of the pack. It limits the time
	// that a small pack can cost; as much again may be resolved twice, if bases did not fit into BaseMemory. Default 4 GiB.
	DeltaTotal int64
	// StreamBytes is the size from which a blob that is not a delta is hashed as it arrives and never held in memory. Default 8 MiB. It
	// refuses nothing.
	StreamBytes int64
	// Memory is shared with other ingestions: packs with deltas of large objects allocate from it. nil means no limit.
	Memory *Memory
	// BaseMemory is the memory for bases of deltas; what does not fit is resolved again when needed. Default 64 MiB. It refuses nothing.
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

// Commits, tags and trees are held in memory to be checked, several at a time: larger ones are refused.
const (
	maxCommit = 16 << 20 // and tags
	maxTree   = 64 << 20 // a folder of a million files
)

// deltaRatio is how many bytes deltas may make of each byte of the pack without being counted. Repositories of source code reach 50 or
// less, those of generated files that change often several hundred.
const deltaRatio = 1000

// checkPromised counts the size that a delta states, when off bytes of the pack were received.
func (g *run) checkPromised(size, off int64) error {
	if g.makes = added(g.makes, size); g.makes > added(g.lim.DeltaTotal, deltaRatio*off) {
		return &LimitError{Name: "DeltaTotal", Limit: g.lim.DeltaTotal, Got: g.makes}
	}
	return nil
}

// again counts an object that is resolved, or inflated, again.
func (g *run) again(size int64) error {
	if n := g.rebuilt.Add(size); n > added(g.lim.DeltaTotal, deltaRatio*g.wire) {
		return &LimitError{Name: "DeltaTotal", Limit: g.lim.DeltaTotal, Got: n}
	}
	return nil
}

// added returns the sum of two sizes, or the maximum on overflow.
func added(a, b int64) int64 {
	if a > 1<<63-1-b {
		return 1<<63 - 1
	}
	return a + b
}

// checked refuses an object that must be held whole and exceeds the limit for its type.
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

// ErrLimit is wrapped by every *LimitError.
var ErrLimit = errors.New("over a limit")

// LimitError names the limit that a pack exceeds. Name is the field of Limits.
type LimitError struct {
	Name       string
	Limit, Got int64
	// Offset is the place in the pack, 0 if the limit is about the whole pack.
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

// size formats a number of bytes as the configuration does if that is exact, 4GiB, otherwise rounded.
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
