package agent

import (
	"crypto/ed25519"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
)

// A hub that is gone while a session is opened, as far as the library notices or not.
func TestSessionOfAHubThatIsGone(t *testing.T) {
	key, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	asked := make(chan struct{})
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		cfg := &ssh.ServerConfig{NoClientAuth: true}
		cfg.AddHostKey(key)
		_, chans, reqs, err := ssh.NewServerConn(nc, cfg)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(reqs)
		<-chans // it is not answered
		close(asked)
	}()
	c, err := ssh.Dial("tcp", l.Addr().String(), &ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(key.PublicKey())})
	require.NoError(t, err)
	defer c.Close()
	gone := make(chan struct{})
	go func() {
		<-asked
		close(gone)
	}()
	_, err = session(c, gone)
	require.ErrorContains(t, err, "the connection to the hub has ended")
	require.Equal(t, fault.Busy, fault.KindOf(err))
}
