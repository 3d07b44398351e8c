package agent

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
)

// hubAt answers the verbs of one agent, of which node publish names the hubs.
func hubAt(t *testing.T, l net.Listener, host ssh.Signer, hubs ...string) {
	t.Helper()
	answer, err := json.Marshal(Published{Hubs: hubs})
	require.NoError(t, err)
	answers(l, host, answer, 0)
}

// dialledIn accepts the connection of one agent; without one, which is so when l is closed, it has no channels.
func dialledIn(l net.Listener, host ssh.Signer) (*ssh.ServerConn, <-chan ssh.NewChannel) {
	none := make(chan ssh.NewChannel)
	close(none)
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	cfg.AddHostKey(host)
	nc, err := l.Accept()
	if err != nil {
		return nil, none
	}
	sc, chans, reqs, err := ssh.NewServerConn(nc, cfg)
	if err != nil {
		return nil, none
	}
	go ssh.DiscardRequests(reqs)
	return sc, chans
}

// answers answers node publish of one agent.
func answers(l net.Listener, host ssh.Signer, answer []byte, status uint32) {
	go func() {
		_, chans := dialledIn(l, host)
		for n := range chans {
			c, in, err := n.Accept()
			if err != nil {
				return
			}
			go func() {
				for r := range in {
					_ = r.Reply(true, nil)
					if strings.Contains(string(r.Payload), "node publish") {
						_, _ = io.Copy(io.Discard, c) // a channel closed before the client has written ends its call with an error
						_, _ = c.Write(answer)
						_, _ = c.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
						_ = c.Close()
					}
				}
			}()
		}
	}()
}

// An agent whose first hub is gone connects to another one, which has the same key, and keeps what it says of further ones.
func TestAnotherHub(t *testing.T) {
	key := func(n byte) ssh.Signer { return signer(t, n) }
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	gone, err := net.Dial("tcp", other.Addr().String()) // nobody listens on its own port, nor can while it is open
	require.NoError(t, err)
	defer gone.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	first, second := gone.LocalAddr().String(), l.Addr().String()
	hubAt(t, l, key(1), first, second, "hub3:2222", "no address")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var learned []Hub
	a := &Agent{
		Hub: Hub{Address: first, Others: []string{second}, HostKey: PublicLine(key(1)), Node: "web1"}, Key: key(2), Log: zerolog.Nop(), Hello: func() any { return struct{}{} },
		Learned: func(h Hub) error {
			learned = append(learned, h)
			return nil
		},
		Connected: func() error {
			stop()
			return nil
		},
	}
	a.Run(ctx)
	require.Len(t, learned, 1)
	require.Equal(t, []string{second, "hub3:2222"}, learned[0].Others)
	require.Equal(t, first, learned[0].Address)

	// One with another key is no hub of this agent.
	l2, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l2.Close()
	hubAt(t, l2, key(3))
	a.Hub.Others = []string{l2.Addr().String()}
	_, _, err = a.dialAny(t.Context(), nil)
	require.ErrorContains(t, err, "the key was replaced meanwhile, or another machine responds")
}

func signer(t *testing.T, n byte) ssh.Signer {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	s, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
	require.NoError(t, err)
	return s
}

// An agent is not kept by a hub that ends its connections, or that says that no hub leads, as one does that is cut off from the others.
func TestAHubThatServesNobody(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	closes, busy, fit := listen(), listen(), listen()
	go func() {
		for {
			c, err := closes.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	answers(busy, signer(t, 1), nil, uint32(fault.Busy.ExitCode()))
	hubAt(t, fit, signer(t, 1))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var connected []string // the hubs to which it was connected since one served it
	var a *Agent
	a = &Agent{
		Hub: Hub{Address: closes.Addr().String(), Others: []string{busy.Addr().String(), fit.Addr().String()}, HostKey: PublicLine(signer(t, 1)), Node: "web1"}, Key: signer(t, 2), Log: zerolog.Nop(),
		Hello: func() any { return struct{}{} },
		Connected: func() error {
			connected = append(connected, a.unfit...)
			stop()
			return nil
		},
	}
	a.Run(ctx)
	require.Equal(t, []string{busy.Addr().String(), fit.Addr().String()}, connected)
}
