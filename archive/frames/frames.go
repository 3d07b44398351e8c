// Package frames writes zstd streams in parts: frames that are compressed at the same time, each by itself, decompressed again, and compared. One
// after the other they are one stream (RFC 8878, 3.1), which every reader of zstd takes.
//
// A large file of which an earlier stream held most is not compressed again: see Known.
package frames

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// block is how much of a stream is compressed at once, part the same of a large file: a part is either equal to a known one, or new.
	block = 1 << 20
	part  = 64 << 10
	// slack is what a frame takes more than its content, if that does not compress.
	slack = 64
	// Large is the size from which a file is compressed in parts of its own.
	Large = 2 * part
)

// ErrNotSame reports that a compressed frame does not contain what was compressed.
var ErrNotSame = errors.New("decompressed again, it is not the same")

// Writer compresses what is written to it. It belongs to one goroutine.
type Writer struct {
	raw  io.Writer
	pend []byte
	// left is about how much will still be written; spare are buffers of frames that are done.
	left  int64
	spare chan []byte
	// known are parts that earlier streams held, made those of this one; name is that of the file whose content is written next.
	known *Known
	made  map[string][]*frame
	name  string
	todo  chan *frame
	queue chan *frame
	work  sync.WaitGroup
	// coders are shared with other streams.
	coders *Coders
	err    error // of raw, or of the last write to out
	mu     sync.Mutex
}

// frame is a part of a stream. done is nil if it was known. Nothing else has the buffers of one that is lent.
type frame struct {
	raw, zst []byte
	err      error
	done     chan struct{}
	lent     bool
}

// Coders compress and decompress for several streams, also at the same time: making them takes memory, and longer than a small stream.
type Coders struct {
	workers int
	enc     *zstd.Encoder
	dec     *zstd.Decoder
}

// NewCoders makes coders for as many frames at the same time as there are workers or processors. They hold nothing but memory.
func NewCoders(workers int) (*Coders, error) {
	c := &Coders{workers: max(1, min(workers, runtime.GOMAXPROCS(0)))}
	var err, derr error
	c.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(block), zstd.WithEncoderConcurrency(c.workers))
	c.dec, derr = zstd.NewReader(nil, zstd.WithDecoderConcurrency(c.workers), zstd.WithDecoderMaxMemory(2*block))
	return c, errors.Join(err, derr)
}

// New returns a Writer to out. What was written goes to raw, too, uncompressed and in order, which may be nil. size is about how much will be
// written. Close it.
func New(out, raw io.Writer, known *Known, coders *Coders, size int64) *Writer {
	workers := min(coders.workers, 1+int(size/part))
	w := &Writer{raw: raw, known: known, made: map[string][]*frame{}, todo: make(chan *frame), queue: make(chan *frame, 2*workers), coders: coders,
		left: size, spare: make(chan []byte, 8*workers)}
	for range workers {
		w.work.Go(func() {
			var again []byte
			for f := range w.todo {
				again = w.compress(f, again)
				close(f.done)
			}
		})
	}
	w.work.Go(func() { w.drain(out) })
	return w
}

// compress compresses a frame, and compares the result with it. It returns the buffer into which it decompressed, for the next one.
func (w *Writer) compress(f *frame, again []byte) []byte {
	var zst []byte
	if f.lent {
		zst = w.buffer(len(f.raw))
	} else {
		zst = make([]byte, 0, len(f.raw)+slack)
	}
	f.zst = w.coders.enc.EncodeAll(f.raw, zst)
	again, err := w.coders.dec.DecodeAll(f.zst, slices.Grow(again[:0], len(f.raw)))
	if err == nil && !bytes.Equal(again, f.raw) {
		err = ErrNotSame
	}
	if err != nil {
		f.err = fmt.Errorf("compress: %w", err)
	}
	return again
}

// buffer returns an empty one that holds n bytes, also when they do not compress.
func (w *Writer) buffer(n int) []byte {
	select {
	case b := <-w.spare:
		if cap(b) >= n+slack {
			return b[:0]
		}
	default:
	}
	return make([]byte, 0, n+slack)
}

// free takes the buffers of a frame back.
func (w *Writer) free(f *frame) {
	if !f.lent {
		return
	}
	for _, b := range [][]byte{f.raw, f.zst} {
		select {
		case w.spare <- b:
		default:
		}
	}
	f.raw, f.zst = nil, nil
}

// drain writes frames in their order.
func (w *Writer) drain(out io.Writer) {
	for f := range w.queue {
		if f.done != nil {
			<-f.done
		}
		if w.failed() != nil {
			continue
		}
		err := f.err
		if err == nil {
			_, err = out.Write(f.zst)
		}
		w.fail(err)
		w.free(f)
	}
}

func (w *Writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// Content announces that the next Write is the whole content of a file, which the Writer may keep and must not be changed any more.
func (w *Writer) Content(name string) { w.name = name }

// Write implements io.Writer. Errors may be those of earlier writes.
func (w *Writer) Write(p []byte) (int, error) {
	name := w.name
	w.name = ""
	if err := w.failed(); err != nil {
		return 0, err
	}
	if name != "" && len(p) >= Large {
		w.flush()
		w.content(name, p)
		return len(p), nil
	}
	for rest := p; len(rest) > 0; {
		if w.pend == nil {
			w.pend = w.buffer(min(block, max(part, len(rest), int(min(w.left, block)))))
		}
		n := min(block-len(w.pend), len(rest))
		w.pend, rest = append(w.pend, rest[:n]...), rest[n:]
		if len(w.pend) == block {
			w.flush()
		}
	}
	return len(p), nil
}

// flush ends the frame under way.
func (w *Writer) flush() {
	if len(w.pend) > 0 {
		w.left -= int64(len(w.pend))
		w.add(w.pend, true)
	}
	w.pend = nil
}

// add compresses a frame.
func (w *Writer) add(raw []byte, lent bool) *frame {
	f := &frame{raw: raw, lent: lent, done: make(chan struct{})}
	w.put(f)
	w.todo <- f
	return f
}

// put appends a frame to the stream.
func (w *Writer) put(f *frame) {
	if w.raw != nil {
		if _, err := w.raw.Write(f.raw); err != nil {
			w.fail(err)
		}
	}
	w.queue <- f
}

// content writes a large file, of which known parts are not compressed again.
func (w *Writer) content(name string, p []byte) {
	var all []*frame
	for _, x := range w.known.split(name, p) {
		if x.zst != nil {
			f := &frame{raw: x.raw, zst: x.zst}
			w.put(f)
			all = append(all, f)
			continue
		}
		all = append(all, w.add(x.raw, false))
	}
	w.made[name] = all
}

// Close ends the stream, and waits until everything was written. It does not close out.
func (w *Writer) Close() error {
	w.flush()
	close(w.todo)
	close(w.queue)
	w.work.Wait()
	return w.failed()
}

// Made adds to k the large files of the stream, after Close.
func (w *Writer) Made(k *Known) {
	if w.failed() != nil {
		return
	}
	for name, all := range w.made {
		out := make([]piece, len(all))
		for i, f := range all {
			out[i] = piece{f.raw, f.zst}
		}
		k.add(name, out)
	}
}
