package pktline

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// Band is a channel of the side-band protocol (gitprotocol-pack(5)).
type Band byte

const (
	// BandData carries the pack, or the report of a push.
	BandData Band = 1
	// BandProgress carries text that the client prints with "remote: " before each line.
	BandProgress Band = 2
	// BandError carries a fatal error: the client prints it and exits.
	BandError Band = 3

	// SideBand is the packet length of the old side-band capability.
	SideBand = 1000
	// SideBand64k is the packet length of side-band-64k.
	SideBand64k = MaxLine
)

// ErrMuxClosed is the error of a write after Close.
var ErrMuxClosed = errors.New("side-band is closed")

// Mux writes the bands of one connection. Every method may be called concurrently; a packet is never split. The first error of the
// underlying stream is permanent: later writes return it at once.
type Mux struct {
	mu     sync.Mutex
	w      io.Writer
	room   int // payload bytes per packet, not counting the band's byte
	buf    []byte
	err    error
	closed bool
}

// NewMux returns a Mux that writes to w packets of at most packet bytes: SideBand or SideBand64k.
func NewMux(w io.Writer, packet int) *Mux {
	packet = min(max(packet, 6), MaxLine)
	return &Mux{w: w, room: packet - 5}
}

// Send writes p on a band, in as many packets as it needs, without packets of other bands in between. An empty p sends an empty packet.
func (m *Mux) Send(b Band, p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, ErrMuxClosed
	}
	n := 0
	for {
		k := min(len(p)-n, m.room)
		if err := m.packet(b, p[n:n+k]); err != nil {
			return n, err
		}
		if n += k; n == len(p) {
			return n, nil
		}
	}
}

func (m *Mux) packet(b Band, p []byte) error {
	if m.err != nil {
		return m.err
	}
	if need := 5 + len(p); cap(m.buf) < need {
		// A line of progress needs little; a caller that sends a pack sends packets of the full length.
		m.buf = make([]byte, 0, min(max(1024, 2*need), 5+m.room))
	}
	m.buf = append(m.buf[:0], 0, 0, 0, 0, byte(b))
	m.buf = append(m.buf, p...)
	putLength(m.buf, len(m.buf))
	_, m.err = m.w.Write(m.buf)
	return m.err
}

// Writer returns a band as an io.Writer. An empty write writes nothing.
func (m *Mux) Writer(b Band) io.Writer { return bandWriter{m, b} }

type bandWriter struct {
	m *Mux
	b Band
}

func (w bandWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return w.m.Send(w.b, p)
}

// Keepalive sends an empty packet on band 1 ("0005" and the byte 1), as git does every 5 s of silence: clients ignore it,
// proxies see traffic.
func (m *Mux) Keepalive() error {
	_, err := m.Send(BandData, nil)
	return err
}

// Flush writes a flush-pkt outside of any band. Bands may be written after it.
func (m *Mux) Flush() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrMuxClosed
	}
	if m.err == nil {
		_, m.err = io.WriteString(m.w, "0000")
	}
	return m.err
}

// Close writes the flush-pkt that ends the side-band. It does not close the stream below. A second call does nothing.
func (m *Mux) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	if m.err == nil {
		_, m.err = io.WriteString(m.w, "0000")
	}
	return m.err
}

// Demux reads a side-band: band 1 as a stream, bands 2 and 3 passed to callbacks. For clients and tests.
type Demux struct {
	r *Reader
	// Progress receives band 2; nil discards it. The slice is valid during the call.
	Progress func([]byte)
	rest     []byte
	end      error
}

// NewDemux returns a Demux that reads from r until a flush-pkt, which ends the stream with io.EOF. Band 3 ends it with *ErrorLine.
func NewDemux(r *Reader) *Demux { return &Demux{r: r} }

func (d *Demux) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(d.rest) == 0 {
		if d.end != nil {
			return 0, d.end
		}
		if d.rest, d.end = d.packet(); d.end != nil {
			d.rest = nil
		}
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

func (d *Demux) packet() ([]byte, error) {
	k, p, err := d.r.Next()
	switch {
	case err == io.EOF:
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	case k == Flush:
		return nil, io.EOF
	case k != Data || len(p) == 0:
		return nil, fmt.Errorf("%w: %s of %d bytes in a side-band", ErrSyntax, k, len(p))
	}
	switch Band(p[0]) {
	case BandData:
		return p[1:], nil
	case BandProgress:
		if d.Progress != nil {
			d.Progress(p[1:])
		}
		return nil, nil
	case BandError:
		return nil, &ErrorLine{Text: string(p[1:])}
	default:
		return nil, fmt.Errorf("%w: band %d", ErrSyntax, p[0])
	}
}
