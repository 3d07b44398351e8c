package remote

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"corpus-git/internal/printable"
)

// agentStream is a stream of an agent, whose errors are those of a lost connection.
type agentStream struct {
	io.ReadWriteCloser
	node string
}

// Read implements io.Reader.
func (s agentStream) Read(p []byte) (n int, err error) {
	n, err = s.ReadWriteCloser.Read(p)
	return n, s.lost(err)
}

// Write implements io.Writer.
func (s agentStream) Write(p []byte) (n int, err error) {
	n, err = s.ReadWriteCloser.Write(p)
	return n, s.lost(err)
}

func (s agentStream) lost(err error) error {
	var is *ConnectionError
	if err == nil || errors.As(err, &is) || errors.Is(err, io.EOF) || ended(err) {
		return err
	}
	return NewConnectionError(fmt.Sprintf("the agent of %s has gone: %v", printable.Text(s.node), err))
}

// ended reports an error of a stream that the other side has closed.
func ended(err error) bool {
	for _, e := range []error{io.ErrUnexpectedEOF, io.ErrClosedPipe, os.ErrClosed, net.ErrClosed, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
