package execx

import (
	"bytes"
	"sync"
)

// Lines is a writer that calls a function for each line, without its end. A line longer than MaxLine is passed on in pieces. Close passes
// on a last line without an end. Safe for concurrent use; the function is called by one goroutine at a time.
type Lines struct {
	mu   sync.Mutex
	buf  []byte
	emit func(line string)
}

// MaxLine limits what Lines holds of one line, in bytes.
const MaxLine = 64 << 10

// NewLines returns a Lines that calls emit.
func NewLines(emit func(line string)) *Lines { return &Lines{emit: emit} }

// Write never fails.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.buf = append(l.buf, p...)
			for len(l.buf) > MaxLine {
				l.emit(string(l.buf[:MaxLine]))
				l.buf = append(l.buf[:0], l.buf[MaxLine:]...)
			}
			break
		}
		l.buf = append(l.buf, p[:i]...)
		l.emit(string(l.buf))
		l.buf = l.buf[:0]
		p = p[i+1:]
	}
	return n, nil
}

// Close passes on what is left. The Lines can be used again.
func (l *Lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf) > 0 {
		l.emit(string(l.buf))
		l.buf = l.buf[:0]
	}
	return nil
}

// Tail is a writer that keeps the last Max bytes. The zero value keeps nothing. Safe for concurrent use.
type Tail struct {
	Max int

	mu  sync.Mutex
	buf []byte
	cut bool
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.Max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
		t.cut = true
	}
	return len(p), nil
}

// String returns what was kept; when something was cut off, it starts at the first whole line.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf
	if t.cut {
		if i := bytes.IndexByte(b, '\n'); i >= 0 && i+1 < len(b) {
			b = b[i+1:]
		}
	}
	return string(b)
}
