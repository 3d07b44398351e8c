package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"corpus-git/cluster/replica"
	"corpus-git/cluster/stream"
	"corpus-git/internal/vfs"
)

const (
	// look is how long a follower waits for news before it looks at the log.
	look = 250 * time.Millisecond
	// again is the time between two attempts after an error, fullAgain that if the disk here is full.
	again = 300 * time.Millisecond
	// asks is the time between two questions whether this hub may lead, after it was told that it must not.
	asks      = 2 * time.Second
	fullAgain = 10 * time.Second
	// taking limits an attempt to lead.
	taking = 6 * time.Second
)

// errCopy means that this hub needs a copy.
var errCopy = errors.New("this hub needs a copy of the leader's state")

// Follow applies the log to this hub's state until this hub leads, and returns its epoch, which is greater than all earlier ones. It copies the leader's state first if this hub's may differ.
// The database must not be open, and nothing else may write to the state.
func (c *Cluster) Follow(ctx context.Context) (epoch uint64, err error) {
	if c.position().usable() {
		if err := c.settleDatabase(ctx); err != nil {
			return 0, err
		}
	}
	c.rewind()
	// Hubs that start together do not all try at once; trying at once does no harm.
	f := follower{c: c, patience: c.c.Silence + rand.N(beatEvery), since: time.Now()}
	told, failed := "", uint64(0) // what was said last, and the message that could not be taken
	for {
		epoch, err = f.step(ctx)
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case epoch > 0:
			c.setTrouble(nil)
			return epoch, nil
		case err == nil:
			if f.idle || c.cursor >= failed { // taking again what comes before it is no progress
				told = ""
				c.setTrouble(nil)
			}
			continue
		case errors.Is(err, errCopy) || errors.Is(err, replica.ErrDiffers):
			p := c.position()
			p.Copy = true
			if serr := c.setPosition(p); serr != nil {
				return 0, serr
			}
		}
		c.setTrouble(err)
		if text := shown(err); text != told { // once, however often it is tried
			c.c.Log.Warn().Err(err).Msg("following the hub that leads")
			told = text
		}
		failed = c.cursor + 1
		c.rewind()
		pause(ctx, pauseAfter(err))
	}
}

// pauseAfter returns how long to wait after an error. A full disk stays full for a while, and each attempt to copy costs the hub that leads a look at all files.
func pauseAfter(err error) time.Duration {
	if vfs.IsFull(err) {
		return fullAgain
	}
	return again
}

// rewind reads the log again from the position on.
func (c *Cluster) rewind() { c.cursor, c.batch = c.position().Applied, 0 }

func (c *Cluster) setTrouble(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = err
}

// shown returns the text of an error on one line, "" of none.
func shown(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", ": ")
}

func (c *Cluster) setDoes(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.does = what
}

// follower is one call of Follow.
type follower struct {
	c        *Cluster
	patience time.Duration
	// since is when this hub began to wait for a leader.
	since time.Time
	// asked is when this hub was told last that it must not lead.
	asked time.Time
	// idle: the last step found nothing to do.
	idle bool
}

// silence returns how long nothing was heard of a leader. One that has resigned is not waited for.
func (f *follower) silence() time.Duration {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.c.pos.Epoch > 0 && f.c.resigned == f.c.pos.Epoch {
		return math.MaxInt64
	}
	last := f.since
	if f.c.heardAt.After(last) {
		last = f.c.heardAt
	}
	return time.Since(last)
}

// step does the next thing: it copies, applies a message, waits, or tries to lead.
func (f *follower) step(ctx context.Context) (epoch uint64, err error) {
	c := f.c
	p := c.position()
	f.idle = false
	if !p.usable() {
		return f.unusable(ctx, p)
	}
	c.setDoes(Follows)
	data, at, ok, err := c.log.Read(ctx, c.cursor+1)
	switch {
	case err != nil:
		return 0, err
	case ok && at != c.cursor+1:
		return 0, fmt.Errorf("%w: the log no longer has what follows %d", errCopy, c.cursor)
	case ok:
		return 0, f.take(ctx, at, data)
	case f.silence() > f.patience && p.Applied >= p.Until && f.may(ctx):
		if epoch, err = f.lead(ctx, c.cursor, p.Epoch, false); epoch > 0 || err != nil {
			return epoch, err
		}
	}
	f.wait(ctx)
	return 0, nil
}

// may reports whether this hub may lead, and notes why not.
func (f *follower) may(ctx context.Context) bool {
	c := f.c
	if c.c.MayLead == nil {
		return true
	}
	if time.Since(f.asked) < asks {
		return false
	}
	c.mu.Lock()
	fresh, before := c.heard.Epoch == 0, shown(c.barred)
	c.mu.Unlock()
	err := c.c.MayLead(ctx, fresh)
	c.mu.Lock()
	c.barred = err
	c.mu.Unlock()
	if err == nil {
		return true
	}
	f.asked = time.Now()
	if shown(err) != before {
		c.c.Log.Error().Err(err).Msg("no hub leads, and this one must not")
	}
	return false
}

