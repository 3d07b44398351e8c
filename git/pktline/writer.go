package pktline

import (
	"fmt"
	"io"
)

const hexDigits = "0123456789abcdef"

func putLength(dst []byte, n int) {
	dst[0], dst[1], dst[2], dst[3] = hexDigits[n>>12&15], hexDigits[n>>8&15], hexDigits[n>>4&15], hexDigits[n&15]
}

// Writer writes pkt-lines, each with one Write on the stream below. It is for one goroutine.
type Writer struct {
	w   io.Writer
	buf []byte
}

// NewWriter returns a Writer to w. Only one line is buffered: use a bufio.Writer if many short lines are written.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Data writes p as one line, unchanged. More than MaxPayload bytes are an error and nothing is written.
func (w *Writer) Data(p []byte) error {
	if len(p) > MaxPayload {
		return fmt.Errorf("pkt-line of %d bytes: %w", len(p), ErrSyntax)
	}
	w.buf = append(w.buf[:0], 0, 0, 0, 0)
	w.buf = append(w.buf, p...)
	return w.send()
}

// Linef writes one line of text and ends it with a line feed.
func (w *Writer) Linef(format string, args ...any) error {
	w.buf = append(w.buf[:0], 0, 0, 0, 0)
	w.buf = fmt.Appendf(w.buf, format, args...)
	w.buf = append(w.buf, '\n')
	if len(w.buf) > MaxLine {
		return fmt.Errorf("pkt-line of %d bytes: %w", len(w.buf)-4, ErrSyntax)
	}
	return w.send()
}

// Errorf writes an "ERR" line: the peer shows its text and exits.
func (w *Writer) Errorf(format string, args ...any) error {
	return w.Linef("ERR %s", fmt.Sprintf(format, args...))
}

func (w *Writer) send() error {
	putLength(w.buf, len(w.buf))
	_, err := w.w.Write(w.buf)
	return err
}

func (w *Writer) special(s string) error {
	_, err := io.WriteString(w.w, s)
	return err
}

// Flush writes a flush-pkt. It ends a list; it does not flush a buffer below.
func (w *Writer) Flush() error { return w.special("0000") }

// Delim writes a delim-pkt.
func (w *Writer) Delim() error { return w.special("0001") }
