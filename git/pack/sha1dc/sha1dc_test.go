package sha1dc

import (
	"crypto/sha1"
	"encoding/base64"
	"math/rand/v2"
	"testing"

	"github.com/pjbgf/sha1cd"
	"github.com/pjbgf/sha1cd/ubc"
	"github.com/stretchr/testify/require"
)

// attacks are the beginnings, up to the end of the colliding blocks, of one file of each published pair: SHAttered (2017) and SHA-mbles (2020).
func attacks(t testing.TB) map[string][]byte {
	out := map[string][]byte{}
	for name, text := range map[string]string{
		"shattered": "JVBERi0xLjMKJeLjz9MKCgoxIDAgb2JqCjw8L1dpZHRoIDIgMCBSL0hlaWdodCAzIDAgUi9UeXBlIDQgMCBSL1N1YnR5cGUgNSAwIFIvRmlsdGVyIDYgMCBSL0NvbG9yU3BhY2UgNyAw" +
			"IFIvTGVuZ3RoIDggMCBSL0JpdHNQZXJDb21wb25lbnQgOD4+CnN0cmVhbQr/2P/+ACRTSEEtMSBpcyBkZWFkISEhISGFL+wJIzl1nDmxocY8TJfh//4Bc0bckWa2fhGPApq2IbJWD/nK" +
			"Z8yox/hbqEx5AwwrPeIY+G2zqQkB1d9FwU8m/t+z3DjpasIv571yjw5FvOBG0jxXD+sUE5i7VS71oKgr4zH+pIA3uLXXHw4zLt+TrDUA603cDezBqGR5DHgsdiFWYN0wl5HQa9CvP5jN" +
			"pLxGKbE=",
		"sha-mbles": "mQQNBH/oF4ABIAD/S2V5IGlzIHBhcnQgb2YgYSBjb2xsaXNpb24hIEl0J3MgYSB0cmFwIXnGGvCvzAVFFdknTnMHYksdx/sjmIu43otXXbp7nqsxwWdLbZdDeKgncy/1hRx2ouYHcrWk" +
			"fOHqxAu5k8EtjHDiSk+NX83twbMsnPGeMa8kKXWdQuTf2zFxn1h2I+5VKTm23NxFn8pTVTtw+H7eMKJH6jr2x1mi8gsyDXYNtk/0eQhP08yzzdSDYtlqnEMGF8r/bDbGN+U/3ihBf2Jv" +
			"7FTteUOkbl9XMPK7OPsd9uAJABDQDiSteL+SZBmTYI6NFYp4nzTEb+HmAn81pMv7gnB2xQ7KDot8ymm7LCt5Aln5v5Vw3Y1EN6MRX6/3w8rAmtJSZgVcJxBHVReOrv+CWiyqKs+13mTO" +
			"dkHcWaVBqfycdWdW4uI9xxPIwkyXkKprDjin9V8URSocooUN3ZVi/ZoYrUJJaqlwCPdGcvaO9GHriLCZM9YmtPkYdJzAJ/3dbEJfxCFoNdATTRUoW6sst4Sk98u0+1FNS/D2I3zwCp6f" +
			"EyuaBm5v0X9sQph0eFhv9lGvlnR/tCa5hyuaiOQGP1m7M0zABlD4OoDEJ1G3GXTTAPwoGaLo8eMsG1HLGOa/xNubrvZ11Kr1sVdKBH+PbdLsFTqTQSKTl02Sj4jO2TY8/vl84udCvzTJ" +
			"a47zh1Z2/qXMqOX33qC6skE9TeAO5x7gHxYr220er9kl5q66rmo1TvF88gWkBPvbEvxFTUH92VzyRZZkoq0DLR2mCnMmQHXX8eDWwUA656DYYd8/5XBxiN1eB9FYm5+LZjBVP4/DUrPg" +
			"wn2oC926TGQCDQ==",
	} {
		b, err := base64.StdEncoding.DecodeString(text)
		require.NoError(t, err)
		out[name] = b
	}
	return out
}

