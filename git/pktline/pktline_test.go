package pktline

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReaderKinds(t *testing.T) {
	r := NewReader(strings.NewReader("0006a\n0004000000010002000bERR no\nPACK"), Limits{})
	k, s, err := r.Line()
	require.NoError(t, err)
	require.Equal(t, Data, k)
	require.Equal(t, "a", s)
	k, p, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, Data, k)
	require.Empty(t, p)
	for _, want := range []Kind{Flush, Delim, ResponseEnd} {
		k, _, err = r.Next()
		require.NoError(t, err)
		require.Equal(t, want, k)
	}
	_, _, err = r.Line()
	var el *ErrorLine
	require.ErrorAs(t, err, &el)
	require.Equal(t, "no", el.Text)
	rest, err := io.ReadAll(r.Raw())
	require.NoError(t, err)
	require.Equal(t, "PACK", string(rest))
}

func TestReaderErrors(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		lim  Limits
		want error
	}{
		"clean end":     {"", Limits{}, io.EOF},
		"cut digits":    {"00", Limits{}, io.ErrUnexpectedEOF},
		"cut payload":   {"0008ab", Limits{}, io.ErrUnexpectedEOF},
		"no payload":    {"0008", Limits{}, io.ErrUnexpectedEOF},
		"no digits":     {"00zz", Limits{}, ErrSyntax},
		"sign":          {"-001", Limits{}, ErrSyntax},
		"three":         {"0003", Limits{}, ErrSyntax},
		"too long":      {"fff1" + strings.Repeat("x", 65537), Limits{}, ErrSyntax},
		"lines":         {"00000000", Limits{Lines: 1}, ErrTooMuch},
		"bytes":         {"0008abcd0005a", Limits{Bytes: 4}, ErrTooMuch},
		"html, no git":  {"<html>", Limits{}, ErrSyntax},
		"ssh chit-chat": {"Welcome!", Limits{}, ErrSyntax},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(strings.NewReader(c.in), c.lim)
			var err error
			for err == nil {
				_, _, err = r.Next()
			}
			require.ErrorIs(t, err, c.want)
		})
	}
}

func TestWriter(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	require.NoError(t, w.Linef("hello %d", 1))
	require.NoError(t, w.Data([]byte("x")))
	require.NoError(t, w.Delim())
	require.NoError(t, w.Errorf("gone"))
	require.NoError(t, w.Flush())
	require.Equal(t, "000chello 1\n0005x0001000dERR gone\n0000", b.String())
	require.ErrorIs(t, w.Data(make([]byte, MaxPayload+1)), ErrSyntax)
	require.ErrorIs(t, w.Linef("%s", strings.Repeat("x", MaxPayload)), ErrSyntax)
	b.Reset()
	require.NoError(t, w.Data(make([]byte, MaxPayload)))
	require.Equal(t, "fff0", b.String()[:4])
}

func TestMuxSplitsAndDemuxJoins(t *testing.T) {
	for _, size := range []int{SideBand, SideBand64k} {
		var b bytes.Buffer
		m := NewMux(&b, size)
		big := bytes.Repeat([]byte("0123456789"), 20000)
		n, err := m.Writer(BandData).Write(big)
		require.NoError(t, err)
		require.Equal(t, len(big), n)
		require.NoError(t, m.Keepalive())
		require.True(t, bytes.HasSuffix(b.Bytes(), []byte("0005\x01")))
		_, err = io.WriteString(m.Writer(BandProgress), "hi\n")
		require.NoError(t, err)
		require.NoError(t, m.Close())
		require.NoError(t, m.Close())
		_, err = m.Send(BandData, nil)
		require.ErrorIs(t, err, ErrMuxClosed)

		lines := NewReader(bytes.NewReader(b.Bytes()), Limits{})
		k, p, err := lines.Next()
		require.NoError(t, err)
		require.Equal(t, Data, k)
		require.Len(t, p, size-4)

		var progress []byte
		d := NewDemux(NewReader(&b, Limits{}))
		d.Progress = func(p []byte) { progress = append(progress, p...) }
		got, err := io.ReadAll(d)
		require.NoError(t, err)
		require.True(t, bytes.Equal(big, got))
		require.Equal(t, "hi\n", string(progress))
	}
}