// wait waits for news.
func (f *follower) wait(ctx context.Context) {
	f.idle = true
	select {
	case <-ctx.Done():
	case <-f.c.wake:
	case <-time.After(look):
	}
}

// unusable copies the leader's state. If there is no leader, the hub that led last leads again, with what it has.
func (f *follower) unusable(ctx context.Context, p position) (uint64, error) {
	c := f.c
	if h, _, ok := c.Leader(); ok && h.Name != c.c.Self.Name {
		c.setDoes(Copies)
		defer func() { f.since = time.Now() }()
		return 0, c.copyFrom(ctx, h.Name)
	}
	if !p.Led || p.Copy {
		f.wait(ctx)
		return 0, nil
	}
	s, err := c.log.State(ctx)
	if err != nil {
		f.since = time.Now() // nor can any other hub lead
		return 0, err
	}
	if (s.First > s.Last || f.silence() >= alone) && !f.may(ctx) {
		f.wait(ctx)
		return 0, nil
	}
	if s.First > s.Last { // nobody has led yet
		return f.lead(ctx, s.Last, p.Epoch, true)
	}
	if f.silence() < alone {
		f.wait(ctx)
		return 0, nil
	}
	data, at, ok, err := c.log.Read(ctx, s.Last)
	if err != nil || !ok || at != s.Last {
		return 0, err
	}
	m, err := parseMessage(data)
	if err != nil {
		return 0, err
	}
	// It may have been killed before it recorded that it led again.
	mine := m.begin != nil && m.begin.Hub == c.c.Self.Name && m.epoch == p.Epoch+1
	if m.epoch != p.Epoch && !mine {
		return 0, fmt.Errorf("%w: another hub has led since", errCopy)
	}
	return f.lead(ctx, s.Last, m.epoch, true)
}

// lead appends a new epoch after the last message. Another hub may have been faster: then it returns 0.
func (f *follower) lead(ctx context.Context, last, epoch uint64, copied bool) (uint64, error) {
	c := f.c
	b, err := json.Marshal(epochBegin{Epoch: epoch + 1, Hub: c.c.Self.Name, Copy: copied})
	if err != nil {
		return 0, err
	}
	try, cancel := context.WithTimeout(ctx, taking)
	defer cancel()
	seq, err := c.log.Append(try, last, id(), append([]byte{epochMessage}, b...))
	if errors.Is(err, stream.ErrLost) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err := c.setPosition(position{Applied: seq, Epoch: epoch + 1, Led: true}); err != nil {
		return 0, err
	}
	c.begin(seq, epoch+1)
	return epoch + 1, nil
}

// take takes one message of the log.
func (f *follower) take(ctx context.Context, at uint64, data []byte) error {
	c := f.c
	m, err := parseMessage(data)
	if err != nil {
		return err
	}
	p := c.position()
	switch {
	case m.begin != nil:
		f.since = time.Now()
		if m.begin.Copy && m.begin.Hub != c.c.Self.Name {
			return fmt.Errorf("%w: %s leads with a state that is not in the log", errCopy, m.begin.Hub)
		}
		p.Epoch, p.Applied = m.epoch, at
		if err := c.setPosition(p); err != nil {
			return err
		}
		c.batch = 0
	case m.epoch != p.Epoch:
		return fmt.Errorf("%w: a message of epoch %d in epoch %d", errCopy, m.epoch, p.Epoch)
	default:
		if m.first {
			c.batch = at
		}
		if c.batch == 0 {
			return fmt.Errorf("%w: a batch has no beginning", errCopy)
		}
		if !m.last {
			break
		}
		var batch io.Reader = bytes.NewReader(m.data)
		if c.batch != at {
			batch = &parts{ctx: ctx, log: c.log, next: c.batch, last: at}
		}
		if err := c.files.Apply(ctx, batch, at <= p.Until); err != nil {
			return err
		}
		p.Applied = at
		if err := c.setPosition(p); err != nil {
			return err
		}
		c.batch = 0
	}
	c.cursor = at
	return nil
}

// parts reads a batch of several messages from the log.
type parts struct {
	ctx        context.Context
	log        *stream.Log
	next, last uint64
	left       []byte
}

func (p *parts) Read(b []byte) (int, error) {
	for len(p.left) == 0 {
		if p.next > p.last {
			return 0, io.EOF
		}
		data, at, ok, err := p.log.Read(p.ctx, p.next)
		if err != nil {
			return 0, err
		}
		if !ok || at != p.next {
			return 0, fmt.Errorf("message %d of the log is not there", p.next)
		}
		m, err := parseMessage(data)
		if err != nil {
			return 0, err
		}
		p.left = m.data
		p.next++
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}
