package upload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/pktline"
	"corpus-git/git/store"
)

// send makes the pack and sends it. On a side-band it sends something at least every Keepalive.
func (s *session) send(h *history, f *fetch, b *boundary) (err error) {
	if err := s.buf.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	out := &wire{w: s.buf}
	if f.band == 0 {
		if err = s.pack(s.ctx, h, f, b, out, nil); err == nil {
			err = out.flush()
		}
		return err
	}
	s.muxed = true
	defer func() { s.muxed = false }()
	mux := pktline.NewMux(out, f.band)
	stop := s.keepAlive(mux, out)
	bands := bufio.NewWriterSize(mux.Writer(pktline.BandData), f.band-5)
	progress := func(format string, args ...any) {
		if !f.noProgress {
			_, _ = mux.Send(pktline.BandProgress, fmt.Appendf(nil, format, args...))
			_ = out.flush()
		}
	}
	if err = s.pack(s.ctx, h, f, b, bands, progress); err == nil {
		err = bands.Flush()
	}
	stop()
	if err != nil && !errors.Is(err, errGone) {
		// The client prints this and exits; details stay here.
		text := "upload-pack: the server failed to make the pack\n"
		if s.ctx.Err() != nil {
			text = "upload-pack: the server ended the session\n"
		}
		_, _ = mux.Send(pktline.BandError, []byte(text))
		_ = out.flush()
		return err
	}
	if err == nil {
		err = mux.Close()
	}
	if err == nil {
		err = out.flush()
	}
	return err
}

// pack writes the pack of a request to w.
func (s *session) pack(ctx context.Context, h *history, f *fetch, b *boundary, w io.Writer, progress func(string, ...any)) error {
	theirs := hashSet{}
	for _, id := range f.shallow {
		theirs.add(id)
	}
	hashes, common, err := list(h, f.wants, f.haves, b, theirs, f.filter)
	if err != nil {
		return err
	}
	if f.includeTag {
		if hashes, err = s.withTags(hashes); err != nil {
			return err
		}
	}
	if progress != nil {
		progress("Sending %d objects\n", len(hashes))
	}
	opt := store.PackOptions{OfsDelta: f.ofsDelta}
	// Not all blobs of a partial clone are at the client: none of them may be a base.
	if f.thin && !f.filter.active() && len(common) > 0 {
		opt.Has = common.has
	}
	_, err = store.WritePack(ctx, w, s.req.Objects, hashes, opt)
	return err
}

// withTags adds the visible annotated tags of what is sent.
func (s *session) withTags(hashes []plumbing.Hash) ([]plumbing.Hash, error) {
	var sent hashSet
	for i := range s.refs {
		r := &s.refs[i]
		if !strings.HasPrefix(r.Name, "refs/tags/") {
			continue
		}
		p, err := s.peeled(r)
		if err != nil {
			return nil, err
		}
		if p.IsZero() {
			continue
		}
		if sent == nil {
			sent = make(hashSet, len(hashes))
			for _, h := range hashes {
				sent.add(h)
			}
		}
		if !sent.has(p) {
			continue
		}
		for id := r.Hash; id != p && sent.add(id); {
			hashes = append(hashes, id)
			tag, err := object.ReadTag(s.req.Objects, id)
			if err != nil {
				return nil, err
			}
			id = tag.Target
		}
	}
	return hashes, nil
}

// keepAlive sends an empty packet when nothing was sent for too long, until stop is called.
func (s *session) keepAlive(mux *pktline.Mux, out *wire) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		every := s.req.Limits.Keepalive
		t := time.NewTicker(every)
		defer t.Stop()
		for last := int64(-1); ; {
			select {
			case <-done:
				return
			case <-t.C:
				if n := out.sent.Load(); n != last {
					last = n
				} else if mux.Keepalive() != nil || out.flush() != nil {
					return
				}
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// wire is the client's stream, safe for several goroutines; its errors match errGone.
type wire struct {
	mu   sync.Mutex
	w    *bufio.Writer
	sent atomic.Int64
}

func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.w.Write(b)
	w.sent.Add(int64(n))
	if err != nil {
		err = fmt.Errorf("%w: %w", errGone, err)
	}
	return n, err
}

func (w *wire) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.w.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}
