package names

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/miekg/dns"
)

// unanswered words the error of an update that got no answer: one that was sent may have been made.
func unanswered(err error) error {
	var op *net.OpError
	isOp := errors.As(err, &op)
	var unread *dns.Error
	switch {
	case errors.As(err, &unread):
		return fmt.Errorf("it answers something that is no message of DNS (%w): the update may have been made or not", err)
	case isOp && op.Op == "dial" && op.Timeout():
		return fmt.Errorf("no connection within %s", dnsTimeout)
	case isOp && op.Op == "dial":
		return err
	case isOp && op.Timeout():
		return fmt.Errorf("no answer within %s: the update may have been made or not", dnsTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ended the connection without an answer: the update may have been made or not")
	}
	return err
}
