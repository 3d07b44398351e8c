package pack

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"corpus-git/internal/testutil/gittest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

// The index equals git's byte for byte, and the pack the one that was received.
func TestIndexIsGits(t *testing.T) {
	src := history(t, 120)
	for name, args := range map[string][]string{
		"ofs":       {"--delta-base-offset"},
		"ref":       {},
		"deep":      {"--delta-base-offset", "--depth=200", "--window=250", "--no-reuse-delta"},
		"no deltas": {"--depth=0", "--no-reuse-delta"},
	} {
		for _, lim := range []Limits{{}, {BaseMemory: 1, StreamBytes: 1 << 20}} {
			t.Run(fmt.Sprint(name, lim.BaseMemory), func(t *testing.T) {
				data := gittest.Pack(t, src, []string{"master", "v1"}, args...)
				var mu sync.Mutex
				seen := map[plumbing.Hash]int{}
				x := &Indexer{Limits: lim, Visit: func(o *Object) error {
					if o.Data != nil {
						if h := plumbing.ComputeHash(o.Type, o.Data); h != o.Hash {
							return fmt.Errorf("%s is %s", o.Hash, h)
						}
					}
					mu.Lock()
					defer mu.Unlock()
					seen[o.Hash]++
					return nil
				}}
				var last, total int
				x.Progress = func(n, of int) { last, total = n, of }
				res, err := index(t, x, data)
				require.NoError(t, err)
				require.Len(t, seen, res.Objects)
				require.Equal(t, res.Objects, last)
				require.Equal(t, res.Objects, total)
				require.EqualValues(t, len(data), res.Bytes)
				got, err := os.ReadFile(res.Pack)
				require.NoError(t, err)
				require.True(t, bytes.Equal(data, got))

				other := t.TempDir()
				gittest.Output(t, other, nil, "verify-pack", res.Pack)
				gittest.Output(t, other, nil, "index-pack", "--rev-index", "-o", "x.idx", res.Pack)
				for ours, theirs := range map[string]string{res.Idx: "x.idx", res.Rev: "x.rev"} {
					a, err := os.ReadFile(ours)
					require.NoError(t, err)
					b, err := os.ReadFile(filepath.Join(other, theirs))
					require.NoError(t, err)
					require.True(t, bytes.Equal(a, b), theirs)
				}
				require.Len(t, ls(t, x.Dir), 3, "nothing else is left")
				for h, n := range seen {
					require.Equal(t, 1, n)
					require.True(t, res.Has(h))
				}
			})
		}
	}
}

// A pack is read to its trailer however slowly it arrives, and not a byte further.
func TestStreamEndsAtTrailer(t *testing.T) {
	src := history(t, 30)
	data := gittest.Pack(t, src, []string{"master"}, "--delta-base-offset")
	for name, r := range map[string]io.Reader{
		"whole":       bytes.NewReader(append(bytes.Clone(data), "more"...)),
		"one by one":  iotest.OneByteReader(bytes.NewReader(append(bytes.Clone(data), "more"...))),
		"then stands": io.MultiReader(bytes.NewReader(data), hangs{t}),
	} {
		t.Run(name, func(t *testing.T) {
			br := bufio.NewReaderSize(r, 64)
			if name == "whole" {
				br = bufio.NewReaderSize(r, 256<<10)
			}
			x := &Indexer{Dir: t.TempDir()}
			_, err := x.Index(t.Context(), br)
			require.NoError(t, err)
			if name != "then stands" {
				rest, err := io.ReadAll(br)
				require.NoError(t, err)
				require.Equal(t, "more", string(rest))
			}
		})
	}
}

// hangs is a client that waits for its report: reading further would wait for ever.
type hangs struct{ t *testing.T }

func (h hangs) Read([]byte) (int, error) {
	h.t.Error("read beyond the trailer")
	return 0, io.EOF
}

