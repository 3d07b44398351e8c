package natslink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/nats-io/nats.go"
)

const (
	// window is how many bytes may be sent that the reader has not read yet.
	window = 512 << 10
	// part is the size of a message, in bytes.
	part = 32 << 10
	// queue is the number of messages that may wait for the reader: those of a window, and of a writer of single lines.
	queue = 1 << 14
)

// The kinds of messages: one byte, an unsigned 64-bit number in network byte order, and, for data, the data. The number counts the messages of data and end, from 0, or
// is that of the bytes that were read.
const (
	data  = 'd'
	read  = 'r'
	end   = 'e'
	fails = 'f'
)

// header is the length of kind and number.
const header = 9

// Stream is one side of a stream. One goroutine may read and another one write. Close ends it.
type Stream struct {
	conn *nats.Conn
	out  string
	sub  *nats.Subscription

	mu   sync.Mutex
	wake *sync.Cond
	// in are data that were received and not read; next is the number of the message that follows.
	in   []byte
	next uint64
	// reported are the bytes of which the other side knows that they were read, and taken all that were read.
	taken, reported uint64
	// sent are the bytes that were written, acked those that the other side has read, number the messages that were sent.
	sent, acked, number uint64
	// waiting counts the messages in in.
	waiting  int
	ended    bool // the other side writes no more
	finished bool // this side writes no more
	err      error
}

// Open begins one side of a stream: messages to in are received, and others sent to out. The caller closes it.
func Open(conn *nats.Conn, in, out string) (*Stream, error) {
	s := &Stream{conn: conn, out: out}
	s.wake = sync.NewCond(&s.mu)
	var err error
	if s.sub, err = conn.Subscribe(in, s.receive); err != nil {
		return nil, err
	}
	if err := s.sub.SetPendingLimits(-1, -1); err != nil { // the window limits it
		return nil, errors.Join(err, s.sub.Unsubscribe())
	}
	return s, nil
}

// receive takes one message.
func (s *Stream) receive(m *nats.Msg) {
	if len(m.Data) < header {
		s.Fail(errors.New("a message of the stream is cut off"))
		return
	}
	kind, n, rest := m.Data[0], binary.BigEndian.Uint64(m.Data[1:]), m.Data[header:]
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake.Broadcast()
	switch kind {
	case read:
		if n < s.acked || n > s.sent {
			s.fail(errors.New("more was acknowledged than sent"))
			return
		}
		s.acked = n
	case data, end:
		s.waiting++
		switch {
		case n != s.next || s.ended:
			s.fail(fmt.Errorf("message %d of the stream arrived in place of message %d", n, s.next))
		case len(s.in)+len(rest) > window || s.waiting > queue:
			s.fail(errors.New("more was sent than may be under way"))
		case kind == end:
			s.next, s.ended = n+1, true
		default:
			s.next, s.in = n+1, append(s.in, rest...)
		}
	case fails:
		s.fail(io.ErrUnexpectedEOF)
	default:
		s.fail(fmt.Errorf("an unknown message of kind %q", kind))
	}
}

// Fail ends both directions with an error.
func (s *Stream) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(err)
	s.wake.Broadcast()
}

func (s *Stream) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *Stream) send(kind byte, n uint64, p []byte) error {
	msg := make([]byte, header+len(p))
	msg[0] = kind
	binary.BigEndian.PutUint64(msg[1:], n)
	copy(msg[header:], p)
	return s.conn.Publish(s.out, msg)
}

// Read implements io.Reader.
func (s *Stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.in) == 0 && !s.ended && s.err == nil {
		s.wake.Wait()
	}
	if len(s.in) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		return 0, s.err
	}
	n := copy(p, s.in)
	if s.in = s.in[n:]; len(s.in) == 0 {
		s.in, s.waiting = nil, 0
	}
	s.taken += uint64(n)
	if s.taken-s.reported >= window/4 {
		s.reported = s.taken
		if err := s.send(read, s.taken, nil); err != nil {
			s.fail(err)
		}
	}
	return n, nil
}

// Write implements io.Writer. It waits while the other side does not read.
func (s *Stream) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(p) > 0 {
		// Without a part free it waits for an acknowledgement, which comes with each quarter of the window.
		for s.err == nil && !s.finished && s.sent-s.acked > window-part {
			s.wake.Wait()
		}
		if s.err != nil {
			return n, s.err
		}
		if s.finished {
			return n, io.ErrClosedPipe
		}
		m := min(len(p), part)
		if err := s.send(data, s.number, p[:m]); err != nil {
			s.fail(err)
			return n, err
		}
		s.number++
		s.sent += uint64(m)
		n, p = n+m, p[m:]
	}
	return n, nil
}

// CloseWrite tells the other side that nothing more is written. Idempotent.
func (s *Stream) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished || s.err != nil {
		return s.err
	}
	s.finished = true
	defer s.wake.Broadcast()
	return s.send(end, s.number, nil)
}

// Close ends both directions. The other side reads what was written before CloseWrite, and can write no more; without CloseWrite its reader fails, too.
func (s *Stream) Close() error {
	s.mu.Lock()
	if s.err == nil {
		_ = s.send(fails, 0, nil) // nothing is read here any more; a connection that has ended ends the stream, too
	}
	s.fail(net.ErrClosed)
	s.wake.Broadcast()
	s.mu.Unlock()
	return s.sub.Unsubscribe()
}
