package names

import (
	"errors"
	"fmt"
	"io"
	"net"
)

// unanswered words the error of an update that got no answer: one that was sent may have been made.
func unanswered(err error) error {
	var op *net.OpError
	isOp := errors.As(err, &op)
	switch {
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
