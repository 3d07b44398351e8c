package pktline

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

const (
	// MaxLine is the length of the longest pkt-line on the wire, its four digits included.
	MaxLine = 65520
	// MaxPayload is the most that one pkt-line carries.
	MaxPayload = MaxLine - 4
)

// Kind distinguishes a data line from the three special packets.
type Kind uint8

const (
	// Data is a line with a payload, which may be empty ("0004").
	Data Kind = iota
	// Flush is "0000", the end of a list.
	Flush
	// Delim is "0001", the separator of sections in protocol v2.
	Delim
	// ResponseEnd is "0002", the end of a response of a stateless connection.
	ResponseEnd
)

// String returns the name of the kind as in the protocol's documents.
func (k Kind) String() string {
	switch k {
	case Data:
		return "data"
	case Flush:
		return "flush-pkt"
	case Delim:
		return "delim-pkt"
	case ResponseEnd:
		return "response-end-pkt"
	default:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
}

// ErrSyntax marks bytes that are not a pkt-line: bad digits, a length of 3, a line that is too long.
var ErrSyntax = errors.New("not a pkt-line")

// ErrTooMuch marks a peer that sent more lines or bytes than the Reader's limits allow.
var ErrTooMuch = errors.New("too many pkt-lines")

// ErrorLine is an "ERR <text>" line, with which a peer aborts (gitprotocol-pack(5)).
type ErrorLine struct{ Text string }

func (e *ErrorLine) Error() string { return "remote error: " + e.Text }

// Limits limits what a peer may send in pkt-lines between two calls of Reset. Zero means no limit.
type Limits struct {
	// Lines counts pkt-lines, special packets included.
	Lines int
	// Bytes counts payload bytes.
	Bytes int64
}

// Reader reads pkt-lines. It is for one goroutine.
type Reader struct {
	r      *bufio.Reader
	limits Limits
	lines  int
	bytes  int64
	buf    []byte
}

// NewReader returns a Reader of r under limits. If r is a *bufio.Reader of at least MaxLine bytes it is used directly.
func NewReader(r io.Reader, limits Limits) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, MaxLine), limits: limits}
}

// Reset starts the count of lines and bytes again, under limits.
func (r *Reader) Reset(limits Limits) { r.limits, r.lines, r.bytes = limits, 0, 0 }

// Raw returns the stream after the last line read. Reading from it and then from the Reader again is allowed.
func (r *Reader) Raw() *bufio.Reader { return r.r }

// Next reads one pkt-line. The payload is valid until the next call. At a clean end of the stream (no byte of
// a further line) the error is io.EOF; within a line it is io.ErrUnexpectedEOF.
func (r *Reader) Next() (Kind, []byte, error) {
	var head [4]byte
	if n, err := io.ReadFull(r.r, head[:]); err != nil {
		if err == io.ErrUnexpectedEOF {
			return 0, nil, fmt.Errorf("pkt-line cut after %d of 4 digits: %w", n, err)
		}
		return 0, nil, err
	}
	n, ok := parseLength(head)
	if !ok {
		return 0, nil, fmt.Errorf("%w: length %q", ErrSyntax, head[:])
	}
	if r.lines++; r.limits.Lines > 0 && r.lines > r.limits.Lines {
		return 0, nil, fmt.Errorf("%w: more than %d", ErrTooMuch, r.limits.Lines)
	}
	switch {
	case n == 0:
		return Flush, nil, nil
	case n == 1:
		return Delim, nil, nil
	case n == 2:
		return ResponseEnd, nil, nil
	case n == 3 || n > MaxLine:
		return 0, nil, fmt.Errorf("%w: length %q (4 to %d are allowed)", ErrSyntax, head[:], MaxLine)
	}
	n -= 4
	if r.bytes += int64(n); r.limits.Bytes > 0 && r.bytes > r.limits.Bytes {
		return 0, nil, fmt.Errorf("%w: more than %d bytes", ErrTooMuch, r.limits.Bytes)
	}
	if cap(r.buf) < n {
		r.buf = make([]byte, max(n, 1024))
	}
	r.buf = r.buf[:n]
	if got, err := io.ReadFull(r.r, r.buf); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return 0, nil, fmt.Errorf("pkt-line cut after %d of %d bytes: %w", got, n, io.ErrUnexpectedEOF)
		}
		return 0, nil, err
	}
	return Data, r.buf, nil
}

// Line is Next for text: one trailing line feed is dropped, and a line "ERR <text>" is returned as *ErrorLine.
func (r *Reader) Line() (Kind, string, error) {
	k, p, err := r.Next()
	if err != nil || k != Data {
		return k, "", err
	}
	if n := len(p); n > 0 && p[n-1] == '\n' {
		p = p[:n-1]
	}
	if len(p) >= 4 && string(p[:4]) == "ERR " {
		return k, "", &ErrorLine{Text: string(p[4:])}
	}
	return k, string(p), nil
}

// parseLength reads four hexadecimal digits of either case, as git does.
func parseLength(h [4]byte) (int, bool) {
	n := 0
	for _, c := range h {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | int(c)
	}
	return n, true
}