func TestThinPack(t *testing.T) {
	src := history(t, 60)
	thin := gittest.Pack(t, src, []string{"master", "^master~20"}, "--thin", "--delta-base-offset")
	whole, err := index(t, &Indexer{}, gittest.Pack(t, src, []string{"master~20"}))
	require.NoError(t, err)
	p, err := Open(whole.Pack, NewCache(1<<20))
	require.NoError(t, err)
	defer p.Close()

	_, err = index(t, &Indexer{}, thin)
	var missing *MissingBaseError
	require.ErrorAs(t, err, &missing)
	require.ErrorIs(t, err, ErrCorrupt)

	x := &Indexer{Bases: packGetter{p}}
	added := 0
	var mu sync.Mutex
	x.Visit = func(o *Object) error {
		mu.Lock()
		defer mu.Unlock()
		if o.Added {
			added++
		}
		return nil
	}
	res, err := index(t, x, thin)
	require.NoError(t, err)
	require.Positive(t, res.Added)
	require.Equal(t, added, res.Added)
	gittest.Output(t, x.Dir, nil, "verify-pack", res.Pack)
	gittest.Output(t, x.Dir, nil, "index-pack", "-o", "x.idx", res.Pack)
	a, err := os.ReadFile(res.Idx)
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(x.Dir, "x.idx"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(a, b))
	again, err := index(t, &Indexer{Bases: packGetter{p}, Workers: 1}, thin)
	require.NoError(t, err)
	require.Equal(t, res.ID, again.ID, "one push gives one pack")
	for h := range came(t, res.Pack) {
		_, here := res.Received(h)
		_, off, _ := p.Find(h)
		_ = off
		require.True(t, res.Has(h))
		if !here {
			added--
		}
	}
	require.Zero(t, added)
}

func came(t *testing.T, path string) map[plumbing.Hash]bool {
	p, err := Open(path, nil)
	require.NoError(t, err)
	defer p.Close()
	out := map[plumbing.Hash]bool{}
	require.NoError(t, p.Each(func(h plumbing.Hash, _ int64) error { out[h] = true; return nil }))
	return out
}

type packGetter struct{ p *Pack }

func (g packGetter) Get(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	off, ok, err := g.p.Find(h)
	if err != nil || !ok {
		return 0, nil, errors.Join(err, plumbing.ErrObjectNotFound)
	}
	return g.p.Get(off)
}

func TestEmptyPack(t *testing.T) {
	x := &Indexer{}
	res, err := index(t, x, newBuilder().done())
	require.NoError(t, err)
	require.Empty(t, res.Pack)
	require.Empty(t, ls(t, x.Dir))
	require.False(t, res.Has(plumbing.ZeroHash))
}

func TestVisitRefuses(t *testing.T) {
	src := history(t, 30)
	data := gittest.Pack(t, src, []string{"master"})
	no := errors.New("no")
	for _, at := range []int{1, 5, 100} {
		var mu sync.Mutex
		n := 0
		x := &Indexer{Visit: func(*Object) error {
			mu.Lock()
			defer mu.Unlock()
			if n++; n == at {
				return no
			}
			return nil
		}}
		_, err := index(t, x, data)
		require.ErrorIs(t, err, no)
		require.Empty(t, ls(t, x.Dir), "nothing is left")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := &Indexer{Dir: t.TempDir()}
	_, err := x.Index(ctx, bufio.NewReader(bytes.NewReader(data)))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, ls(t, x.Dir))
}

