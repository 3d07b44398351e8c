package names

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// An update that was sent and got no answer may have been made; one that could not be sent was not.
func TestUnanswered(t *testing.T) {
	for want, err := range map[string]error{
		"no connection within 10s":                                                        &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded},
		"dial tcp: connect: connection refused":                                           &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"no answer within 10s: the update may have been made or not":                      &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		"it ended the connection without an answer: the update may have been made or not": io.EOF,
		"dns: bad rdata": errors.New("dns: bad rdata"),
	} {
		require.EqualError(t, unanswered(err), want)
	}
}