func sum(b []byte, pieces ...int) ([Size]byte, bool) {
	h := New()
	_, _ = h.Write([]byte("of before"))
	h.Reset()
	for _, n := range pieces {
		n = min(n, len(b))
		_, _ = h.Write(b[:n])
		b = b[n:]
	}
	_, _ = h.Write(b)
	return h.Finish()
}

func TestFindsThePublishedAttacks(t *testing.T) {
	for name, b := range attacks(t) {
		for _, tail := range []string{"", "more", string(make([]byte, 1000))} {
			_, found := sum(append(b, tail...), 1, 70, 3)
			require.True(t, found, name)
		}
		for at := len(b) - 128; at < len(b); at += 5 {
			changed := append([]byte(nil), b...)
			changed[at] ^= 0x40
			got, found := sum(changed)
			_, want := sha1cd.Sum(changed)
			require.Equal(t, want, found, "%s, byte %d", name, at)
			if !found {
				require.Equal(t, sha1.Sum(changed), got)
			}
		}
		_, found := sum(b[1:])
		require.False(t, found)
	}
}

func TestSumsAreThoseOfSHA1(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 5000)
	for n := range 1500 {
		for i := range b[:n] {
			b[i] = byte(rnd.Uint32())
		}
		got, found := sum(b[:n], rnd.IntN(n+1), rnd.IntN(n+1), rnd.IntN(70))
		require.False(t, found)
		require.Equal(t, sha1.Sum(b[:n]), got, "%d bytes", n)
	}
}

// Everything that passes the full list of conditions is a suspect, for each of the disturbance vectors, and the schedule is right.
func TestNeeds(t *testing.T) {
	if !fast {
		t.Skip("sha1cd does all of it on this processor")
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	var s scratch
	var block [blockSize]byte
	var seen [32]int
	suspects, blocks := 0, 1_500_000
	for range blocks {
		for i := 0; i < blockSize; i += 8 {
			v := rnd.Uint64()
			for k := range 8 {
				block[i+k] = byte(v >> (8 * k))
			}
		}
		var h [5]uint32
		for i := range h {
			h[i] = rnd.Uint32()
		}
		before := h
		n, suspect := compress(&h, &block[0], 1, &s)
		if n != 1 || s.before != before {
			t.Fatal("not one block")
		}
		if suspect {
			suspects++
		}
		mask := ubc.CalculateDvMask(&s.w)
		if mask == 0 {
			continue
		}
		if !suspect {
			t.Fatalf("conditions of %08x are fulfilled in %x and nobody says so", mask, block)
		}
		for i := range seen {
			seen[i] += int(mask >> i & 1)
		}
		for i := range 5 {
			if forward(&s.w, new([80]uint32), before, 0, 80)[i]+before[i] != h[i] {
				t.Fatal("the compression is wrong")
			}
		}
		if forward(&s.w, new([80]uint32), before, 0, 56) != s.at56 {
			t.Fatal("the state before step 56 is wrong")
		}
		if backward(&s.w, new([80]uint32), forward(&s.w, new([80]uint32), before, 0, 58), 58) != before {
			t.Fatal("steps are not undone")
		}
	}
	for i, n := range seen {
		require.NotZero(t, n, "vector %d never came", i)
	}
	require.Less(t, suspects, blocks/5, "conditions that sort nothing out")
}

func FuzzHash(f *testing.F) {
	for _, b := range attacks(f) {
		f.Add(b, uint16(64))
	}
	f.Add([]byte("abc"), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		got, found := sum(b, int(cut))
		want, attacked := sha1cd.Sum(b)
		require.Equal(t, attacked, found)
		if !attacked {
			require.Equal(t, want, got)
		}
	})
}

func BenchmarkHash(b *testing.B) {
	data := make([]byte, 16<<10)
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	b.Run("sha1dc", func(b *testing.B) {
		h := New()
		b.SetBytes(int64(len(data)))
		for range b.N {
			h.Reset()
			_, _ = h.Write(data)
			h.Finish()
		}
	})
	b.Run("sha1cd", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for range b.N {
			sha1cd.Sum(data)
		}
	})
}
