package cluster

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"time"

	"corpus-git/cluster/replica"
	"corpus-git/cluster/stream"
)

const (
	// walLimit is the size of the write-ahead log from which the database is checkpointed, in bytes.
	walLimit = 8 << 20
	// logLimit is the default of Config.LogLimit.
	logLimit = 4 << 30
)

// partWriter sends a batch in parts.
type partWriter struct {
	ctx  context.Context
	l    *Leader
	buf  []byte
	sent bool
	err  error // why a part could not be sent
}

// Write sends full parts. The last one waits for finish.
func (w *partWriter) Write(b []byte) (n int, err error) {
	size := w.l.c.log.MaxMessage()
	for n < len(b) {
		if w.buf == nil {
			w.buf = make([]byte, partHeader, 4<<10)
		}
		if len(w.buf) == size {
			if err := w.send(0); err != nil {
				return n, err
			}
		}
		m := min(size-len(w.buf), len(b)-n)
		w.buf = append(w.buf, b[n:n+m]...)
		n += m
	}
	return n, nil
}

// finish sends the last part.
func (w *partWriter) finish() error { return w.send(lastPart) }

// send appends one part to the log. The leadership ends if that fails: whether it is in the log is not known.
func (w *partWriter) send(flags byte) error {
	l := w.l
	if !w.sent {
		flags |= firstPart
	}
	w.buf[0], w.buf[1] = partMessage, flags
	binary.BigEndian.PutUint64(w.buf[2:], l.epoch)
	ctx, cancel := context.WithTimeout(w.ctx, majority)
	defer cancel()
	l.mu.Lock()
	last := l.last
	l.mu.Unlock()
	seq, err := l.c.log.Append(ctx, last, id(), w.buf)
	if err != nil {
		if !l.ended() {
			l.c.c.Log.Error().Err(err).Msg("this hub no longer leads")
		}
		l.lose(err)
		w.err = ErrLost
		return w.err
	}
	l.mu.Lock()
	l.last = seq
	l.mu.Unlock()
	w.sent, w.buf = true, w.buf[:partHeader]
	return nil
}

// lostContext ends when a leadership does.
type lostContext struct {
	context.Context
	lost <-chan struct{}
}

// Done is closed when the leadership has ended.
func (c lostContext) Done() <-chan struct{} { return c.lost }

// Err is context.Canceled then.
func (c lostContext) Err() error {
	select {
	case <-c.lost:
		return context.Canceled
	default:
		return nil
	}
}

// tend looks whether this hub still leads, and does what the log and the database need from time to time.
func (l *Leader) tend(shorten bool) {
	ctx, cancel := context.WithTimeout(context.Background(), tending)
	defer cancel()
	s, err := l.c.log.State(ctx)
	l.mu.Lock()
	last, d := l.last, l.db
	l.mu.Unlock()
	switch {
	case err != nil || s.Leader == "":
		if l.failing.IsZero() {
			l.failing = time.Now()
		}
		if time.Since(l.failing) > majority {
			l.c.c.Log.Error().Err(err).Msg("this hub no longer leads: no majority of the NATS servers responds")
			l.lose(errors.Join(ErrLost, err))
		}
		return
	case s.Last > last:
		l.lose(ErrLost)
		return
	}
	l.failing = time.Time{}
	if s.Leader == l.c.c.Self.Name {
		l.stepDown(ctx)
	}
	if shorten {
		l.shorten(ctx, s)
	}
	if d != nil && l.source.WAL().Size() > walLimit {
		l.all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), majority)
			defer cancel()
			if err := l.checkpoint(ctx, d); err != nil && !l.ended() {
				l.c.c.Log.Warn().Err(err).Msg("checkpointing the database")
			}
		})
	}
}

// checkpoint empties the write-ahead log of the database. It holds the only connection, and only then asks the goroutine that ships: somebody who holds the connection may wait for that one.
func (l *Leader) checkpoint(ctx context.Context, d *sql.DB) error {
	c, err := d.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return l.ship(ctx, replica.Scope{}, func() error { return l.source.WAL().Checkpoint(ctx, c) })
}

// stepDown lets a NATS server order the log that is not beside this hub, so that the end of this machine is not also the end of that.
func (l *Leader) stepDown(ctx context.Context) {
	var others []string
	for _, h := range l.c.hubs() {
		if h.Name != l.c.c.Self.Name {
			others = append(others, h.Name)
		}
	}
	if err := l.c.log.StepDown(ctx, l.c.c.Self.Name, others...); err != nil {
		l.c.c.Log.Debug().Err(err).Msg("letting another NATS server order the log of the hubs")
	}
}

// shorten removes what all hubs have applied from the log, and more if it is too large.
func (l *Leader) shorten(ctx context.Context, s stream.State) {
	need, reached := s.Last, s.Last // what all hubs need, and what those need that were heard
	hubs := l.c.hubs()
	l.c.mu.Lock()
	for _, h := range hubs {
		r, known := l.c.reports[h.Name]
		switch {
		case h.Name == l.c.c.Self.Name:
			continue
		case !known:
			need = 0
			continue
		}
		need = min(need, r.Applied)
		if time.Since(r.Seen) < unreachable {
			reached = min(reached, r.Applied)
		}
	}
	l.c.mu.Unlock()
	if s.Bytes > l.c.c.LogLimit {
		need = max(need, reached)
	}
	// The last message stays: it says which epoch this is.
	if need = min(need, s.Last-min(s.Last, 1)); need < s.First {
		return
	}
	if err := l.c.log.Shorten(ctx, need+1); err != nil {
		l.c.c.Log.Debug().Err(err).Msg("shortening the log of the hubs")
	}
}
