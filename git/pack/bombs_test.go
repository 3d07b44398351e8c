package pack

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// zeros appends an object of n zero bytes, which are never all in memory.
func (b *builder) zeros(t plumbing.ObjectType, n int64) *builder {
	var body bytes.Buffer
	w, _ := zlib.NewWriterLevel(&body, zlib.BestSpeed)
	_, _ = io.CopyN(w, zeros{}, n)
	_ = w.Close()
	return b.raw(appendEntry(nil, t, n, 0, plumbing.ZeroHash), body.Bytes())
}

// copies returns a delta that makes an object of n bytes of copies of the first 1 MiB of a base, followed by text.
func copies(base, n int64, text string) []byte {
	d := cat(varint(base), varint(n+int64(len(text))))
	for range n >> 20 {
		d = append(d, 0x80|0x40, 0x10) // 1 MiB from 0
	}
	return append(append(d, byte(len(text))), text...)
}

// bomb is a small pack that requires a lot of memory. Its large object has size bytes.
func bomb(kind string, size int64) []byte {
	b := newBuilder()
	switch kind {
	case "tag", "commit", "tree":
		t, _ := plumbing.ParseObjectType(kind)
		b.zeros(t, size)
	case "family": // many of one base, itself made from a small one
		b.zeros(plumbing.BlobObject, 1<<20).ofs(0, copies(1<<20, size, "a"))
		for i := range 60 {
			b.ofs(1, copies(size+1, size, fmt.Sprintf("b%d", i)))
		}
	case "chain": // each of the previous one
		b.zeros(plumbing.BlobObject, 1<<20).ofs(0, copies(1<<20, size, "ab"))
		for i := range 60 {
			b.ofs(i+1, copies(size+2, size, fmt.Sprintf("%02d", i)))
		}
	case "few":
		b.zeros(plumbing.BlobObject, 1<<20).ofs(0, copies(1<<20, size, "a")).ofs(1, copies(size+1, size, "b"))
	}
	return b.done()
}

// TestBombChild is TestBombs' other process: it ingests the pack on its standard input, with the default limits.
func TestBombChild(t *testing.T) {
	memory, ok := os.LookupEnv("PACK_BOMB_MEMORY")
	if !ok {
		return // it is not a child
	}
	budget, err := strconv.ParseInt(memory, 10, 64)
	require.NoError(t, err)
	x := &Indexer{Dir: t.TempDir(), Limits: Limits{Memory: NewMemory(budget)}}
	_, err = x.Index(context.Background(), bufio.NewReaderSize(os.Stdin, 256<<10))
	name := "taken"
	var limit *LimitError
	if errors.As(err, &limit) {
		name = limit.Name
	} else if err != nil {
		name = err.Error()
	}
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); f[0] == "VmHWM:" {
			fmt.Printf("bomb: %s %s\n", name, f[1])
		}
	}
}

// 0.1 MB with 60 deltas to objects of 512 MiB took 2.1 GB and 90 s, 0.5 MB with a tag of 512 MiB of zeros took 1.05 GB. Each is refused before its memory
// is allocated; what is allocated stays within the memory that pushes may use.
func TestBombs(t *testing.T) {
	const mib = int64(1 << 20)
	for _, c := range []struct {
		kind         string
		size, budget int64
		want         string
		most         int64 // of the whole process
	}{
		{"tag", 512 * mib, 256 * mib, "Checked", 64 * mib},
		{"commit", 512 * mib, 256 * mib, "Checked", 64 * mib},
		{"tree", 512 * mib, 256 * mib, "Checked", 64 * mib},
		{"family", 511 * mib, 4096 * mib, "DeltaTotal", 64 * mib},
		{"chain", 511 * mib, 4096 * mib, "DeltaTotal", 64 * mib},
		{"few", 511 * mib, 256 * mib, "Memory", 64 * mib},
		{"few", 64 * mib, 256 * mib, "taken", 64*mib + 256*mib},
		{"chain", 4 * mib, 256 * mib, "taken", 64*mib + 256*mib},
	} {
		t.Run(fmt.Sprintf("%s of %d MiB", c.kind, c.size/mib), func(t *testing.T) {
			data := bomb(c.kind, c.size)
			require.Less(t, len(data), 4_000_000)
			cmd := exec.Command(os.Args[0], "-test.run=^TestBombChild$")
			cmd.Env = append(os.Environ(), "PACK_BOMB_MEMORY="+strconv.FormatInt(c.budget, 10))
			cmd.Stdin = bytes.NewReader(data)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			var got string
			var kib int64
			_, line, ok := strings.Cut(string(out), "bomb: ")
			require.True(t, ok, string(out))
			_, err = fmt.Sscanf(line, "%s %d", &got, &kib)
			require.NoError(t, err, line)
			require.Equal(t, c.want, got, line)
			require.Less(t, kib<<10, c.most)
			t.Logf("%d bytes: %s, %d MiB", len(data), got, kib>>10)
		})
	}
}

// Bases that memory does not hold are made repeatedly: no more than the pack may make in total.
func TestRemakingIsBounded(t *testing.T) {
	const mib, size = 1 << 20, 4 << 20
	b := newBuilder().zeros(plumbing.BlobObject, mib).ofs(0, copies(mib, size, "a"))
	for range 3 {
		b.ofs(len(b.offs)-1, copies(size+1, size, "a"))
	}
	last := len(b.offs) - 1
	for i := range 20 {
		b.ofs(last, copies(size+1, size, fmt.Sprintf("x%02d", i)))
		b.ofs(len(b.offs)-1, copies(size+3, size, fmt.Sprintf("y%02d", i)))
	}
	data := b.done()
	for _, c := range []struct {
		total, base int64
		taken       bool
	}{{200 * mib, 64 * mib, true}, {200 * mib, 1, false}, {400 * mib, 1, true}, {150 * mib, 64 * mib, false}} {
		_, err := index(t, &Indexer{Workers: 1, Limits: Limits{BaseMemory: c.base, DeltaTotal: c.total}}, data)
		if c.taken {
			require.NoError(t, err, c)
			continue
		}
		var limit *LimitError
		require.ErrorAs(t, err, &limit, c)
		require.Equal(t, "DeltaTotal", limit.Name)
	}
}
