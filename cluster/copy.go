package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/nats-io/nats.go"

	"corpus-git/cluster/replica"
	"corpus-git/cluster/stream"
)

const (
	// copyLimit is how many requests of hubs that copy are answered at a time.
	copyLimit = 8
	// listLimit is how many names an answer has.
	listLimit = 400
	// asking limits the wait for an answer, in which the leader may ship everything, or read a large file. A request, or its answer, is lost if a connection is while it is under way: then it
	// is sent again, after askAgain and a few times that. All requests may be repeated.
	asking   = time.Minute
	askAgain = 2 * time.Second
	// forgotten is how long nothing is heard of a hub that copies before it counts as gone.
	forgotten = 5 * time.Minute
)

// What a hub that copies asks for.
const (
	copyBegin = "begin" // ship everything; the answer is a place
	copyEnd   = "end"   // likewise, at the end
	copyItems = "items"
	copySum   = "sum"
	copyPart  = "part"
)

// copyRequest is a request of a hub that copies.
type copyRequest struct {
	Hub   string       `json:"hub"`
	Op    string       `json:"op"`
	Name  replica.Text `json:"name,omitempty"`
	After replica.Text `json:"after,omitempty"`
	At    int64        `json:"at,omitempty"`
	Bare  bool         `json:"bare,omitempty"`
}

// copyPlace is a place in the log.
type copyPlace struct {
	Seq   uint64 `json:"seq"`
	Epoch uint64 `json:"epoch"`
}

type copyList struct {
	Items []replica.Item `json:"items"`
	More  bool           `json:"more,omitempty"`
}

// An answer begins with one of these.
const (
	answerOK     = 'o'
	answerAbsent = 'n'
	answerError  = 'e'
)

// answer answers one request.
func (l *Leader) answer(data []byte) []byte {
	out, err := l.answers(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []byte{answerAbsent}
	case err != nil:
		return append([]byte{answerError}, err.Error()...)
	}
	return append([]byte{answerOK}, out...)
}

func (l *Leader) answers(data []byte) ([]byte, error) {
	var r copyRequest
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	if l.ended() {
		return nil, ErrLost
	}
	name := string(r.Name)
	f := l.c.files
	switch r.Op {
	case copyBegin:
		return l.copyBegins(r.Hub)
	case copyEnd:
		return l.place(replica.Scope{All: true}, func() { l.copies(r.Hub, false) })
	case copyItems:
		l.copies(r.Hub, true)
		items, more, err := f.Items(name, string(r.After), listLimit, r.Bare)
		if err != nil {
			return nil, err
		}
		return json.Marshal(copyList{items, more})
	case copySum:
		return f.Sum(name)
	case copyPart:
		return f.Part(name, r.At, l.c.log.MaxMessage()-1)
	}
	return nil, fmt.Errorf("this version does not know the request %q", r.Op)
}

// copies notes that a hub copies, or has ended.
func (l *Leader) copies(hub string, does bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if does {
		l.copying[hub] = time.Now()
	} else {
		delete(l.copying, hub)
	}
	for h, at := range l.copying {
		if time.Since(at) > forgotten {
			delete(l.copying, h)
		}
	}
}

// copyBegins ships everything and moves it into the database's file, so that what is copied from then on, together with the log from then on, is everything.
func (l *Leader) copyBegins(hub string) ([]byte, error) {
	l.mu.Lock()
	d := l.db
	l.mu.Unlock()
	l.copies(hub, true)
	out, err := l.place(replica.Scope{All: true}, func() {})
	if err == nil && d != nil {
		ctx, cancel := context.WithTimeout(context.Background(), asking)
		defer cancel()
		err = l.checkpoint(ctx, d)
	}
	return out, err
}

// place ships a scope, and returns where the log ends then.
func (l *Leader) place(scope replica.Scope, then func()) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	err = l.ship(ctx, scope, func() error {
		then()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.source.Copied(len(l.copying) > 0)
		var err error
		out, err = json.Marshal(copyPlace{l.last, l.epoch})
		return err
	})
	return out, err
}

