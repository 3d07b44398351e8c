package hubs

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/cluster/relay"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project/config"
	"corpus-git/receive/sshd"
)

// startRefusing starts a relay that finds no leader for the given reason, and returns its address.
func startRefusing(t *testing.T, why error, refuse func(net.Conn, error)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	r := &relay.Relay{Listener: l, Refuse: refuse, Patience: time.Millisecond, Log: zerolog.Nop(), Leader: func() (string, error) { return "", why }}
	go func() { r.Run(ctx); close(ended) }()
	t.Cleanup(func() { stop(); <-ended; _ = l.Close() })
	return l.Addr().String()
}

// While no hub leads, a client of ssh sees the hubs' own host key, why it is refused, and the exit status of what can be tried again.
func TestRefuseSSH(t *testing.T) {
	state := layout.State(t.TempDir())
	key, _, err := sshd.HostKey(vfs.OS{}, state.HostKey(), ssh.KeyAlgoED25519, rand.Reader)
	require.NoError(t, err)
	at := startRefusing(t, relay.ErrNone, refuseSSH(state))
	c, err := ssh.Dial("tcp", at, &ssh.ClientConfig{User: "deploy", HostKeyCallback: ssh.FixedHostKey(key.PublicKey())})
	require.NoError(t, err)
	defer c.Close()
	s, err := c.NewSession()
	require.NoError(t, err)
	var stderr, stdout bytes.Buffer
	s.Stderr, s.Stdout = &stderr, &stdout
	var exit *ssh.ExitError
	require.ErrorAs(t, s.Run("git-receive-pack 'app/project.git'"), &exit)
	require.Equal(t, fault.Busy.ExitCode(), exit.ExitStatus())
	require.Contains(t, stderr.String(), "error: no hub leads at the moment")
	require.Contains(t, stderr.String(), "hint: nothing was changed; try again")
	require.Empty(t, stdout.String())
}

// A client of HTTP is told why it is not relayed, and no address.
func TestRefuseHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		why  error
		want string
	}{
		"none leads":      {relay.ErrNone, "no hub leads at the moment"},
		"no address":      {noAddress("b"), "this hub follows b, and does not know the address of its listener"},
		"it is not there": {fmt.Errorf("%w: dial tcp 192.0.2.1:80", relay.ErrUnreachable), "this hub follows, and does not reach the one that leads"},
	} {
		t.Run(name, func(t *testing.T) {
			at := startRefusing(t, c.why, refuseHTTP(&config.Config{}))
			answer, err := http.Post("http://"+at+"/signals/x", "application/json", bytes.NewReader([]byte("{}")))
			require.NoError(t, err)
			defer answer.Body.Close()
			require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
			require.NotEmpty(t, answer.Header.Get("Retry-After"))
			text, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.Contains(t, string(text), c.want)
			require.NotContains(t, string(text), "192.0.2.1")
		})
	}
}
