package worktree

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"sync"
	"unsafe"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
)

// parseIndex reads versions 2, 3 and 4 (gitformat-index(5)). It verifies every path, and the checksum unless the bytes are known to be what
// was written, so that a damaged or forged index is errIndex and never a path outside the tree. data must not be changed afterwards.
func parseIndex(data []byte, known bool) (*gitIndex, error) {
	if len(data) < 12+sha1.Size || string(data[:4]) != "DIRC" {
		return nil, fmt.Errorf("%w: no header", errIndex)
	}
	body, sum := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	if known {
		return parseBody(data, body)
	}
	// The checksum takes as long as the entries: both at once. index.skipHash writes zeros: such a file proves nothing.
	var good bool
	var wg sync.WaitGroup
	wg.Go(func() {
		got := sha1.Sum(body)
		good = bytes.Equal(got[:], sum)
	})
	x, err := parseBody(data, body)
	wg.Wait()
	if !good {
		return nil, fmt.Errorf("%w: wrong checksum", errIndex)
	}
	return x, err
}

// parseBody is parseIndex but for the checksum. data is the whole file, body what the checksum is about.
func parseBody(data, body []byte) (*gitIndex, error) {
	version, count := binary.BigEndian.Uint32(body[4:]), int64(binary.BigEndian.Uint32(body[8:]))
	if version < 2 || version > 4 {
		return nil, fmt.Errorf("%w: version %d", errIndex, version)
	}
	if count > int64(len(body))/entryFixed {
		return nil, fmt.Errorf("%w: %d entries in %d bytes", errIndex, count, len(body))
	}
	// The paths are parts of data: nobody writes to it any more.
	x := &gitIndex{raw: data}
	text := unsafe.String(unsafe.SliceData(body), len(body))
	if count >= parseAtOnce {
		if starts := entryStarts(body, version, int(count)); starts != nil && x.parseParts(body, text, version, starts) {
			return x, nil
		}
	}
	// What is not plain, or wrong, is told by going through it one by one.
	if err := x.parseEach(body, text, version, int(count)); err != nil {
		return nil, err
	}
	return x, nil
}

// parseEach fills x in, entry by entry.
func (x *gitIndex) parseEach(body []byte, text string, version uint32, count int) error {
	x.entries, x.tree = make([]entry, 0, count), nil
	run := entryRun{body: body, text: text, version: version, pos: 12}
	for range count {
		e, again, err := run.next()
		if err != nil {
			return err
		}
		if again {
			continue
		}
		e.was = int32(len(x.entries) + 1)
		x.entries = append(x.entries, e)
	}
	return x.parseExtensions(body[run.pos:], len(x.entries))
}

// entryRun goes through the entries from pos on.
type entryRun struct {
	body     []byte
	text     string // the same
	version  uint32
	pos      int
	prev     string
	some     bool // prev is one
	conflict bool // and in conflict
}

// next is the next entry; again says that it is another stage of the one before.
func (r *entryRun) next() (e entry, again bool, err error) {
	e, next, stage, err := parseEntry(r.body, r.text, r.pos, r.version, r.prev)
	if err != nil {
		return e, false, err
	}
	switch {
	case r.some && e.path < r.prev, r.some && e.path == r.prev && !r.conflict:
		return e, false, fmt.Errorf("%w: entries out of order", errIndex)
	case r.some && e.path == r.prev:
		r.pos = next
		return e, true, nil
	case e.path == "" || !object.IsBlobMode(e.mode) || checkPath(e.path[sharedDir(r.prev, e.path):]) != nil:
		return e, false, fmt.Errorf("%w: entry %q", errIndex, e.path)
	}
	if r.conflict = stage != 0; r.conflict {
		e.oid, e.st, e.at = plumbing.ZeroHash, stat{}, 0
	}
	e.attrs = isAttributes(e.path)
	r.pos, r.prev, r.some = next, e.path, true
	return e, false, nil
}

const (
	// parseAtOnce is from how many entries on they are parsed in parts, beside each other.
	parseAtOnce = 4096
	parseParts  = 4
)

// entryStarts gives the places at which count entries begin, and the one behind the last; nil where only reading them all tells: in
// version 4, for very long names, and in a file that is cut.
func entryStarts(body []byte, version uint32, count int) []uint32 {
	if version == 4 {
		return nil
	}
	starts := make([]uint32, count+1)
	pos := 12
	for i := range count {
		starts[i] = uint32(pos)
		if len(body)-pos < entryFixed {
			return nil
		}
		flags := binary.BigEndian.Uint16(body[pos+entryFixed-2:])
		n := int(flags & flagName)
		if n == flagName {
			return nil
		}
		if flags&flagExtended != 0 {
			n += 2
		}
		pos += (entryFixed + n + 8) &^ 7
		if pos > len(body) {
			return nil
		}
	}
	starts[count] = uint32(pos)
	return starts
}

// partStart is the number of the first entry of a part; that of the part behind the last is their number.
func partStart(part, count int) int { return count * part / parseParts }

// parseParts fills x in from entries that begin at starts, and reports whether all was plain: each entry by itself in its place.
func (x *gitIndex) parseParts(body []byte, text string, version uint32, starts []uint32) bool {
	count := len(starts) - 1
	x.entries = make([]entry, count)
	var good [parseParts + 1]bool
	var wg sync.WaitGroup
	for part := range parseParts {
		wg.Go(func() {
			lo, hi := partStart(part, count), partStart(part+1, count)
			run := entryRun{body: body, text: text, version: version, pos: int(starts[lo])}
			for i := lo; i < hi; i++ {
				e, again, err := run.next()
				if err != nil || again {
					return
				}
				e.was = int32(i + 1)
				x.entries[i] = e
			}
			good[part] = run.pos == int(starts[hi])
		})
	}
	wg.Go(func() { good[parseParts] = x.parseExtensions(body[starts[count]:], count) == nil })
	wg.Wait()
	for part := range parseParts {
		if i := partStart(part, count); !good[part] || i > 0 && x.entries[i-1].path >= x.entries[i].path {
			return false
		}
	}
	return good[parseParts]
}