// Each case is one pack that an attacker, or a broken client, may send.
func TestHostilePacks(t *testing.T) {
	blob := func(s string) []byte { return []byte(s) }
	name := func(s string) plumbing.Hash { return plumbing.ComputeHash(plumbing.BlobObject, []byte(s)) }
	good := newBuilder().object(plumbing.BlobObject, blob("hello\n")).ofs(0, appendText(6, "more\n")).done()
	sealed := func(data []byte) []byte { // a good trailer after bad bytes
		b := newBuilder()
		b.Reset()
		b.Write(data)
		b.n = uint32(data[11]) | uint32(data[10])<<8
		return b.done()
	}
	limit := func(name string) func(t *testing.T, err error) {
		return func(t *testing.T, err error) {
			var l *LimitError
			require.ErrorAs(t, err, &l)
			require.Equal(t, name, l.Name)
			require.ErrorIs(t, err, ErrLimit)
			require.NotContains(t, err.Error(), "%!")
		}
	}
	bad := func(text string) func(t *testing.T, err error) {
		return func(t *testing.T, err error) {
			require.ErrorIs(t, err, ErrCorrupt)
			require.ErrorContains(t, err, text)
		}
	}
	cut := func(t *testing.T, err error) { require.ErrorIs(t, err, io.ErrUnexpectedEOF) }
	zeros := make([]byte, 5<<20)
	flip := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	bomb := newBuilder().object(plumbing.BlobObject, make([]byte, 60000))
	copies := cat(varint(60000), varint(60000*200), bytes.Repeat([]byte{0x80 | 0x30, 0x60, 0xea}, 200))
	for range 300 {
		bomb.ofs(0, copies)
	}
	chain := newBuilder().object(plumbing.BlobObject, blob("x"))
	for i := range 60 {
		chain.ofs(i, appendText(1+i, "y"))
	}
	for story, c := range map[string]struct {
		data  []byte
		lim   Limits
		check func(*testing.T, error)
	}{
		"nothing comes":                           {nil, Limits{}, cut},
		"not a pack":                              {blob("GET / HTTP/1.1\r\n"), Limits{}, bad("no pack")},
		"an unknown version":                      {cat(blob("PACK"), []byte{0, 0, 0, 9, 0, 0, 0, 0}, make([]byte, 20)), Limits{}, bad("version 9")},
		"a wrong checksum":                        {flip(len(good) - 1), Limits{}, bad("checksum")},
		"a flipped bit in an object":              {flip(headerLen + 4), Limits{}, func(t *testing.T, err error) { require.Error(t, err) }},
		"a count of four billion, and no objects": {cat(appendHeader(nil, 1<<32-1), make([]byte, 20)), Limits{}, limit("Objects")},
		"a count of 19 million, and no objects":   {appendHeader(nil, 19_000_000), Limits{}, cut},
		"a count of more than may come":           {appendHeader(nil, 1000), Limits{PackBytes: 5000}, limit("PackBytes")},
		"one object less than promised":           {sealed(append(appendHeader(nil, 3), good[headerLen:len(good)-20]...))[:len(good)-20], Limits{}, cut},
		"type 0":                                  {newBuilder().raw([]byte{0x01}, deflate(blob("a"))).done(), Limits{}, bad("unknown type 0")},
		"type 5":                                  {newBuilder().raw([]byte{0x51}, deflate(blob("a"))).done(), Limits{}, bad("unknown type 5")},
		"a size of 2^70":                          {newBuilder().raw(cat([]byte{0xbf}, bytes.Repeat([]byte{0xff}, 9), []byte{1}), deflate(blob("a"))).done(), Limits{}, bad("size")},
		"a size that lies below":                  {newBuilder().raw([]byte{0x31}, deflate(blob("abc"))).done(), Limits{}, bad("more than its object's size")},
		"a size that lies above":                  {newBuilder().raw([]byte{0x3f}, deflate(blob("abc"))).done(), Limits{}, func(t *testing.T, err error) { require.Error(t, err) }},
		"a size of a terabyte":                    {newBuilder().raw(appendEntry(nil, plumbing.BlobObject, 1<<40, 0, plumbing.ZeroHash), deflate(blob("a"))).done(), Limits{}, limit("ObjectBytes")},
		"a tree of a gigabyte that is not there":  {newBuilder().raw(appendEntry(nil, plumbing.TreeObject, 1<<30, 0, plumbing.ZeroHash), deflate(blob("a"))).done(), Limits{}, limit("Checked")},
		"a tag of zeros":                          {newBuilder().object(plumbing.TagObject, make([]byte, 17<<20)).done(), Limits{}, limit("Checked")},
		"a commit of zeros, as a delta":           {newBuilder().object(plumbing.CommitObject, make([]byte, 60000)).ofs(0, cat(varint(60000), varint(60000*300), bytes.Repeat([]byte{0x80 | 0x30, 0x60, 0xea}, 300))).done(), Limits{}, limit("Checked")},
		"a blob of a gigabyte that is not there":  {newBuilder().raw(appendEntry(nil, plumbing.BlobObject, 1<<30, 0, plumbing.ZeroHash), deflate(blob("a"))).done(), Limits{}, func(t *testing.T, err error) { require.Error(t, err) }},
		"an inflate bomb":                         {newBuilder().object(plumbing.BlobObject, zeros).done(), Limits{ObjectBytes: 4 << 20}, limit("ObjectBytes")},
		"an inflate bomb, by its ratio":           {newBuilder().object(plumbing.BlobObject, zeros).done(), Limits{Ratio: 200}, limit("Ratio")},
		"a streamed inflate bomb":                 {newBuilder().object(plumbing.BlobObject, zeros).done(), Limits{StreamBytes: 1 << 20, Ratio: 200}, limit("Ratio")},
		"many small bombs":                        {newBuilder().object(plumbing.BlobObject, zeros).object(plumbing.BlobObject, zeros[1:]).done(), Limits{TotalBytes: 6 << 20}, limit("TotalBytes")},
		"a delta bomb":                            {bomb.done(), Limits{DeltaBytes: 1 << 20}, limit("DeltaBytes")},
		"many delta bombs":                        {bomb.done(), Limits{TotalBytes: 100 << 20}, limit("TotalBytes")},
		"an endless chain":                        {chain.done(), Limits{DeltaDepth: 50}, limit("DeltaDepth")},
		"a pack over the limit":                   {good, Limits{PackBytes: int64(len(good)) - 1}, limit("PackBytes")},
		"garbage instead of zlib":                 {newBuilder().raw([]byte{0x31}, blob("aaaaaaaaaaaa")).done(), Limits{}, bad("zlib")},
		"a zlib stream with a wrong Adler-32":     {newBuilder().raw([]byte{0x31}, func() []byte { d := deflate(blob("a")); d[len(d)-1] ^= 1; return d }()).done(), Limits{}, bad("zlib")},
		"a base before the pack":                  {newBuilder().raw(cat([]byte{0x67, 0x7f}), deflate(appendText(1, "b"))).done(), Limits{}, bad("outside")},
		"a base that is itself":                   {newBuilder().raw(cat([]byte{0x67, 0}), deflate(appendText(1, "b"))).done(), Limits{}, bad("outside")},
		"a base within an object":                 {newBuilder().object(plumbing.BlobObject, blob("hello")).raw(cat([]byte{0x67, 3}), deflate(appendText(1, "b"))).done(), Limits{}, bad("no object begins")},
		"two deltas, each the other's base":       {newBuilder().ref(name("ab"), appendText(2, "c")).ref(name("abc"), appendText(3, "d")).done(), Limits{}, bad("neither in the pack")},
		"a delta on a base that is nowhere":       {newBuilder().ref(name("zz"), appendText(2, "c")).done(), Limits{}, bad("neither in the pack")},
		"a delta for a base of another size":      {newBuilder().object(plumbing.BlobObject, blob("abc")).ofs(0, appendText(2, "x")).done(), Limits{}, bad("made for a base")},
		"a delta of one byte":                     {newBuilder().object(plumbing.BlobObject, blob("abc")).ofs(0, []byte{3}).done(), Limits{}, bad("delta of 1")},
		"a delta with the reserved instruction":   {newBuilder().object(plumbing.BlobObject, blob("abc")).ofs(0, []byte{3, 1, 0}).done(), Limits{}, bad("reserved")},
		"a delta that copies from beyond":         {newBuilder().object(plumbing.BlobObject, blob("abc")).ofs(0, []byte{3, 3, 0x91, 2, 3}).done(), Limits{}, bad("runs over")},
		"a delta that gives too much":             {newBuilder().object(plumbing.BlobObject, blob("abc")).ofs(0, []byte{3, 2, 0x90, 3}).done(), Limits{}, bad("runs over")},
		"a delta that gives too little":           {newBuilder().object(plumbing.BlobObject, blob("abc")).ofs(0, []byte{3, 9, 0x90, 3}).done(), Limits{}, bad("promised")},
		"a delta cut within a copy":               {newBuilder().object(plumbing.BlobObject, blob("abc")).ofs(0, []byte{3, 3, 0xff, 0}).done(), Limits{}, bad("cut")},
		"a delta that promises an exabyte":        {newBuilder().object(plumbing.BlobObject, blob("abc")).ofs(0, cat([]byte{3}, varint(1<<60), []byte{0x90, 3})).done(), Limits{}, limit("DeltaBytes")},
	} {
		t.Run(story, func(t *testing.T) {
			x := &Indexer{Dir: t.TempDir(), Limits: c.lim}
			_, err := index(t, x, c.data)
			require.Error(t, err)
			c.check(t, err)
			require.Empty(t, ls(t, x.Dir), "nothing is left")
		})
	}
	for n := range len(good) {
		x := &Indexer{Dir: t.TempDir()}
		_, err := index(t, x, good[:n])
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "cut after %d bytes", n)
		require.Empty(t, ls(t, x.Dir))
	}
	res, err := index(t, &Indexer{}, good)
	require.NoError(t, err)
	require.True(t, res.Has(name("hello\nmore\n")))
}

