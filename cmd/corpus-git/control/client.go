package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// ErrNoServer means that no server listens on the socket.
var ErrNoServer = errors.New("no server is running on this state")

// Client is a connection to the server, for one request.
type Client struct{ conn net.Conn }

// Dial connects. ErrNoServer means that there is no socket, or a stale one.
func Dial(path string) (*Client, error) {
	name, dir, err := shortName(path)
	var c net.Conn
	if err == nil {
		defer dir.Close()
		c, err = net.Dial("unix", name)
	}
	switch {
	case err == nil:
		return &Client{c}, nil
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return nil, ErrNoServer
	}
	return nil, err
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Do sends a request and copies the streams until the exit status arrives. stdin may be nil. When ctx ends, the server is notified, and its remaining output is
// still copied. An error means that the connection to the server was lost.
func (c *Client) Do(ctx context.Context, q Request, stdin io.Reader, stdout, stderr io.Writer) (code int, err error) {
	q.Protocol = Protocol
	p, err := json.Marshal(q)
	if err != nil {
		return 0, err
	}
	if len(p) > MaxFrame {
		return 0, errors.New("the command is too long")
	}
	w := &writer{w: c.conn}
	if err := w.send(request, p); err != nil {
		return 0, err
	}
	done := make(chan struct{})
	defer close(done)
	if q.Sizes != nil {
		go func() {
			for {
				select {
				case s := <-q.Sizes:
					if p, err := json.Marshal(s); err == nil {
						_ = w.send(resized, p)
					}
				case <-done:
					return
				}
			}
		}()
	}
	go func() {
		select {
		case <-ctx.Done():
			_ = w.send(leave, nil)
		case <-done:
		}
	}()
	if stdin != nil {
		go func() {
			_, _ = io.Copy(stream{w, input}, stdin)
			_ = w.send(eof, nil)
		}()
	} else {
		// A server that has answered already is gone by now; reading tells.
		_ = w.send(eof, nil)
	}
	r := bufio.NewReader(c.conn)
	for {
		k, p, err := receive(r)
		if err != nil {
			return 0, fmt.Errorf("lost the connection to the server: %w", err)
		}
		switch k {
		case output:
			_, err = stdout.Write(p)
		case errout:
			_, err = stderr.Write(p)
		case exit:
			if len(p) != 1 {
				return 0, errors.New("control: no exit status")
			}
			return int(p[0]), nil
		default:
			return 0, fmt.Errorf("control: unexpected frame %q", byte(k))
		}
		if err != nil {
			return 0, err
		}
	}
}
