package pack

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"corpus-git/internal/testutil/gittest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

// stock is a repository of a few blobs.
type stock map[plumbing.Hash][]byte

func (s stock) Get(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	if data, ok := s[h]; ok {
		return plumbing.BlobObject, data, nil
	}
	return 0, nil, plumbing.ErrObjectNotFound
}

// content is blob n of the graphs below.
func content(n int) []byte { return []byte(fmt.Sprintf("content %d of a graph of deltas", n)) }

func contentName(n int) plumbing.Hash { return plumbing.ComputeHash(plumbing.BlobObject, content(n)) }

// into returns a delta that makes content b of content a.
func into(a, b int) []byte {
	return cat(varint(int64(len(content(a)))), varint(int64(len(content(b)))), []byte{byte(len(content(b)))}, content(b))
}

// graph is a pack of entries that are made from each other, and a repository for what it lacks.
type graph struct {
	b       *builder
	entries []graphEntry
	stored  stock
}

// graphEntry makes a content: from a stored or made one by its name, or from the result of another entry. With neither it is a whole one.
type graphEntry struct{ makes, base, entry int }

func newGraph() *graph { return &graph{b: newBuilder(), stored: stock{}} }

func (g *graph) whole(n int) *graph {
	g.b.object(plumbing.BlobObject, content(n))
	g.entries = append(g.entries, graphEntry{n, -1, -1})
	return g
}

func (g *graph) ref(base, n int) *graph {
	g.b.ref(contentName(base), into(base, n))
	g.entries = append(g.entries, graphEntry{n, base, -1})
	return g
}

func (g *graph) ofs(entry, n int) *graph {
	g.b.ofs(entry, into(g.entries[entry].makes, n))
	g.entries = append(g.entries, graphEntry{n, -1, entry})
	return g
}

func (g *graph) stores(n int) *graph {
	g.stored[contentName(n)] = content(n)
	return g
}

// complete reports whether every entry can be made.
func (g *graph) complete() bool {
	known, made := map[int]bool{}, map[int]bool{}
	for n := range 16 {
		_, known[n] = g.stored[contentName(n)]
	}
	for again := true; again; {
		again = false
		for i, e := range g.entries {
			if !made[i] && (e.base < 0 && e.entry < 0 || e.base >= 0 && known[e.base] || e.entry >= 0 && made[e.entry]) {
				made[i], known[e.makes], again = true, true, true
			}
		}
	}
	return len(made) == len(g.entries)
}

// check ingests the pack, and reads all of it.
func (g *graph) check(t *testing.T, workers int) {
	var seen, notes atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	x := &Indexer{Dir: t.TempDir(), Bases: g.stored, Workers: workers,
		Visit: func(o *Object) error {
			if seen.Add(1); plumbing.ComputeHash(o.Type, o.Data) != o.Hash {
				return fmt.Errorf("%s has another content", o.Hash)
			}
			return nil
		},
		Note: func(plumbing.ObjectType, []byte) any { notes.Add(1); return nil },
	}
	res, err := x.Index(ctx, bufio.NewReaderSize(bytes.NewReader(g.b.done()), 4096))
	if !g.complete() {
		require.ErrorIs(t, err, ErrCorrupt)
		require.Empty(t, ls(t, x.Dir))
		return
	}
	require.NoError(t, err)
	// Each entry is made once: what is made again is limited by what was received.
	entries := int64(len(g.entries) + len(g.stored))
	require.LessOrEqual(t, seen.Load(), entries)
	require.LessOrEqual(t, notes.Load(), 2*entries)
	if len(g.entries) == 0 {
		return
	}
	unique := map[int]bool{}
	for _, e := range g.entries {
		unique[e.makes] = true
		_, ok := res.Received(contentName(e.makes))
		require.True(t, ok)
	}
	require.Equal(t, len(unique)+res.Added, res.Objects)
	p, err := Open(res.Pack, NewCache(0))
	require.NoError(t, err)
	defer p.Close()
	for n := range unique {
		off, ok, err := p.Find(contentName(n))
		require.NoError(t, err)
		require.True(t, ok)
		typ, data, err := p.Get(off)
		require.NoError(t, err)
		require.Equal(t, plumbing.BlobObject, typ)
		require.Equal(t, content(n), data)
	}
	if workers == 0 {
		gittest.Output(t, filepath.Dir(res.Pack), nil, "verify-pack", res.Pack)
	}
}

