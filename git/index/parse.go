package index

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"sync"
	"unsafe"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/tree"
)

// Places returns n entries to fill in.
type Places func(n int) (at func(i int) *Entry)

// Parse reads versions 2, 3 and 4 (gitformat-index(5)) into the entries that room returns, of which it fills the first n: stage 0 entries,
// sorted; entries in conflict appear once, with a zero oid. It verifies every path, and the checksum unless the bytes are known to be
// intact, so that a damaged or forged index is ErrUnusable and never a path outside of the tree. data must not be changed afterwards.
func Parse(data []byte, known bool, places Places) (n int, tree *Tree, err error) {
	if len(data) < 12+sha1.Size || string(data[:4]) != "DIRC" {
		return 0, nil, fmt.Errorf("%w: no header", ErrUnusable)
	}
	body, sum := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	if known {
		return parseBody(body, places)
	}
	// The checksum takes as long as the entries, so both run in parallel. index.skipHash writes zeros: such a file has no checksum.
	var good bool
	var wg sync.WaitGroup
	wg.Go(func() {
		got := sha1.Sum(body)
		good = bytes.Equal(got[:], sum)
	})
	n, tree, err = parseBody(body, places)
	wg.Wait()
	if !good {
		return 0, nil, fmt.Errorf("%w: wrong checksum", ErrUnusable)
	}
	return n, tree, err
}

// parseBody is Parse without the checksum; body excludes it.
func parseBody(body []byte, places Places) (n int, tree *Tree, err error) {
	version, count := binary.BigEndian.Uint32(body[4:]), int64(binary.BigEndian.Uint32(body[8:]))
	if version < 2 || version > 4 {
		return 0, nil, fmt.Errorf("%w: version %d", ErrUnusable, version)
	}
	if count > int64(len(body))/entryFixed {
		return 0, nil, fmt.Errorf("%w: %d entries in %d bytes", ErrUnusable, count, len(body))
	}
	// The paths share memory with data, which is not written to any more.
	p := parser{body: body, text: unsafe.String(unsafe.SliceData(body), len(body)), version: version, count: int(count), at: places(int(count))}
	if count >= parseAtOnce {
		if starts := entryStarts(body, version, int(count)); starts != nil {
			if tree, ok := p.parts(starts); ok {
				return p.count, tree, nil
			}
		}
	}
	// If parsing in parts fails, parsing one by one finds the error.
	return p.each()
}

// parser fills in the places of count entries.
type parser struct {
	body    []byte
	text    string // the same
	version uint32
	count   int
	at      func(i int) *Entry
}

// each parses them one by one.
func (p *parser) each() (n int, tree *Tree, err error) {
	run := entryRun{body: p.body, text: p.text, version: p.version, pos: 12}
	for range p.count {
		e, again, err := run.next()
		if err != nil {
			return 0, nil, err
		}
		if again {
			continue
		}
		*p.at(n) = e
		n++
	}
	tree, err = parseExtensions(p.body[run.pos:], n)
	return n, tree, err
}

// entryRun iterates over the entries from pos on.
type entryRun struct {
	body     []byte
	text     string // the same
	version  uint32
	pos      int
	prev     string
	some     bool // prev is one
	conflict bool // and in conflict
}

// next parses the next entry; again means that it is another stage of the previous one.
func (r *entryRun) next() (e Entry, again bool, err error) {
	e, next, stage, err := parseEntry(r.body, r.text, r.pos, r.version, r.prev)
	if err != nil {
		return e, false, err
	}
	switch {
	case r.some && e.Path < r.prev, r.some && e.Path == r.prev && !r.conflict:
		return e, false, fmt.Errorf("%w: entries out of order", ErrUnusable)
	case r.some && e.Path == r.prev:
		r.pos = next
		return e, true, nil
	case e.Path == "" || !object.IsBlobMode(e.Mode) || tree.CheckPath(e.Path[SharedDir(r.prev, e.Path):]) != nil:
		return e, false, fmt.Errorf("%w: entry %q", ErrUnusable, e.Path)
	}
	if r.conflict = stage != 0; r.conflict {
		e.Hash, e.Stat, e.at = plumbing.ZeroHash, Stat{}, 0
	}
	r.pos, r.prev, r.some = next, e.Path, true
	return e, false, nil
}

const (
	// parseAtOnce is the number of entries from which they are parsed in parallel parts.
	parseAtOnce = 4096
	parseParts  = 4
)

// entryStarts returns the offsets of count entries, and the end of the last; nil if they are known only by parsing: in version 4, for
// very long names, and in a truncated file.
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

// partStart returns the index of the first entry of a part; for the part after the last it is the number of entries.
func partStart(part, count int) int { return count * part / parseParts }

// parts parses the entries at starts, and reports whether all were at stage 0 and in order.
func (p *parser) parts(starts []uint32) (tree *Tree, ok bool) {
	var good [parseParts + 1]bool
	var wg sync.WaitGroup
	for part := range parseParts {
		wg.Go(func() {
			lo, hi := partStart(part, p.count), partStart(part+1, p.count)
			run := entryRun{body: p.body, text: p.text, version: p.version, pos: int(starts[lo])}
			for i := lo; i < hi; i++ {
				e, again, err := run.next()
				if err != nil || again {
					return
				}
				*p.at(i) = e
			}
			good[part] = run.pos == int(starts[hi])
		})
	}
	wg.Go(func() {
		var err error
		tree, err = parseExtensions(p.body[starts[p.count]:], p.count)
		good[parseParts] = err == nil
	})
	wg.Wait()
	for part := range parseParts {
		if i := partStart(part, p.count); !good[part] || i > 0 && p.at(i-1).Path >= p.at(i).Path {
			return nil, false
		}
	}
	return tree, good[parseParts]
}
