package frames

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// A large file of which one byte changed, as a git index is after a push.
func BenchmarkStream(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{500_000, 7_000_000} {
		data := bytesOf(r, size)
		now := bytes.Clone(data)
		now[size/2]++
		for _, known := range []bool{false, true} {
			b.Run(fmt.Sprintf("size=%d/known=%v", size, known), func(b *testing.B) {
				var k *Known
				c := coders(b)
				if known {
					w := New(io.Discard, nil, nil, c, int64(size))
					w.Content("a")
					_, _ = w.Write(data)
					_ = w.Close()
					k = NewKnown(1 << 30)
					w.Made(k)
				}
				for b.Loop() {
					w := New(io.Discard, nil, k, c, int64(size))
					w.Content("a")
					_, _ = w.Write(now)
					if err := w.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
