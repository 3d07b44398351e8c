package control_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/cmd/corpus-git/control"
)

func serve(t *testing.T, run control.Run) string {
	t.Helper()
	return serveIn(t, t.TempDir(), run)
}

func serveIn(t *testing.T, dir string, run control.Run) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	path := filepath.Join(dir, "s")
	s, err := control.Listen(path, run, zerolog.Nop())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, s.Close())
		require.NoError(t, <-done)
	})
	return path
}

func TestRoundTrip(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 200_000) // more than a frame
	// Longer than a socket's name may be.
	path := serveIn(t, filepath.Join(t.TempDir(), strings.Repeat("long/", 30)), func(_ context.Context, p control.Peer, q control.Request, stdin io.Reader, stdout, stderr io.Writer) int {
		if p.UID != os.Geteuid() || p.User == "" {
			return 99
		}
		in, err := io.ReadAll(stdin)
		if err != nil {
			return 98
		}
		_, _ = io.WriteString(stdout, strings.Join(q.Argv, "|")+string(in)+big)
		_, _ = io.WriteString(stderr, "careful")
		return 3 + q.Width
	})
	fi, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
	for range 3 {
		c, err := control.Dial(path)
		require.NoError(t, err)
		var out, errw bytes.Buffer
		code, err := c.Do(t.Context(), control.Request{Argv: []string{"key", "add"}, Width: 1}, strings.NewReader(big), &out, &errw)
		require.NoError(t, err)
		require.Equal(t, 4, code)
		require.Equal(t, "key|add"+big+big, out.String())
		require.Equal(t, "careful", errw.String())
		require.NoError(t, c.Close())
	}
}

func TestInterruptEndsTheContextAndTheAnswerStillComes(t *testing.T) {
	started := make(chan struct{})
	path := serve(t, func(ctx context.Context, _ control.Peer, _ control.Request, _ io.Reader, stdout, _ io.Writer) int {
		close(started)
		<-ctx.Done()
		_, _ = io.WriteString(stdout, "left")
		return 4
	})
	c, err := control.Dial(path)
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	var out bytes.Buffer
	code, err := c.Do(ctx, control.Request{}, nil, &out, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 4, code)
	require.Equal(t, "left", out.String())
}

func TestClientThatVanishesEndsTheContext(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	path := serve(t, func(ctx context.Context, _ control.Peer, _ control.Request, _ io.Reader, _, _ io.Writer) int {
		close(started)
		<-ctx.Done()
		close(ended)
		return 0
	})
	c, err := control.Dial(path)
	require.NoError(t, err)
	go func() { _, _ = c.Do(context.Background(), control.Request{}, nil, io.Discard, io.Discard) }()
	<-started
	require.NoError(t, c.Close())
	<-ended
}

func TestNoServer(t *testing.T) {
	dir := t.TempDir()
	_, err := control.Dial(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, control.ErrNoServer)
	stale := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	_, err = control.Dial(stale)
	require.ErrorIs(t, err, control.ErrNoServer)
	s, err := control.Listen(stale, nil, zerolog.Nop())
	require.NoError(t, err, "a stale socket is replaced")
	require.NoError(t, s.Close())
}

func TestOtherProtocolIsRefused(t *testing.T) {
	path := serve(t, func(context.Context, control.Peer, control.Request, io.Reader, io.Writer, io.Writer) int {
		t.Error("it ran")
		return 0
	})
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	body := []byte(`{"protocol":99}`)
	_, err = conn.Write(append(binary.BigEndian.AppendUint32([]byte("R"), uint32(len(body))), body...))
	require.NoError(t, err)
	all, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(all), "control protocol")
	require.Equal(t, byte(3), all[len(all)-1])
}

// FuzzServer sends anything: the server must neither run a malformed request nor hang.
func FuzzServer(f *testing.F) {
	frame := func(k byte, body string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{k}, uint32(len(body))), body...)
	}
	f.Add([]byte{})
	f.Add(frame('R', `{"protocol":1,"argv":["x"]}`))
	f.Add(append(frame('R', `{"protocol":1}`), frame('I', "in")...))
	f.Add([]byte{'R', 0xff, 0xff, 0xff, 0xff})
	f.Add(frame('Z', "?"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := serve(t, func(_ context.Context, _ control.Peer, _ control.Request, in io.Reader, _, _ io.Writer) int {
			_, _ = io.Copy(io.Discard, in)
			return 0
		})
		conn, err := net.Dial("unix", path)
		require.NoError(t, err)
		defer conn.Close()
		_, _ = conn.Write(data)
		_ = conn.(*net.UnixConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	})
}

// A request that is answered before its input has ended is answered all the same.
func TestAnswerThatOvertakesTheInput(t *testing.T) {
	path := serve(t, func(context.Context, control.Peer, control.Request, io.Reader, io.Writer, io.Writer) int { return 7 })
	for i := range 200 {
		c, err := control.Dial(path)
		require.NoError(t, err)
		var in io.Reader
		if i%2 == 0 {
			in = strings.NewReader("nobody reads this")
		}
		code, err := c.Do(t.Context(), control.Request{}, in, io.Discard, io.Discard)
		require.NoError(t, err)
		require.Equal(t, 7, code)
		require.NoError(t, c.Close())
	}
}

// A request that waits for input does not keep a server from stopping, and does not take this for the end of its input.
func TestStoppingEndsTheInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	waits := make(chan struct{})
	s, err := control.Listen(path, func(_ context.Context, _ control.Peer, _ control.Request, stdin io.Reader, _, _ io.Writer) int {
		close(waits)
		if _, err := io.ReadAll(stdin); err != nil {
			return 7
		}
		return 0
	}, zerolog.Nop())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	c, err := control.Dial(path)
	require.NoError(t, err)
	defer c.Close()
	input, end := io.Pipe()
	defer end.Close()
	go func() {
		<-waits
		stop()
	}()
	code, err := c.Do(t.Context(), control.Request{}, input, io.Discard, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 7, code)
	require.NoError(t, s.Close())
	require.NoError(t, <-done)
}
