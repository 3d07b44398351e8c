package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	name    = "HUBS"
	prefix  = "hubs."
	subject = prefix + "log"
	// replicas is the number of servers that store each message.
	replicas = 3
	// window is how long the log recognizes a message that is sent again.
	window = 2 * time.Minute
	// try is how long one attempt waits for an answer, and pause how long it waits before the next one.
	try   = 2 * time.Second
	pause = 100 * time.Millisecond
	// largest limits a message, in bytes; overhead is what a message has in addition to its data.
	largest, overhead = 512 << 10, 4 << 10
	// absent is how long nothing is heard of a server that does not have the whole log before State says so.
	absent = 5 * time.Second
	// wrongLast is a code of nats-server for "wrong last sequence" that the client does not name.
	wrongLast = 10164
)

// ErrLost means that another hub has appended to the log.
var ErrLost = errors.New("another hub has written to the log of the hubs")

// Log is the log as one hub sees it. Its methods are safe for concurrent use.
type Log struct {
	conn *nats.Conn
	js   nats.JetStreamContext
}

// Open returns the log, which is created if it is missing: that needs three servers. It tries until ctx ends. The caller closes conn.
func Open(ctx context.Context, conn *nats.Conn) (*Log, error) {
	js, err := conn.JetStream()
	if err != nil {
		return nil, err
	}
	l := &Log{conn: conn, js: js}
	err = retry(ctx, func(ctx context.Context) error {
		_, err := js.StreamInfo(name, nats.Context(ctx))
		if !errors.Is(err, nats.ErrStreamNotFound) {
			return err
		}
		_, err = js.AddStream(&nats.StreamConfig{
			Name: name, Subjects: []string{subject}, Storage: nats.FileStorage, Replicas: replicas, AllowDirect: true, Duplicates: window, Description: "the changes of the hubs' state",
		}, nats.Context(ctx))
		if errors.Is(err, nats.ErrStreamNameAlreadyInUse) {
			return nil
		}
		return err
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("the log of the hubs in JetStream: %w", err)
	}
	return l, nil
}

// explained replaces errors of the client that say what it does and not what is the matter.
func explained(err error) error {
	switch {
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		return fmt.Errorf("no NATS server of the hubs can be reached (%w)", err)
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("nothing answers at the NATS servers of the hubs (%w)", err)
	}
	return err
}

// retry calls f until it succeeds, has an error that is final, or ctx ends.
func retry(ctx context.Context, f func(ctx context.Context) error, final func(error) bool) error {
	for {
		once, cancel := context.WithTimeout(ctx, try)
		err := explained(f(once))
		cancel()
		if err == nil || errors.Is(err, nats.ErrConnectionClosed) || final != nil && final(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// MaxMessage returns the size that a message may have, in bytes.
func (l *Log) MaxMessage() int { return min(largest, int(l.conn.MaxPayload())-overhead) }

// Append appends a message after the message last, and returns its number. A majority has stored it on return. ErrLost means that the log does not end with last. It tries
// again until ctx ends: then the message may have been appended or not. The id, unique for each message, makes that safe.
func (l *Log) Append(ctx context.Context, last uint64, id string, data []byte) (seq uint64, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		ack, err := l.js.PublishMsg(&nats.Msg{Subject: subject, Data: data}, nats.MsgId(id), nats.ExpectLastSequence(last), nats.Context(ctx))
		if err == nil {
			seq = ack.Sequence
			return nil
		}
		var refused *nats.APIError
		if !errors.As(err, &refused) || refused.ErrorCode != nats.JSErrCodeStreamWrongLastSequence && refused.ErrorCode != wrongLast {
			return err
		}
		// An earlier attempt may have been stored although its acknowledgement was lost.
		m, gerr := l.get(ctx, last+1)
		switch {
		case gerr != nil:
			return errors.Join(err, gerr)
		case m.Sequence == last+1 && m.Header.Get(nats.MsgIdHdr) == id:
			seq = m.Sequence
			return nil
		}
		return ErrLost
	}, func(err error) bool { return errors.Is(err, ErrLost) })
	if err != nil && !errors.Is(err, ErrLost) {
		err = fmt.Errorf("no majority of the NATS servers has stored it: %w", err)
	}
	return seq, err
}

// get returns the message with a number, or the next one that there is.
func (l *Log) get(ctx context.Context, seq uint64) (*nats.RawStreamMsg, error) {
	return l.js.GetMsg(name, seq, nats.DirectGetNext(subject), nats.Context(ctx))
}

// Read returns the first message whose number is at least seq. ok is false if the server that answered has none; it may be behind the others.
func (l *Log) Read(ctx context.Context, seq uint64) (data []byte, at uint64, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, try)
	defer cancel()
	m, err := l.get(ctx, seq)
	if errors.Is(err, nats.ErrMsgNotFound) {
		return nil, 0, false, nil
	}
	if err != nil {
		return nil, 0, false, explained(err)
	}
	return m.Data, m.Sequence, true, nil
}

// State is the extent of the log.
type State struct {
	// First and Last are the numbers of the first and last message; First is greater than Last if there are none.
	First, Last uint64
	Bytes       uint64
	// Leader is the name of the NATS server that orders the messages, "" if none does.
	Leader string
	// Missing are the names of the servers that do not have all of it, or do not answer.
	Missing []string
}

// State returns the extent of the log, as the server that orders it knows it.
func (l *Log) State(ctx context.Context) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, try)
	defer cancel()
	info, err := l.js.StreamInfo(name, nats.Context(ctx))
	if err != nil {
		return State{}, explained(err)
	}
	s := State{First: info.State.FirstSeq, Last: info.State.LastSeq, Bytes: info.State.Bytes}
	if info.Cluster != nil {
		s.Leader = info.Cluster.Leader
		for _, p := range info.Cluster.Replicas {
			if p.Offline || !p.Current && p.Active > absent {
				s.Missing = append(s.Missing, p.Name)
			}
		}
	}
	if s.First == 0 {
		s.First = 1
	}
	return s, nil
}

