package session

import (
	"context"
	"errors"
	"fmt"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/receive/signed"
)

// certificate verifies the certificate of a signed push. A certificate by an unknown key does not count, and the pusher is told: whoever signs each push
// that can be signed (push.gpgSign=if-asked) must be able to push here, too. If a signature is demanded, the deployment is refused for that.
func (c *conversation) certificate(ctx context.Context) error {
	if c.req.Certificate == nil {
		return nil
	}
	if c.Verify == nil {
		return fault.New(fault.Refused, "", "signed pushes are not accepted here").WithHint("push without --signed (push.gpgSign)")
	}
	s, err := c.Verify(ctx, c.req.Certificate, c.nonce, c.req.Options)
	switch {
	case errors.Is(err, signed.ErrUnknown):
		c.show.showEvents(c.wire, event.Event{Kind: event.Note, Text: fmt.Sprintf("invalid push certificate: %s", oneLine(err))})
		if h := fault.HintOf(err); h != "" {
			c.show.showEvents(c.wire, event.Event{Kind: event.Hint, Text: event.Clean(h)})
		}
		return nil
	case err != nil:
		return Classify(err)
	}
	c.signs = append(c.signs, s)
	c.show.showEvents(c.wire, event.Event{Kind: event.Note, Text: "signed " + s.String()})
	return nil
}
