package natslink_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"corpus-git/fleet/natslink"
)

// pair returns the two sides of a stream, and a connection that sees its messages.
func pair(t *testing.T) (a, b *natslink.Stream, other *nats.Conn) {
	t.Helper()
	s, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true})
	require.NoError(t, err)
	go s.Start()
	t.Cleanup(s.Shutdown)
	require.True(t, s.ReadyForConnections(time.Minute))
	conn := func() *nats.Conn {
		c, err := nats.Connect("", nats.InProcessServer(s))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	ca, cb, other := conn(), conn(), conn()
	a, err = natslink.Open(ca, natslink.ToHub("n", "1"), natslink.ToAgent("n", "1"))
	require.NoError(t, err)
	b, err = natslink.Open(cb, natslink.ToAgent("n", "1"), natslink.ToHub("n", "1"))
	require.NoError(t, err)
	require.NoError(t, ca.Flush())
	require.NoError(t, cb.Flush())
	return a, b, other
}

// More than a window arrives unchanged, in both directions at once, to a reader of any pace; then the end.
func TestBytesArrive(t *testing.T) {
	a, b, _ := pair(t)
	want := make([]byte, 3<<20)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(want)
	done := make(chan error, 2)
	for _, s := range []*natslink.Stream{a, b} {
		go func() {
			for p := want; len(p) > 0; {
				n := min(len(p), 100_001)
				if _, err := s.Write(p[:n]); err != nil {
					done <- err
					return
				}
				p = p[n:]
			}
			done <- s.CloseWrite()
		}()
	}
	got := make(chan []byte, 1)
	go func() {
		all, err := io.ReadAll(b)
		if err != nil {
			all = []byte(err.Error())
		}
		got <- all
	}()
	var all bytes.Buffer
	_, err := io.CopyBuffer(&all, struct{ io.Reader }{a}, make([]byte, 777))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, all.Bytes()))
	require.True(t, bytes.Equal(want, <-got))
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	_, err = a.Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// A side that closes lets the other one read what was written before, and no longer wait to write.
func TestClose(t *testing.T) {
	a, b, _ := pair(t)
	_, err := a.Write([]byte("last"))
	require.NoError(t, err)
	require.NoError(t, a.CloseWrite())
	require.NoError(t, a.Close())
	for err == nil { // until the end of a has arrived; it is after the window at the latest
		_, err = b.Write(make([]byte, 32<<10))
	}
	text, err := io.ReadAll(b)
	require.NoError(t, err)
	require.Equal(t, "last", string(text))

	a, b, _ = pair(t)
	_, err = a.Write([]byte("cut"))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	text, err = io.ReadAll(b)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "cut", string(text))
}

// A message that was lost, or comes twice, fails the stream: no byte is skipped or repeated.
func TestNumbers(t *testing.T) {
	for name, forged := range map[string][]byte{
		"lost":  append([]byte{'d', 0, 0, 0, 0, 0, 0, 0, 2}, "c"...),
		"twice": append([]byte{'d', 0, 0, 0, 0, 0, 0, 0, 0}, "a"...),
		"cut":   {'d', 0},
		"kind":  {'?', 0, 0, 0, 0, 0, 0, 0, 1},
		"acks":  {'r', 0, 0, 0, 0, 0, 0, 0, 9},
		"large": append([]byte{'d', 0, 0, 0, 0, 0, 0, 0, 1}, make([]byte, 600<<10)...),
	} {
		t.Run(name, func(t *testing.T) {
			a, b, other := pair(t)
			_, err := a.Write([]byte("a"))
			require.NoError(t, err)
			one := make([]byte, 1)
			_, err = io.ReadFull(b, one)
			require.NoError(t, err)
			require.NoError(t, other.Publish(natslink.ToAgent("n", "1"), forged))
			rest, err := io.ReadAll(b)
			require.Error(t, err)
			require.Empty(t, rest)
			_, err = b.Write([]byte("x"))
			require.Error(t, err)
		})
	}
}

func TestFail(t *testing.T) {
	a, _, _ := pair(t)
	why := errors.New("why")
	a.Fail(why)
	_, err := a.Read(make([]byte, 1))
	require.ErrorIs(t, err, why)
	_, err = a.Write([]byte("x"))
	require.ErrorIs(t, err, why)
}
