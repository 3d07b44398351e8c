package session

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"corpus-git/git/pktline"
)

// wire carries everything to the client after the advertisement: progress and report, on a side-band if the client supports it,
// otherwise progress on standard error and the report as it is. It may be used by any goroutine.
type wire struct {
	mux  *pktline.Mux // nil without side-band
	out  io.Writer
	errw io.Writer

	mu   sync.Mutex
	last atomic.Int64 // when something was sent, in nanoseconds since 1970
}

func newWire(sideBand bool, out, errw io.Writer) *wire {
	w := &wire{out: out, errw: errw}
	if sideBand {
		w.mux = pktline.NewMux(out, pktline.SideBand64k)
	}
	w.last.Store(time.Now().UnixNano())
	return w
}

// Write sends progress.
func (w *wire) Write(p []byte) (int, error) {
	w.last.Store(time.Now().UnixNano())
	if w.mux != nil {
		return w.mux.Writer(pktline.BandProgress).Write(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.errw.Write(p)
}

// keepalive sends an empty packet whenever nothing was sent for the time every, until ctx ends. It needs a side-band.
func (w *wire) keepalive(ctx context.Context, every time.Duration) {
	if w.mux == nil || every <= 0 {
		return
	}
	for {
		quiet := time.Since(time.Unix(0, w.last.Load()))
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(every-quiet, time.Millisecond)):
		}
		if time.Since(time.Unix(0, w.last.Load())) < every {
			continue
		}
		w.last.Store(time.Now().UnixNano())
		if w.mux.Keepalive() != nil {
			return
		}
	}
}

// report sends the report, which is the last thing on the wire (gitprotocol-pack(5), "Report Status").
func (w *wire) report(unpack string, items []*Item) error {
	var b bytes.Buffer
	p := pktline.NewWriter(&b)
	err := p.Linef("unpack %s", unpack)
	for _, i := range items {
		if err != nil {
			return err
		}
		if i.Err == nil {
			err = p.Linef("ok %s", i.Ref)
			continue
		}
		reason := i.reason
		if reason == "" {
			reason = oneLine(i.Err)
		}
		err = p.Linef("ng %s %s", i.Ref, reasonText(reason, ""))
	}
	if err == nil {
		err = p.Flush()
	}
	if err != nil {
		return err
	}
	if w.mux != nil {
		_, err = w.mux.Send(pktline.BandData, b.Bytes())
		return err
	}
	bw := bufio.NewWriter(w.out)
	if _, err := b.WriteTo(bw); err != nil {
		return err
	}
	return bw.Flush()
}

// close ends the side-band.
func (w *wire) close() error {
	if w.mux == nil {
		return nil
	}
	return w.mux.Close()
}
