package pack

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"fmt"
	"math/rand"
	"path/filepath"
	"testing"

	"corpus-git/internal/testutil/gittest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

// history is a bare repository of n commits made by fast-import: files that grow and change in folders, a large one, an empty one.
func history(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	gittest.Output(t, dir, nil, "init", "-q", "--bare", "-b", "master")
	rnd := rand.New(rand.NewSource(1))
	files := map[string][]byte{}
	var in bytes.Buffer
	for i := range n {
		fmt.Fprintf(&in, "commit refs/heads/master\ncommitter A <a@example.org> %d +0000\ndata <<E\ncommit %d\nE\n", 1700000000+i, i)
		put := func(name string, data []byte) {
			files[name] = data
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(data), data)
		}
		for range 4 {
			name := fmt.Sprintf("d%d/e%d/f%d", rnd.Intn(5), rnd.Intn(4), rnd.Intn(6))
			old := files[name]
			for k := 0; old == nil && k < 30 || k < 2; k++ {
				old = fmt.Appendf(old, "%d %x %s\n", k, rnd.Int63(), name)
			}
			at := rnd.Intn(len(old))
			put(name, append(append(bytes.Clone(old[:at]), fmt.Sprintf("changed in %d\n", i)...), old[at:]...))
		}
		if i == n/2 {
			big := make([]byte, 3<<20)
			rnd.Read(big[:1<<20])
			put("big", big)
			put("empty", nil)
		}
	}
	gittest.Output(t, dir, in.Bytes(), "fast-import", "--quiet")
	gittest.Output(t, dir, nil, "tag", "-a", "-m", "a tag", "v1", "master~3")
	return dir
}

func index(t testing.TB, x *Indexer, data []byte) (*Result, error) {
	t.Helper()
	if x.Dir == "" {
		x.Dir = t.TempDir()
	}
	return x.Index(context.Background(), bufio.NewReaderSize(bytes.NewReader(data), 4096))
}

// builder makes packs that git would not make.
type builder struct {
	bytes.Buffer
	n    uint32
	offs []int64
}

func newBuilder() *builder {
	b := &builder{}
	b.Write(appendHeader(nil, 0))
	return b
}

func deflate(data []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

func (b *builder) raw(head, body []byte) *builder {
	b.offs = append(b.offs, int64(b.Len()))
	b.n++
	b.Write(head)
	b.Write(body)
	return b
}

func (b *builder) object(t plumbing.ObjectType, data []byte) *builder {
	return b.raw(appendEntry(nil, t, int64(len(data)), 0, plumbing.ZeroHash), deflate(data))
}

func (b *builder) ofs(to int, delta []byte) *builder {
	return b.raw(appendEntry(nil, plumbing.OFSDeltaObject, int64(len(delta)), int64(b.Len())-b.offs[to], plumbing.ZeroHash), deflate(delta))
}

func (b *builder) ref(base plumbing.Hash, delta []byte) *builder {
	return b.raw(appendEntry(nil, plumbing.REFDeltaObject, int64(len(delta)), 0, base), deflate(delta))
}

// done closes the pack with the right count and trailer.
func (b *builder) done() []byte {
	data := append(appendHeader(nil, b.n), b.Bytes()[headerLen:]...)
	sum := sha1.Sum(data)
	return append(data, sum[:]...)
}

// varint is a size as deltas write it.
func varint(n int64) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// appendText is a delta that copies all of a base and adds text.
func appendText(base int, text string) []byte {
	return cat(varint(int64(base)), varint(int64(base+len(text))), []byte{0x80 | 0x30, byte(base), byte(base >> 8)}, []byte{byte(len(text))}, []byte(text))
}

func ls(t testing.TB, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	return list
}
