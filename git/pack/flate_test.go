package pack

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"hash/adler32"
	"io"
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// standard returns the result of the standard library for a stream, and the length of the stream.
func standard(src []byte) ([]byte, int, error) {
	r := bytes.NewReader(src)
	zr, err := zlib.NewReader(r)
	if err != nil {
		return nil, 0, err
	}
	out, err := io.ReadAll(io.LimitReader(zr, 1<<20))
	return out, len(src) - r.Len(), err
}

// pieces decodes src in pieces of the given lengths, repeated; a part of src that was not used is passed again.
func pieces(z *flate, dst, src []byte, lengths []byte) (int, error) {
	z.begin()
	var in []byte
	used, at := 0, 0
	for i := 0; ; i++ {
		k := 1
		if len(lengths) > 0 {
			k += int(lengths[i%len(lengths)])
		}
		k = min(k, len(src)-at)
		in = append(in, src[at:at+k]...)
		at += k
		n, err := z.more(dst, in)
		if n < 0 || n > len(in) {
			panic("it used what is not there")
		}
		used += n
		if err != errShort {
			if err == nil && used < at-k {
				panic("it had the end before")
			}
			return used, err
		}
		if len(in)-n >= 400 {
			panic("it wants too much again")
		}
		if in = in[n:]; at == len(src) {
			return used, err
		}
	}
}

func TestFlateRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	var z flate
	texts := [][]byte{nil, {0}, []byte("hello"), bytes.Repeat([]byte("ab"), 40000), make([]byte, 70000), []byte(strings.Repeat("the quick brown fox ", 3000))}
	noise := make([]byte, 100000)
	rnd.Read(noise)
	skewed := make([]byte, 200000)
	for i := range skewed { // steeply falling probabilities yield codes of all lengths
		for skewed[i] < 200 && rnd.Intn(3) > 0 {
			skewed[i] += byte(1 + rnd.Intn(3))
		}
	}
	for i := 1; i < 100000; i *= 3 {
		texts = append(texts, noise[:i], skewed[:i], append(bytes.Clone(noise[:i/2]), noise[:i]...))
	}
	texts = append(texts, skewed)
	for _, level := range []int{0, 1, 6, 9, zlib.HuffmanOnly} {
		for _, text := range texts {
			var b bytes.Buffer
			w, err := zlib.NewWriterLevel(&b, level)
			require.NoError(t, err)
			_, _ = w.Write(text[:len(text)/2])
			_ = w.Flush()
			_, _ = w.Write(text[len(text)/2:])
			_ = w.Close()
			src := append(b.Bytes(), "behind it"...)
			dst := make([]byte, len(text))
			n, err := z.inflate(dst, src)
			require.NoError(t, err)
			require.Equal(t, b.Len(), n)
			require.True(t, bytes.Equal(text, dst))
			for _, cut := range []int{0, 1, 2, b.Len() / 3, b.Len() / 2, b.Len() - 5, b.Len() - 1} {
				_, err = z.inflate(dst, b.Bytes()[:cut])
				require.ErrorIs(t, err, errShort)
			}
			for _, lengths := range [][]byte{{0}, {6}, {7, 0, 200}, {255, 255, 13, 1}} {
				clear(dst)
				n, err = pieces(&z, dst, src, lengths)
				require.NoError(t, err)
				require.Equal(t, b.Len(), n)
				require.True(t, bytes.Equal(text, dst))
				_, err = pieces(&z, dst, b.Bytes()[:b.Len()-1], lengths)
				require.ErrorIs(t, err, errShort)
			}
			if len(text) > 0 {
				_, err = z.inflate(dst[1:], src)
				require.ErrorIs(t, err, ErrCorrupt)
			}
			_, err = z.inflate(make([]byte, len(text)+1), src)
			require.ErrorIs(t, err, ErrCorrupt)
		}
	}
}

func FuzzFlate(f *testing.F) {
	for _, s := range []string{"", "a", strings.Repeat("abcabd", 100)} {
		f.Add(deflate([]byte(s)))
	}
	fixed, _ := hex.DecodeString("789c4b4c4a4e4c4a4e4c4a4e040000")
	f.Add(fixed)
	f.Fuzz(func(t *testing.T, src []byte) {
		var z flate
		want, n, err := standard(src)
		if len(want) >= 1<<20 {
			return
		}
		dst := make([]byte, len(want))
		got, gotErr := z.inflate(dst, src)
		if err == nil {
			require.NoError(t, gotErr)
			require.Equal(t, n, got)
			require.True(t, bytes.Equal(want, dst))
			for _, lengths := range [][]byte{{0}, src[:min(len(src), 9)]} {
				clear(dst)
				got, gotErr = pieces(&z, dst, src, lengths)
				require.NoError(t, gotErr)
				require.Equal(t, n, got)
				require.True(t, bytes.Equal(want, dst))
			}
			return
		}
		require.Error(t, gotErr)
		_, inPieces := pieces(&z, dst, src, []byte{0})
		require.Error(t, inPieces)
		if gotErr == errShort {
			require.ErrorIs(t, inPieces, errShort)
		}
		// Broken streams must not be accepted for any length.
		for _, k := range []int{0, 1, 100} {
			_, err := z.inflate(make([]byte, k), src)
			require.Error(t, err)
		}
	})
}

func BenchmarkInflate(b *testing.B) {
	text := []byte(strings.Repeat("tree 1f1f\nparent aa\nauthor A <a@example.org> 170000 +0000\n", 10))
	rnd := rand.New(rand.NewSource(1))
	for i := range text {
		if rnd.Intn(4) == 0 {
			text[i] = byte('a' + rnd.Intn(26))
		}
	}
	src := deflate(text)
	dst := make([]byte, len(text))
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		var z flate
		for b.Loop() {
			if _, err := z.inflate(dst, src); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("standard", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		r := bytes.NewReader(src)
		zr, _ := zlib.NewReader(r)
		for b.Loop() {
			r.Reset(src)
			_ = zr.(zlib.Resetter).Reset(r, nil)
			if _, err := io.ReadFull(zr, dst); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestAdler(t *testing.T) {
	data := make([]byte, 3<<20)
	rnd := rand.New(rand.NewSource(1))
	rnd.Read(data)
	for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 17, 1000, 1<<20 - 1, 1 << 20, 1<<20 + 9, len(data)} {
		require.Equal(t, adler32.Checksum(data[:n]), adler(data[:n]), n)
	}
	for i := range data {
		data[i] = 0xff
	}
	require.Equal(t, adler32.Checksum(data), adler(data))
}
