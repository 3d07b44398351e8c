package pack

import (
	"bytes"
	"context"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

// Half a megabyte of deltas to objects of 512 MiB took gigabytes, again for each push: all pushes share one budget for such memory.
func TestLargeDeltasTakeOfOneBudget(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB
	whole := cat(varint(int64(len(data))), varint(int64(len(data))), bytes.Repeat([]byte{0x80 | 0x40 | 0x08, 0, 0x10}, 0))
	for at := 0; at < len(data); at += 1 << 20 {
		whole = append(whole, 0x80|0x0f|0x70, 0, 0, byte(at>>16), byte(at>>24), 0, 0, 0x10)
	}
	b := newBuilder().object(plumbing.BlobObject, data).object(plumbing.BlobObject, []byte("small"))
	b.ofs(0, whole)
	m := NewMemory(40 << 20)
	_, err := index(t, &Indexer{Limits: Limits{Memory: m}}, b.done())
	var limit *LimitError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, "Memory", limit.Name)
	require.Zero(t, m.used)
	m = NewMemory(60 << 20)
	held, err := m.take(t.Context(), 30<<20)
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		_, err := index(t, &Indexer{Limits: Limits{Memory: m}}, b.done())
		done <- err
	}()
	for waits := false; !waits; {
		m.mu.Lock()
		waits = len(m.waiting) == 1
		m.mu.Unlock()
	}
	// A later call that wants less waits behind it; a call that gives up is forgotten.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.take(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
	held()
	held()
	require.NoError(t, <-done)
	require.Zero(t, m.used)
	require.Empty(t, m.waiting)
	require.Positive(t, NewMemory(0).limit)
	free, err := (*Memory)(nil).take(t.Context(), 1<<60)
	require.NoError(t, err)
	free()
}