func TestMuxConcurrentPacketsStayWhole(t *testing.T) {
	var b bytes.Buffer
	m := NewMux(&b, SideBand)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p := bytes.Repeat([]byte{byte('a' + i)}, 3000)
			for range 20 {
				_, _ = m.Send(BandProgress, p)
			}
		})
	}
	wg.Wait()
	require.NoError(t, m.Close())
	var got []byte
	d := NewDemux(NewReader(&b, Limits{}))
	d.Progress = func(p []byte) { got = append(got, p...) }
	_, err := io.ReadAll(d)
	require.NoError(t, err)
	require.Len(t, got, 8*20*3000)
	for i := 0; i < len(got); i += 3000 {
		require.Equal(t, bytes.Repeat(got[i:i+1], 3000), got[i:i+3000], "a write of several packets is not interleaved")
	}
}

type failing struct{ n int }

func (f *failing) Write(p []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, errors.New("gone")
	}
	return len(p), nil
}

func TestMuxErrorSticks(t *testing.T) {
	m := NewMux(&failing{n: 1}, SideBand64k)
	require.NoError(t, m.Keepalive())
	require.EqualError(t, m.Keepalive(), "gone")
	require.EqualError(t, m.Flush(), "gone")
	require.EqualError(t, m.Close(), "gone")
}

func TestDemuxErrors(t *testing.T) {
	for in, want := range map[string]error{
		"":           io.ErrUnexpectedEOF,
		"0004":       ErrSyntax,
		"0005\x09":   ErrSyntax,
		"0001":       ErrSyntax,
		"0006\x01a0": io.ErrUnexpectedEOF,
	} {
		_, err := io.ReadAll(NewDemux(NewReader(strings.NewReader(in), Limits{})))
		require.ErrorIs(t, err, want, "%q", in)
	}
	_, err := io.ReadAll(NewDemux(NewReader(strings.NewReader("0008\x03no!"), Limits{})))
	require.EqualError(t, err, "remote error: no!")
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{"0006a\n0000", "0001", "0002", "0004", "fff0", "000ghi", "0005\x01", "0009\x02hi\n\n0000"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewReader(bytes.NewReader(in), Limits{Lines: 1000, Bytes: 1 << 20})
		var out bytes.Buffer
		w := NewWriter(&out)
		used := 0
		for {
			k, p, err := r.Next()
			if err != nil {
				break
			}
			switch k {
			case Data:
				err = w.Data(p)
				used += 4 + len(p)
			case Flush:
				err = w.Flush()
				used += 4
			case Delim:
				err = w.Delim()
				used += 4
			case ResponseEnd:
				_, err = out.WriteString("0002")
				used += 4
			}
			require.NoError(t, err)
		}
		require.Equal(t, string(digitsOnly(in[:used], out.Bytes())), out.String())
	})
}

// digitsOnly lower-cases only the length digits: it rebuilds in's framing with out's digits if they agree in value.
func digitsOnly(in, out []byte) []byte {
	if len(in) != len(out) {
		return in
	}
	for i := 0; i < len(out); {
		n, _ := parseLength([4]byte(out[i : i+4]))
		m, _ := parseLength([4]byte(in[i : i+4]))
		if n != m {
			return in
		}
		end := i + max(n, 4)
		if !bytes.Equal(in[i+4:end], out[i+4:end]) {
			return in
		}
		i = end
	}
	return out
}

func FuzzDemux(f *testing.F) {
	f.Add([]byte("0006\x01a0000"))
	f.Add([]byte("0006\x02a0005\x010007\x03no"))
	f.Fuzz(func(t *testing.T, in []byte) {
		d := NewDemux(NewReader(bytes.NewReader(in), Limits{}))
		b, err := io.ReadAll(d)
		require.LessOrEqual(t, len(b), len(in))
		if err != nil {
			_, again := d.Read(make([]byte, 1))
			require.Equal(t, err, again)
		}
	})
}