// A pack of 111 bytes in which A is made from B, B from A, and which also has A, was expanded without end, at gigabytes a second: a delta was made again
// for each object with its base's name, and one of those was made from the delta.
func TestDeltasInCircles(t *testing.T) {
	const a, b, c, d = 1, 2, 3, 4
	for story, g := range map[string]*graph{
		"each of the other, one is whole":       newGraph().ref(b, a).ref(a, b).whole(a),
		"the same, the whole one first":         newGraph().whole(a).ref(b, a).ref(a, b),
		"each of the other, one is stored":      newGraph().ref(b, a).ref(a, b).stores(a),
		"each of the other, both are stored":    newGraph().ref(b, a).ref(a, b).stores(a).stores(b),
		"each of the other, none is there":      newGraph().ref(b, a).ref(a, b),
		"itself of a stored one":                newGraph().ref(a, a).stores(a),
		"itself of a whole one":                 newGraph().whole(a).ref(a, a),
		"itself by place":                       newGraph().whole(a).ofs(0, a).ofs(1, a).ofs(2, b),
		"itself, of nothing":                    newGraph().ref(a, a),
		"three in a circle":                     newGraph().ref(c, a).ref(a, b).ref(b, c).whole(c),
		"two circles that meet":                 newGraph().ref(b, a).ref(a, b).ref(c, a).ref(a, c).ref(c, d).whole(a),
		"a whole one twice, with deltas":        newGraph().whole(a).whole(a).ref(a, b).ofs(0, c).ofs(1, d),
		"the same delta twice":                  newGraph().whole(a).ref(a, b).ref(a, b).ref(b, c),
		"a delta, by name and by place":         newGraph().whole(a).ofs(0, b).ref(a, b).ofs(2, c),
		"of a stored one, which the next makes": newGraph().ref(b, a).ref(c, b).stores(b).stores(c),
		"the same, where the base comes, too":   newGraph().ref(b, a).ref(c, b).whole(c).stores(b).stores(c),
		"a circle by place and by name":         newGraph().whole(a).ofs(0, b).ref(b, a).ref(a, b).ofs(2, c),
		"nothing":                               newGraph(),
		"many that are one":                     many(300),
	} {
		t.Run(story, func(t *testing.T) {
			for workers := range 5 {
				g.check(t, workers)
			}
		})
	}
}

// many has each of two objects n times, made from the other.
func many(n int) *graph {
	g := newGraph().whole(1)
	for range n {
		g.ref(1, 2).ref(2, 1).whole(1)
	}
	return g
}

// FuzzDeltaGraph uses two bytes for an entry: its kind and what it is made from and makes.
func FuzzDeltaGraph(f *testing.F) {
	f.Add([]byte{0x10, 0x01, 0x11, 0x21, 0x12})
	f.Add([]byte{0x01, 0x21, 0x12, 0x12, 0x21})
	f.Add([]byte{0x00, 0x00, 0x01, 0x00, 0x22, 0x12, 0x22, 0x21})
	f.Fuzz(func(t *testing.T, data []byte) {
		g := newGraph()
		for len(data) >= 2 && len(g.entries) < 200 {
			from, to := int(data[1]>>4), int(data[1]&15)
			switch kind := data[0] % 4; {
			case kind == 0:
				g.whole(to)
			case kind == 1 || kind == 3 && len(g.entries) == 0:
				g.ref(from, to)
			case kind == 2:
				g.stores(to)
			default:
				g.ofs((int(data[0])/4*16+from)%len(g.entries), to)
			}
			data = data[2:]
		}
		g.check(t, 1+len(g.entries)%3)
	})
}
