package pack

import (
	"crypto/sha1"
	"hash"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// packWriter writes and hashes a pack in the background while the scanner parses it.
type packWriter struct {
	w    io.Writer
	h    hash.Hash
	buf  []byte
	full chan []byte
	free chan wrote
	out  bool // one buffer is being written
	done chan struct{}
	err  error
}

// wrote is a written buffer and the error of writing it.
type wrote struct {
	buf []byte
	err error
}

// writeBytes is the size of each of two buffers.
const writeBytes = 128 << 10

func newPackWriter(w io.Writer) *packWriter {
	p := &packWriter{w: w, h: sha1.New(), full: make(chan []byte, 1), free: make(chan wrote, 1), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for b := range p.full {
			p.h.Write(b)
			_, err := p.w.Write(b)
			p.free <- wrote{b[:0], err}
		}
	}()
	return p
}

// write keeps a reference to b. It returns the error of an earlier one.
func (p *packWriter) write(b []byte) error {
	for len(p.buf)+len(b) > writeBytes {
		n := writeBytes - len(p.buf)
		p.buf = append(p.buf, b[:n]...)
		b = b[n:]
		if err := p.swap(); err != nil {
			return err
		}
	}
	p.buf = append(p.buf, b...)
	return nil
}

// swap passes the buffer on and waits for the previous one.
func (p *packWriter) swap() error {
	var next []byte
	if p.out {
		w := <-p.free
		next = w.buf
		if p.out = false; w.err != nil && p.err == nil {
			p.err = w.err
		}
	}
	if p.err == nil && len(p.buf) > 0 {
		p.full <- p.buf
		p.out = true
		p.buf = next
	}
	return p.err
}

// drain waits until all is written.
func (p *packWriter) drain() error {
	if err := p.swap(); err != nil {
		return err
	}
	return p.swap()
}

// sum returns the hash of what was written so far, all of which is in the file.
func (p *packWriter) sum() (h plumbing.Hash, err error) {
	if err := p.drain(); err != nil {
		return h, err
	}
	p.h.Sum(h[:0])
	return h, nil
}

// close writes the rest and ends the goroutine. The file stays open.
func (p *packWriter) close() error {
	err := p.drain()
	close(p.full)
	<-p.done
	return err
}
