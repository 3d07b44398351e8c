package pack

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"corpus-git/internal/testutil/gittest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

// readAll compares every object of a pack with its name, in each way of reading.
func readAll(t *testing.T, p *Pack) int {
	t.Helper()
	n := 0
	require.NoError(t, p.Each(func(h plumbing.Hash, off int64) error {
		n++
		typ, data, err := p.Get(off)
		require.NoError(t, err)
		require.Equal(t, h, plumbing.ComputeHash(typ, data))
		typ2, size, err := p.Header(off)
		require.NoError(t, err)
		require.Equal(t, typ, typ2)
		require.EqualValues(t, len(data), size)
		typ3, size, r, err := p.Stream(off)
		require.NoError(t, err)
		require.Equal(t, typ, typ3)
		require.EqualValues(t, len(data), size)
		all, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
		require.True(t, bytes.Equal(data, all))
		name, err := p.Name(off)
		require.NoError(t, err)
		require.Equal(t, h, name)
		return nil
	}))
	return n
}

// readWindows compares what a Window returns for each entry with what is read separately: in the order of offsets, in that of names, and
// alternating.
func readWindows(t *testing.T, p *Pack) {
	t.Helper()
	var byName []int64
	require.NoError(t, p.Each(func(_ plumbing.Hash, off int64) error { byName = append(byName, off); return nil }))
	sorted := slices.Sorted(slices.Values(byName))
	var swing []int64
	for i, off := range sorted {
		swing = append(swing, off, sorted[max(0, i-3)], sorted[len(sorted)-1-i])
	}
	var w Window
	for _, order := range [][]int64{sorted, byName, swing} {
		for _, off := range order {
			want, err := p.Entry(off)
			require.NoError(t, err)
			got, err := w.Entry(p, off)
			require.NoError(t, err)
			require.Equal(t, want, got)
			data, err := p.Inflate(want, nil)
			require.NoError(t, err)
			same, err := w.Inflate(p, got, nil)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, same))
		}
	}
	_, err := w.Entry(p, p.Size()-hashLen)
	require.ErrorIs(t, err, ErrCorrupt)
}

// Packs that git wrote and indexed, including offsets beyond 2 GiB.
func TestReadsPacksOfGit(t *testing.T) {
	src := history(t, 80)
	for _, args := range [][]string{
		{"-c", "core.bigFileThreshold=1m", "pack-objects", "--revs", "--delta-base-offset", "-q"},
		{"pack-objects", "--revs", "-q"},
		{"pack-objects", "--revs", "--delta-base-offset", "--index-version=2,0x1000", "-q"},
	} {
		dir := t.TempDir()
		id := strings.TrimSpace(string(gittest.Output(t, src, []byte("master\nv1\n"), append(args, filepath.Join(dir, "pack"))...)))
		p, err := Open(filepath.Join(dir, "pack-"+id+".pack"), NewCache(64<<10))
		require.NoError(t, err)
		require.Equal(t, p.Count(), readAll(t, p))
		readWindows(t, p)

		// Abbreviations, one of them ambiguous.
		var first plumbing.Hash
		require.NoError(t, p.Each(func(h plumbing.Hash, _ int64) error { first = h; return nil }))
		for n := 0; n <= 40; n++ {
			digits := first.String()[:n]
			found := false
			require.NoError(t, p.Prefix(digits, func(h plumbing.Hash) bool {
				require.True(t, strings.HasPrefix(h.String(), digits))
				found = found || h == first
				return true
			}))
			require.True(t, found)
		}
		require.NoError(t, p.Prefix("xyz", func(plumbing.Hash) bool { t.Fatal("no digits"); return false }))

		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				_ = p.Each(func(h plumbing.Hash, off int64) error { _, _, err := p.Get(off); return err })
			})
		}
		require.NoError(t, p.Close())
		require.NoError(t, p.Close())
		wg.Wait()
		_, _, err = p.Find(first)
		require.ErrorIs(t, err, ErrClosed)
	}
}