// Shorten removes the messages before a number.
func (l *Log) Shorten(ctx context.Context, before uint64) error {
	ctx, cancel := context.WithTimeout(ctx, try)
	defer cancel()
	return l.js.PurgeStream(name, &nats.StreamPurgeRequest{Sequence: before}, nats.Context(ctx))
}

// StepDown lets another NATS server order the log, if the named one does: so that the end of the machine on which the writer runs, too, does not interrupt the log. to are servers, of which
// the first that can is preferred.
func (l *Log) StepDown(ctx context.Context, server string, to ...string) error {
	s, err := l.State(ctx)
	if err != nil || s.Leader != server {
		return err
	}
	for _, preferred := range append(to, "") {
		var request []byte
		if preferred != "" {
			request, err = json.Marshal(map[string]any{"placement": map[string]string{"preferred": preferred}})
			if err != nil {
				return err
			}
		}
		if err = l.stepDown(ctx, request); err == nil {
			return nil
		}
	}
	return err
}

func (l *Log) stepDown(ctx context.Context, request []byte) error {
	ctx, cancel := context.WithTimeout(ctx, try)
	defer cancel()
	m, err := l.conn.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+name, request)
	if err != nil {
		return err
	}
	var answer struct {
		Error *nats.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}

// Say sends a message to all hubs that listen; it is stored nowhere.
func (l *Log) Say(topic string, data []byte) error { return l.conn.Publish(prefix+topic, data) }

// Flush returns when what was said has reached a NATS server.
func (l *Log) Flush(ctx context.Context) error { return l.conn.FlushWithContext(ctx) }

// Hear calls f for each message of Say, one at a time, until stop is called.
func (l *Log) Hear(topic string, f func(data []byte)) (stop func(), err error) {
	s, err := l.conn.Subscribe(prefix+topic, func(m *nats.Msg) { f(m.Data) })
	if err != nil {
		return nil, err
	}
	return func() { _ = s.Unsubscribe() }, nil
}

// Ask sends a request, and returns the answer.
func (l *Log) Ask(ctx context.Context, topic string, data []byte) ([]byte, error) {
	m, err := l.conn.RequestWithContext(ctx, prefix+topic, data)
	if err != nil {
		return nil, explained(err)
	}
	return m.Data, nil
}

// Answer answers the requests of Ask, at most limit at a time, until stop is called.
func (l *Log) Answer(topic string, limit int, f func(data []byte) []byte) (stop func(), err error) {
	slots := make(chan struct{}, limit)
	s, err := l.conn.Subscribe(prefix+topic, func(m *nats.Msg) {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			_ = m.Respond(f(m.Data)) // whoever asked asks again
		}()
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = s.Unsubscribe() }, nil
}
