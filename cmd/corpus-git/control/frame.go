package control

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"corpus-git/internal/terminal"
)

// MaxFrame is the longest payload, in bytes.
const MaxFrame = 1 << 20

// kind of a frame: its first byte, before four bytes of length, most significant first.
type kind byte

const (
	request kind = 'R' // client: JSON of Request
	input   kind = 'I' // client: standard input
	eof     kind = 'E' // client: end of standard input
	leave   kind = 'C' // client: interrupted; end the request's context
	resized kind = 'W' // client: JSON of terminal.Size, the new one of its terminal
	output  kind = 'O' // server: standard output
	errout  kind = 'X' // server: standard error
	exit    kind = 'S' // server: one byte, the exit status; the last frame
)

// Protocol is the version of the frames and of Request.
const Protocol = 1

// Request is a request of a client.
type Request struct {
	Protocol int      `json:"protocol"`
	Argv     []string `json:"argv"`
	Colour   bool     `json:"colour,omitempty"`
	Width    int      `json:"width,omitempty"`
	// Receive, instead of Argv, is the directory of the repository of a push by path: standard input and output speak git's protocol. With Check the server
	// only reports whether it accepts one.
	Receive string `json:"receive,omitempty"`
	Check   bool   `json:"check,omitempty"`
	// Terminal is the size of the client's terminal, which is in raw mode; the command gets its own pseudo terminal. Term is its type.
	Terminal *terminal.Size `json:"terminal,omitempty"`
	Term     string         `json:"term,omitempty"`
	// Sizes sends the size when it changes.
	Sizes chan terminal.Size `json:"-"`
}

// Screen returns the client's terminal as seen by the command, nil if it has none.
func (q Request) Screen(in io.Reader, out io.Writer) *terminal.Terminal {
	if q.Terminal == nil {
		return nil
	}
	return &terminal.Terminal{Name: q.Term, Size: *q.Terminal, Sizes: q.Sizes, In: in, Out: out}
}

// writer sends frames; safe for concurrent use.
type writer struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *writer) send(k kind, p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	head := [5]byte{byte(k)}
	binary.BigEndian.PutUint32(head[1:], uint32(len(p))) //nolint:gosec // at most MaxFrame, see stream
	_, err := w.w.Write(append(head[:], p...))
	return err
}

// stream is an io.Writer that sends what it is given as frames of one kind.
type stream struct {
	w *writer
	k kind
}

func (s stream) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 {
		part := p[:min(len(p), MaxFrame)]
		if err := s.w.send(s.k, part); err != nil {
			return n, err
		}
		n, p = n+len(part), p[len(part):]
	}
	return n, nil
}

// receive reads one frame.
func receive(r io.Reader) (kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > MaxFrame {
		return 0, nil, fmt.Errorf("control: a frame of %d bytes", n)
	}
	p := make([]byte, n)
	if _, err := io.ReadFull(r, p); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return kind(head[0]), p, nil
}

func parseRequest(p []byte) (Request, error) {
	var q Request
	if err := json.Unmarshal(p, &q); err != nil {
		return q, fmt.Errorf("control: request: %w", err)
	}
	return q, nil
}