func TestOpenRefusesWhatDoesNotFit(t *testing.T) {
	src := history(t, 10)
	x := &Indexer{}
	res, err := index(t, x, gittest.Pack(t, src, []string{"master"}))
	require.NoError(t, err)
	other, err := index(t, x, gittest.Pack(t, src, []string{"master~1"}))
	require.NoError(t, err)
	idx, err := os.ReadFile(res.Idx)
	require.NoError(t, err)
	put := func(data []byte) {
		_ = os.Remove(res.Idx)
		require.NoError(t, os.WriteFile(res.Idx, data, 0o644))
	}
	theirs, err := os.ReadFile(other.Idx)
	require.NoError(t, err)
	for story, data := range map[string][]byte{
		"another pack's": theirs, "empty": nil, "cut": idx[:len(idx)-1], "version 1": idx[8:], "fan-out falls": func() []byte {
			b := bytes.Clone(idx)
			binary.BigEndian.PutUint32(b[8+4*10:], 1<<30)
			return b
		}(),
	} {
		put(data)
		_, err = Open(res.Pack, nil)
		require.ErrorIs(t, err, ErrCorrupt, story)
	}
	b := bytes.Clone(idx)
	for i := range res.Objects {
		binary.BigEndian.PutUint32(b[idxFixed+res.Objects*24+4*i:], 0x80000001)
	}
	put(b)
	p, err := Open(res.Pack, nil)
	require.NoError(t, err)
	_, _, err = p.Find(p.idx.Hash(0))
	require.ErrorIs(t, err, ErrCorrupt, "a large offset that is not there")
	require.NoError(t, p.Close())
	put(idx)
	_, err = Open(strings.TrimSuffix(res.Pack, "pack"), nil)
	require.Error(t, err)
	_, err = Open(filepath.Join(x.Dir, "none.pack"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzIndexFile(f *testing.F) {
	var b bytes.Buffer
	g := &run{order: []int32{0, 1}, trailer: plumbing.NewHash(strings.Repeat("ab", 20))}
	g.recs.add().off = 12
	*g.recs.add() = record{off: 1 << 33, hash: plumbing.NewHash(strings.Repeat("cd", 20))}
	if err := g.writeIdx(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), []byte{0xcd})
	f.Fuzz(func(t *testing.T, data, find []byte) {
		x, err := ParseIndex(data)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		var h plumbing.Hash
		copy(h[:], find)
		if i, ok := x.Find(h); ok {
			require.Equal(t, h, x.Hash(i))
		}
		for i := range x.Count() {
			if _, err := x.Offset(i); err != nil {
				require.ErrorIs(t, err, ErrCorrupt)
			}
			x.CRC(i)
		}
		x.Prefix(h.String()[:3], func(got plumbing.Hash) bool {
			require.True(t, HasPrefix(got, h.String()[:3]))
			return true
		})
	})
}

func FuzzApplyDelta(f *testing.F) {
	f.Add([]byte("hello"), appendText(5, "x"))
	f.Add([]byte("abc"), []byte{3, 3, 0x90, 3})
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		_, size, _, err := DeltaSizes(delta)
		if err != nil || size > 1<<20 {
			return
		}
		out, err := ApplyDelta(nil, base, delta)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		require.EqualValues(t, size, len(out))
		require.Equal(t, string(slowDelta(base, delta)), string(out))
		again, err := ApplyDelta(make([]byte, 3, 4096), base, delta)
		require.NoError(t, err)
		require.Equal(t, string(out), string(again))
	})
}

// slowDelta applies a valid delta as described in the format's documentation.
func slowDelta(base, delta []byte) []byte {
	_, _, n, _ := DeltaSizes(delta)
	var out []byte
	for d := delta[n:]; len(d) > 0; {
		op := d[0]
		d = d[1:]
		if op < 0x80 {
			out, d = append(out, d[:op]...), d[op:]
			continue
		}
		var v [7]int
		for i := range v {
			if op>>i&1 != 0 {
				v[i], d = int(d[0]), d[1:]
			}
		}
		off, k := v[0]|v[1]<<8|v[2]<<16|v[3]<<24, v[4]|v[5]<<8|v[6]<<16
		if k == 0 {
			k = 0x10000
		}
		out = append(out, base[off:off+k]...)
	}
	return out
}

func FuzzEntryHead(f *testing.F) {
	f.Add([]byte{0xb5, 0x0a}, int64(100))
	f.Add(appendEntry(nil, plumbing.OFSDeltaObject, 300, 500, plumbing.ZeroHash), int64(1000))
	f.Fuzz(func(t *testing.T, b []byte, off int64) {
		if off < headerLen {
			return
		}
		e, err := parseEntry(b, off)
		if err != nil {
			return
		}
		require.LessOrEqual(t, e.Data-off, int64(maxEntryHead))
		again, err := parseEntry(appendEntry(nil, e.Type, e.Size, off-e.BaseOffset, e.BaseHash), off)
		require.NoError(t, err)
		again.Data = e.Data
		require.Equal(t, e, again)
	})
}

// A stream of any bytes is refused, or is a pack that git reads in the same way.
func FuzzIndexer(f *testing.F) {
	f.Add(newBuilder().object(plumbing.BlobObject, []byte("hello\n")).ofs(0, appendText(6, "more\n")).done())
	f.Add(newBuilder().object(plumbing.BlobObject, []byte("a")).ref(plumbing.ComputeHash(plumbing.BlobObject, []byte("a")), appendText(1, "b")).done())
	f.Add(newBuilder().ref(plumbing.NewHash(strings.Repeat("ab", 20)), appendText(1, "b")).done())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > headerLen+hashLen { // a right checksum, so that the fuzzer gets beyond it
			b := newBuilder()
			b.Reset()
			b.Write(data[:len(data)-hashLen])
			b.n = binary.BigEndian.Uint32(data[8:])
			data = b.done()
		}
		x := &Indexer{Dir: t.TempDir(), Limits: Limits{ObjectBytes: 1 << 20, TotalBytes: 8 << 20}, Workers: 2}
		res, err := index(t, x, data)
		if err != nil {
			require.Empty(t, ls(t, x.Dir))
			return
		}
		if res.Objects == 0 {
			return
		}
		p, err := Open(res.Pack, nil)
		require.NoError(t, err)
		require.Equal(t, res.Objects, readAll(t, p))
		require.NoError(t, p.Close())
	})
}
