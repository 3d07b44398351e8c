package agent

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
)

// acceptingHub is a hub that opens streams, or says so and refuses to: it opens more of them than an agent serves at a time once it may.
func acceptingHub(t *testing.T, l net.Listener, host ssh.Signer, refuses bool, conns chan<- *ssh.ServerConn, verbs chan<- string) {
	t.Helper()
	sc, chans := dialledIn(l, host)
	for n := range chans {
		c, in, err := n.Accept()
		if err != nil {
			return
		}
		r := <-in
		verb := string(r.Payload[4:])
		_ = r.Reply(true, nil)
		go ssh.DiscardRequests(in)
		said, _ := io.ReadAll(c)
		status := uint32(0)
		switch {
		case strings.HasPrefix(verb, "node attach") && len(said) > 0: // the verb may end before that was sent, and the call with it
			_, _ = io.WriteString(c.Stderr(), "error: it has no input\n")
			status = 2
		case strings.HasPrefix(verb, "node publish"):
			_, _ = io.WriteString(c, `{"hubs":null,"accept":true}`)
		case refuses:
			_, _ = io.WriteString(c.Stderr(), "error: no more\n")
			status = 3
		default:
			conns <- sc
		}
		verbs <- verb
		_, _ = c.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		_ = c.Close()
	}
}

// An agent whose hub opens streams by itself offers none: it serves those of the hub, up to a limit, until the connection ends.
func TestAcceptStreams(t *testing.T) {
	host := signer(t, 0)
	for name, refuses := range map[string]bool{"accepted": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			conns, verbs := make(chan *ssh.ServerConn, 1), make(chan string, 2)
			go acceptingHub(t, l, host, refuses, conns, verbs)
			a := &Agent{
				Hub: Hub{Address: l.Addr().String(), HostKey: PublicLine(host), Node: "web1"}, Key: host, Log: zerolog.Nop(), Hello: func() any { return struct{}{} }, Connected: func() error { return nil },
				Serve: func(_ context.Context, in io.Reader, out io.Writer) error {
					_, err := io.Copy(out, in)
					return err
				},
			}
			ended := make(chan error, 1)
			go func() {
				_, err := a.connect(t.Context())
				ended <- err
			}()
			require.Equal(t, "node publish web1", <-verbs)
			require.Equal(t, "node attach web1 --accept", <-verbs)
			if refuses {
				err := <-ended
				require.ErrorContains(t, err, "no more")
				require.Equal(t, fault.Refused, fault.KindOf(err))
				return
			}
			sc := <-conns
			for range maxStreams {
				ch, reqs, err := sc.OpenChannel(streamChannel, nil)
				require.NoError(t, err)
				go ssh.DiscardRequests(reqs)
				_, err = io.WriteString(ch, "hello")
				require.NoError(t, err)
				got := make([]byte, 5)
				_, err = io.ReadFull(ch, got)
				require.NoError(t, err)
				require.Equal(t, "hello", string(got))
			}
			_, _, err = sc.OpenChannel(streamChannel, nil)
			require.ErrorContains(t, err, "too many streams at a time")
			require.NoError(t, sc.Close())
			require.Equal(t, fault.Busy, fault.KindOf(<-ended))
		})
	}
}
