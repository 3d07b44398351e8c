package index

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math/rand"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/object"
	"corpus-git/git/tree"
)

// testIndex is an index in memory.
type testIndex struct {
	entries []Entry
	tree    *Tree
	raw     []byte
	id      ID
}

func (x *testIndex) places(n int) func(i int) *Entry {
	x.entries = make([]Entry, n)
	return func(i int) *Entry { return &x.entries[i] }
}

func (x *testIndex) filled(n int, tree *Tree, err error) (*testIndex, error) {
	if err != nil {
		return nil, err
	}
	x.entries, x.tree = x.entries[:n], tree
	return x, nil
}

func readIndex(data []byte) (*testIndex, error) {
	x := &testIndex{raw: data}
	return x.filled(Parse(data, false, x.places))
}

// readBody reads an index without its checksum.
func readBody(body []byte) (*testIndex, error) {
	x := &testIndex{raw: body}
	return x.filled(parseBody(body, x.places))
}

func (x *testIndex) encode() []byte {
	var b bytes.Buffer
	c := Content{Count: len(x.entries), Entry: func(i int) *Entry { return &x.entries[i] }, Tree: x.tree, Raw: x.raw}
	x.id, _ = c.Write(func(parts [][]byte) error {
		for _, p := range parts {
			b.Write(p)
		}
		return nil
	})
	return b.Bytes()
}

// Whatever an index holds, its paths stay inside the tree, and what is written can be read again.
func FuzzIndex(f *testing.F) {
	good := &testIndex{
		entries: []Entry{{Path: "a", Mode: object.ModeFile}, {Path: "b/c", Mode: object.ModeExecutable, Stat: Stat{Size: 3}}, {Path: "b/d", Mode: object.ModeSymlink}},
		tree:    &Tree{Count: 3, subs: []*Tree{{Name: "b", Count: 2}}},
	}
	f.Add(good.encode()[:len(good.encode())-sha1.Size])
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01" + strings.Repeat("\x00", 26) + "\x81\xa4" + strings.Repeat("\x00", 34) + "\x00\x01\x00a\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha1.Sum(body)
		x, err := readIndex(append(append([]byte(nil), body...), sum[:]...))
		if err != nil {
			require.ErrorIs(t, err, ErrUnusable)
			return
		}
		last := ""
		for _, e := range x.entries {
			require.Greater(t, e.Path, last)
			last = e.Path
			require.Equal(t, path.Clean(e.Path), e.Path)
			require.False(t, path.IsAbs(e.Path) || strings.HasPrefix(e.Path, "../"))
			require.NoError(t, tree.CheckPath(e.Path))
		}
		again, err := readIndex(x.encode())
		require.NoError(t, err)
		for i := range x.entries {
			x.entries[i].at, again.entries[i].at = 0, 0
		}
		require.Equal(t, x.entries, again.entries)
	})
}

// Entries copied from the old index equal those that would be written without it.
func TestIndexIsPatched(t *testing.T) {
	x := &testIndex{}
	for i := range 300 {
		x.entries = append(x.entries, Entry{Path: fmt.Sprintf("d%02d/%03d%s", i/10, i, strings.Repeat("x", i%9)), Mode: object.ModeFile, Hash: plumbing.Hash{byte(i)}, Stat: Stat{Size: uint32(i)}})
	}
	old, err := readIndex(x.encode())
	require.NoError(t, err)
	rnd := rand.New(rand.NewSource(1))
	for range 50 {
		next := &testIndex{raw: old.raw}
		plain := &testIndex{}
		for _, e := range old.entries {
			switch rnd.Intn(12) {
			case 0:
				continue
			case 1:
				e.SetStat(Stat{Size: rnd.Uint32()})
			case 2:
				e.Mode, e.at = object.ModeExecutable, 0
			}
			next.entries = append(next.entries, e)
			e.at = 0
			plain.entries = append(plain.entries, e)
		}
		require.Equal(t, plain.encode(), next.encode())
		require.Equal(t, plain.id, next.id)
	}
}

// A large index parsed in parts has the same result as parsed entry by entry, whatever is wrong with it and wherever entries are in conflict.
func TestIndexInParts(t *testing.T) {
	const n = parseAtOnce + 3
	x := &testIndex{tree: &Tree{Count: n, Hash: plumbing.Hash{1}}}
	for i := range n {
		x.entries = append(x.entries, Entry{Path: fmt.Sprintf("d%02d/%05d%s", i/100, i, strings.Repeat("x", i%9)), Mode: object.ModeFile, Hash: plumbing.Hash{byte(i)}})
	}
	good := x.encode()
	rnd := rand.New(rand.NewSource(1))
	inParts := 0
	for round := range 60 {
		data := bytes.Clone(good[:len(good)-len(x.id.Sum)])
		starts := entryStarts(data, 2, n)
		switch {
		case round == 0:
		case round < 10: // a name twice, in two stages, before or after the border of two parts
			border := partStart(1+round%(parseParts-1), n)
			at := starts[border]
			second := data[at:starts[border+1]]
			second[60] |= 0x20
			first := bytes.Clone(second)
			first[60] = first[60]&^0x30 | 0x10
			data = slices.Concat(data[:at], first, data[at:])
			binary.BigEndian.PutUint32(data[8:], n+1)
		case round < 20:
			data = data[:rnd.Intn(len(data))]
			data = append(data, make([]byte, max(0, 12-len(data)))...)
		case round < 30: // the extension
			data[int(starts[n])+rnd.Intn(len(data)-int(starts[n]))] ^= 1 << rnd.Intn(8)
		default:
			data[12+rnd.Intn(len(data)-12)] ^= 1 << rnd.Intn(8)
		}
		got, gotErr := readBody(data)
		version, count := binary.BigEndian.Uint32(data[4:]), int(binary.BigEndian.Uint32(data[8:]))
		if version != 2 || int64(count) > int64(len(data))/entryFixed {
			require.Error(t, gotErr)
			continue
		}
		want := &testIndex{}
		p := parser{body: data, text: string(data), version: version, count: count, at: want.places(count)}
		n, tree, wantErr := p.each()
		require.Equal(t, wantErr, gotErr)
		if wantErr == nil {
			require.Equal(t, want.entries[:n], got.entries)
			require.Equal(t, tree, got.tree)
		}
		if starts := entryStarts(data, version, count); starts != nil {
			p.at = (&testIndex{}).places(count)
			if _, ok := p.parts(starts); ok {
				inParts++
				require.NoError(t, wantErr)
			}
		}
	}
	require.Greater(t, inParts, 10)
}
