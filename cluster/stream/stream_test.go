package stream_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"corpus-git/cluster/natstest"
	"corpus-git/cluster/stream"
)

func open(t *testing.T, s *natstest.Servers, i int) (*stream.Log, *nats.Conn) {
	t.Helper()
	c, err := s.Connect(i)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	l, err := stream.Open(t.Context(), c)
	require.NoError(t, err)
	return l, c
}

// read returns the message with a number, when it has arrived.
func read(t *testing.T, l *stream.Log, seq uint64) string {
	t.Helper()
	for {
		data, at, ok, err := l.Read(t.Context(), seq)
		if err == nil && ok {
			require.Equal(t, seq, at)
			return string(data)
		}
		require.NoError(t, t.Context().Err())
		time.Sleep(10 * time.Millisecond)
	}
}

// state returns the extent of the log once a server orders it.
func state(t *testing.T, l *stream.Log) stream.State {
	t.Helper()
	for {
		s, err := l.State(t.Context())
		if err == nil && s.Leader != "" {
			return s
		}
		require.NoError(t, t.Context().Err())
		time.Sleep(10 * time.Millisecond)
	}
}

// Of two writers one succeeds; two servers go on without the third, and one alone does not; a server that comes back has everything.
func TestLog(t *testing.T) {
	ctx := t.Context()
	s := natstest.Start(t)
	a, ca := open(t, s, 0)
	b, _ := open(t, s, 1)
	say(t, a, b, ca)
	first := state(t, a)
	require.Greater(t, first.First, first.Last)

	n, err := a.Append(ctx, 0, "a", []byte("one"))
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	n, err = b.Append(ctx, 1, "b", []byte("two"))
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	_, err = a.Append(ctx, 1, "c", []byte("late"))
	require.ErrorIs(t, err, stream.ErrLost)
	n, err = b.Append(ctx, 1, "b", []byte("two"))
	require.NoError(t, err, "sent again, it is the same message")
	require.EqualValues(t, 2, n)
	c, _ := open(t, s, 2)
	require.Equal(t, "two", read(t, c, 2))

	// The one that orders the log lets another one do it, and then one that does is stopped.
	before := state(t, b).Leader
	require.NoError(t, b.StepDown(ctx, "not "+before))
	require.NoError(t, b.StepDown(ctx, before))
	for state(t, b).Leader == before {
		time.Sleep(10 * time.Millisecond)
	}
	leads := state(t, b).Leader
	for i := range 3 {
		if s.Name(i) == leads {
			s.Stop(i)
		}
	}
	n, err = b.Append(ctx, 2, "d", []byte("three"))
	require.NoError(t, err)
	require.EqualValues(t, 3, n, "the numbers go on")
	require.Equal(t, "one", read(t, b, 1))

	// Everything is there after all were stopped; what a minority is asked to append is not acknowledged.
	for i := range 3 {
		s.Stop(i)
	}
	s.Restart(2)
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err = c.Append(short, 3, "e", []byte("alone"))
	require.ErrorContains(t, err, "no majority")
	s.Restart(0)
	require.Equal(t, "three", read(t, c, 3))
	n, err = c.Append(ctx, 3, "f", []byte("four"))
	if err != nil { // what the minority was asked may be stored now
		require.ErrorIs(t, err, stream.ErrLost)
		require.Equal(t, "alone", read(t, c, 4))
	} else {
		require.EqualValues(t, 4, n)
	}
	s.Restart(1)

	require.NoError(t, c.Shorten(ctx, 3))
	require.EqualValues(t, 3, state(t, c).First)
	data, at, ok, err := c.Read(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, "three 3 true", fmt.Sprint(string(data), " ", at, " ", ok))
}

// say checks that messages that are stored nowhere arrive, and that requests are answered.
func say(t *testing.T, a, b *stream.Log, ca *nats.Conn) {
	t.Helper()
	heard := make(chan string, 1)
	stop, err := a.Hear("x", func(data []byte) { heard <- string(data) })
	require.NoError(t, err)
	defer stop()
	end, err := a.Answer("y", 2, func(data []byte) []byte { return append(data, '!') })
	require.NoError(t, err)
	defer end()
	require.NoError(t, ca.Flush())
	for said := ""; said == ""; { // the servers tell each other about subscriptions
		require.NoError(t, b.Say("x", []byte("hello")))
		select {
		case said = <-heard:
			require.Equal(t, "hello", said)
		case <-time.After(10 * time.Millisecond):
		}
	}
	answer, err := b.Ask(t.Context(), "y", []byte("hello"))
	require.NoError(t, err)
	require.Equal(t, "hello!", string(answer))
}