// copyFrom copies the state of the hub that leads.
func (c *Cluster) copyFrom(ctx context.Context, leader string) error {
	p := c.position()
	p.Copy = true
	if err := c.setPosition(p); err != nil { // from here on the state is of no use
		return err
	}
	c.c.Log.Info().Str("from", leader).Msg("copying the state of the hub that leads")
	r := remote{log: c.log, leader: leader, hub: c.c.Self.Name, heard: c.Leader, listed: c.countCopied}
	begin, err := r.place(ctx, copyBegin)
	if err != nil {
		return err
	}
	c.answered()
	defer c.countCopied(math.MinInt64)
	if err := c.files.Copy(ctx, r); err != nil {
		return err
	}
	end, err := r.place(ctx, copyEnd)
	if err != nil {
		return err
	}
	if begin.Epoch != end.Epoch {
		return errors.New("another hub leads since the copy began")
	}
	if err := c.files.Prune(ctx, r); err != nil {
		return err
	}
	if err := c.setPosition(position{Applied: begin.Seq, Until: end.Seq, Epoch: begin.Epoch}); err != nil {
		return err
	}
	c.rewind()
	c.c.Log.Info().Str("from", leader).Msg("copied the state of the hub that leads")
	return nil
}

// answered ends the trouble that the hub that leads did not answer. What an attempt to copy failed by is shown until one has succeeded.
func (c *Cluster) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.trouble, nats.ErrNoResponders) {
		c.trouble = nil
	}
}

// countCopied counts what was looked at of a copy, for Status; math.MinInt64 is the end.
func (c *Cluster) countCopied(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.copied = max(0, c.copied+n)
}

// remote asks the leader.
type remote struct {
	log         *stream.Log
	leader, hub string
	heard       func() (Hub, uint64, bool)
	// listed is told how many names an answer had.
	listed func(n int64)
}

func (r remote) ask(ctx context.Context, q copyRequest) ([]byte, error) {
	q.Hub = r.hub
	b, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	var out []byte
	for limit := askAgain; ; limit *= 5 {
		if h, _, ok := r.heard(); !ok || h.Name != r.leader {
			return nil, fmt.Errorf("%s no longer leads", r.leader)
		}
		once, cancel := context.WithTimeout(ctx, min(limit, asking))
		out, err = r.log.Ask(once, copyTopic+r.leader, b)
		cancel()
		if limit >= asking || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			break
		}
	}
	switch {
	case err != nil:
		return nil, err
	case len(out) == 0:
		return nil, errors.New("an empty answer")
	case out[0] == answerAbsent:
		return nil, fs.ErrNotExist
	case out[0] == answerError:
		return nil, errors.New(string(out[1:]))
	}
	return out[1:], nil
}

func (r remote) place(ctx context.Context, op string) (p copyPlace, err error) {
	b, err := r.ask(ctx, copyRequest{Op: op})
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	return p, err
}

// Items asks for the names in a folder.
func (r remote) Items(ctx context.Context, folder, after string, bare bool) ([]replica.Item, bool, error) {
	b, err := r.ask(ctx, copyRequest{Op: copyItems, Name: replica.Text(folder), After: replica.Text(after), Bare: bare})
	if err != nil {
		return nil, false, err
	}
	var l copyList
	if err = json.Unmarshal(b, &l); err == nil && !bare {
		r.listed(int64(len(l.Items)))
	}
	return l.Items, l.More, err
}

// Sum asks for the SHA-256 of a file.
func (r remote) Sum(ctx context.Context, name string) ([]byte, error) {
	return r.ask(ctx, copyRequest{Op: copySum, Name: replica.Text(name)})
}

// Part asks for some bytes of a file.
func (r remote) Part(ctx context.Context, name string, at int64) ([]byte, error) {
	return r.ask(ctx, copyRequest{Op: copyPart, Name: replica.Text(name), At: at})
}
