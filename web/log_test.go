package web_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/web"
)

// lines is a log that tells of each entry.
type lines struct {
	mu    sync.Mutex
	all   bytes.Buffer
	wrote chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.wrote <- struct{}{}:
	default:
	}
	return l.all.Write(p)
}

// What net/http reports of a connection goes into the server's log, for debugging: any client can cause it.
func TestConnectionErrorsAreInTheLog(t *testing.T) {
	s := server(newMachine())
	out := &lines{wrote: make(chan struct{}, 1)}
	s.Log = zerolog.New(out)
	var err error
	s.Certificate, err = web.LoadCertificate(writeCertificate(t, t.TempDir(), 1))
	require.NoError(t, err)
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	conn, err := (&tls.Dialer{Config: &tls.Config{ServerName: "x"}}).DialContext(t.Context(), "tcp", l.Addr().String()) // an unknown authority
	require.Error(t, err)
	require.Nil(t, conn)
	<-out.wrote
	require.NoError(t, s.Close())
	require.NoError(t, <-done)
	require.Contains(t, out.all.String(), `"level":"debug"`)
	require.Contains(t, out.all.String(), "TLS handshake error")
}