func TestLimitMessages(t *testing.T) {
	for _, n := range []string{"PackBytes", "Objects", "ObjectBytes", "DeltaBytes", "DeltaDepth", "Ratio", "TotalBytes"} {
		s := (&LimitError{Name: n, Limit: 7, Got: 9, Offset: 12}).Error()
		require.True(t, strings.Contains(s, "7") && strings.Contains(s, "(9") && strings.Contains(s, "byte 12"), s)
	}
	for want, e := range map[string]*LimitError{
		"object is larger than 2GiB (3.5GiB), at byte 212 of the pack": {Name: "ObjectBytes", Limit: 2 << 30, Got: 7 << 29, Offset: 212},
		"pack is longer than 40KiB":                                    {Name: "PackBytes", Limit: 40 << 10},
		"pack is longer than 1000 bytes":                               {Name: "PackBytes", Limit: 1000},
		"pack is longer than 1.5KiB (1TiB)":                            {Name: "PackBytes", Limit: 1536, Got: 1 << 40},
		"pack has more than 10 objects (4096)":                         {Name: "Objects", Limit: 10, Got: 4096},
	} {
		require.Equal(t, want, e.Error())
	}
}

// Two goroutines want one base at the same time: what the second finds loaded is not its own, but it was returned to the spare buffers while the
// first read it, so that objects got the names of other contents.
func TestBasesThatManyWantAtOnce(t *testing.T) {
	b := newBuilder()
	want := map[plumbing.Hash]bool{}
	var roots [][]byte
	for i := range 400 {
		data := []byte(fmt.Sprintf("root %d %s", i, strings.Repeat("x", i%150)))
		roots = append(roots, data)
		want[plumbing.ComputeHash(plumbing.BlobObject, data)] = true
		b.object(plumbing.BlobObject, data)
	}
	// By name, so that they wait for the second pass.
	for i, data := range roots {
		for k := range 6 {
			text := fmt.Sprintf("child %d", k)
			want[plumbing.ComputeHash(plumbing.BlobObject, append(bytes.Clone(data), text...))] = true
			b.ref(plumbing.ComputeHash(plumbing.BlobObject, roots[i]), appendText(len(data), text))
		}
	}
	data := b.done()
	for range 20 {
		res, err := index(t, &Indexer{Workers: 4}, data)
		require.NoError(t, err)
		require.Equal(t, len(want), res.Objects)
		for h := range want {
			require.True(t, res.Has(h))
		}
	}
}
