package frames

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// item is something that is written: the whole content of a file, if it has a name.
type item struct {
	name string
	data []byte
}

// write writes a stream, and returns what every reader of zstd reads from it, how long it is, and its large files.
func write(t *testing.T, known *Known, limit int64, items ...item) (size int, made *Known) {
	t.Helper()
	var out, raw, want bytes.Buffer
	w := New(&out, &raw, known, coders(t), 8<<20)
	for _, i := range items {
		if i.name != "" {
			w.Content(i.name)
		}
		n, err := w.Write(i.data)
		require.NoError(t, err)
		require.Equal(t, len(i.data), n)
		want.Write(i.data)
	}
	require.NoError(t, w.Close())
	r, err := zstd.NewReader(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	defer r.Close()
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want.Bytes(), got), "the stream holds something else")
	require.True(t, bytes.Equal(want.Bytes(), raw.Bytes()), "something else was given to be compared")
	made = NewKnown(limit)
	w.Made(made)
	return out.Len(), made
}

func coders(t testing.TB) *Coders {
	t.Helper()
	c, err := NewCoders(4)
	require.NoError(t, err)
	return c
}

// Streams share coders, at the same time and after one that failed.
func TestSharedCoders(t *testing.T) {
	c := coders(t)
	r := rand.New(rand.NewPCG(9, 10))
	bad := New(failing{errors.New("bad")}, nil, nil, c, 1<<20)
	_, _ = bad.Write(bytesOf(r, 3<<20))
	require.Error(t, bad.Close())
	var all sync.WaitGroup
	for range 4 {
		data := bytesOf(r, 3<<20)
		var out bytes.Buffer
		w := New(&out, nil, nil, c, int64(len(data)))
		all.Go(func() {
			for p := range slices.Chunk(data, 100_000) {
				if _, err := w.Write(p); !assert.NoError(t, err) {
					return
				}
			}
			assert.NoError(t, w.Close())
			z, err := zstd.NewReader(&out)
			if !assert.NoError(t, err) {
				return
			}
			defer z.Close()
			got, err := io.ReadAll(z)
			assert.NoError(t, err)
			assert.True(t, bytes.Equal(data, got))
		})
	}
	all.Wait()
}

func bytesOf(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(1 << 4))
	}
	return b
}

// A stream is what was written, whatever of it was known, and wherever it has changed; a known part is not compressed again.
func TestKnownPartsAreReused(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	old := bytesOf(r, 700_000)
	head := item{data: bytesOf(r, 512)}
	_, known := write(t, nil, 8<<20, head, item{"index", old}, head)
	require.Equal(t, 11, len(known.files["index"]))
	changed := func(at, remove int, add string) []byte {
		return append(append(append([]byte{}, old[:at]...), add...), old[at+remove:]...)
	}
	for name, c := range map[string]struct {
		now []byte
		// fresh is how many bytes must be compressed, at most.
		fresh int
	}{
		"the same":          {old, 0},
		"one byte":          {changed(300_000, 1, "\xff"), part},
		"the ends":          {append(append([]byte{0xff}, old[1:len(old)-1]...), 0xff), 2 * part},
		"inserted":          {changed(300_000, 0, "some more"), part + 9},
		"removed":           {changed(300_000, 4000, ""), part},
		"appended":          {append(bytes.Clone(old), old[:100_000]...), 100_000 + part},
		"the front is gone": {old[50_000:], part},
		"cut":               {old[:200_000], part},
		"another one":       {bytesOf(r, 300_000), 300_000},
	} {
		t.Run(name, func(t *testing.T) {
			fresh := 0
			var all []byte
			for _, p := range known.split("index", c.now) {
				all = append(all, p.raw...)
				if p.zst == nil {
					fresh += len(p.raw)
				}
			}
			require.True(t, bytes.Equal(c.now, all))
			require.LessOrEqual(t, fresh, c.fresh)
			_, again := write(t, known, 8<<20, head, item{"index", c.now}, head, item{"other", c.now})
			require.Len(t, again.files, 2)
		})
	}
}

// Random histories of a file.
func TestRandomHistories(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		data, known := bytesOf(r, Large+r.IntN(400_000)), (*Known)(nil)
		for range 8 {
			_, known = write(t, known, 8<<20, item{data: bytesOf(r, r.IntN(3*block/2))}, item{"a", data}, item{"small", data[:min(len(data), r.IntN(Large))]})
			for range 1 + r.IntN(3) {
				at := r.IntN(len(data))
				end := min(len(data), at+r.IntN(3)*r.IntN(90_000))
				data = append(append(bytes.Clone(data[:at]), bytesOf(r, r.IntN(3)*r.IntN(90_000))...), data[end:]...)
				if len(data) == 0 {
					data = []byte{1}
				}
			}
		}
	}
}

// No more is kept than the limit.
func TestKnownIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	_, k := write(t, nil, 500_000, item{"a", bytesOf(r, 200_000)}, item{"b", bytesOf(r, 300_000)}, item{"small", bytesOf(r, 1000)})
	require.Len(t, k.files, 1)
	require.Positive(t, k.Bytes())
	require.LessOrEqual(t, k.Bytes(), int64(500_000))
	require.Zero(t, (*Known)(nil).Bytes())
}

// An error of what the stream is written to, or compared by, ends it.
func TestErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	bad := errors.New("bad")
	for name, to := range map[string]func() (out, raw io.Writer){
		"out": func() (out, raw io.Writer) { return failing{bad}, nil },
		"raw": func() (out, raw io.Writer) { return io.Discard, failing{bad} },
	} {
		t.Run(name, func(t *testing.T) {
			out, raw := to()
			w := New(out, raw, nil, coders(t), 1)
			for range 40 {
				w.Content("a")
				if _, err := w.Write(bytesOf(r, 300_000)); err != nil {
					break
				}
			}
			require.ErrorIs(t, w.Close(), bad)
			k := NewKnown(1 << 30)
			w.Made(k)
			require.Zero(t, k.Bytes())
		})
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
