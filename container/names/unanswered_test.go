package names

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
)

// An update that was sent and got no answer may have been made; one that could not be sent was not.
func TestUnanswered(t *testing.T) {
	for want, err := range map[string]error{
		"no connection within 10s":                                                        &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded},
		"dial tcp: connect: connection refused":                                           &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"no answer within 10s: the update may have been made or not":                      &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		"it ended the connection without an answer: the update may have been made or not": io.EOF,
		"another": errors.New("another"),
		"it answers something that is no message of DNS (bad question name: dns: buffer size too small): the update may have been made or not": fmt.Errorf("bad question name: %w", dns.ErrBuf),
	} {
		require.EqualError(t, unanswered(err), want)
	}
}
