package agent

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
)

// streamChannel is sshd.StreamChannel.
const streamChannel = "stream@corpus-git"

// maxStreams limits the streams of the hub: more than the sessions that it has at a time, because it may begin one before this side has noticed the end of another.
const maxStreams = 2 * links

// accept serves the streams that the hub opens over the connection, until ctx ends. The error is fault.Refused if the hub does not open any.
func (a *Agent) accept(ctx context.Context, c *ssh.Client, opened <-chan ssh.NewChannel) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		slots := make(chan struct{}, maxStreams)
		for n := range opened { // until the connection is closed
			select {
			case slots <- struct{}{}:
			default:
				_ = n.Reject(ssh.ResourceShortage, "too many streams at a time")
				continue
			}
			wg.Go(func() {
				defer func() { <-slots }()
				a.serveStream(ctx, n)
			})
		}
	})
	if _, err := callHub(c, ctx.Done(), "node attach "+a.hub().Node+" --accept", nil); err != nil {
		_ = c.Close()
		var refused *ssh.ExitError
		if errors.As(err, &refused) {
			return fault.New(fault.Refused, "", "%w", err)
		}
		return err
	}
	<-ctx.Done()
	_ = c.Close()
	return fault.New(fault.Busy, "", "the connection to the hub has ended")
}

// serveStream serves one session of the hub.
func (a *Agent) serveStream(ctx context.Context, n ssh.NewChannel) {
	ch, reqs, err := n.Accept()
	if err != nil {
		return // the connection has ended
	}
	go ssh.DiscardRequests(reqs)
	if err := a.Serve(ctx, ch, ch); err != nil && ctx.Err() == nil {
		a.Log.Debug().Err(err).Msg("session of the hub")
	}
	_ = ch.CloseWrite()
	_ = ch.Close()
}
