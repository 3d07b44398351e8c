//go:build fleet

package main

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// wire forwards connections, until it is cut.
type wire struct {
	l  net.Listener
	to string
	mu sync.Mutex
	// open are the connections. silent: they stay open and nothing comes through; refusing: none is taken.
	open             map[net.Conn]bool
	silent, refusing bool
	moved            *sync.Cond
}

func newWire(t *testing.T, to string) *wire {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wire{l: l, to: to, open: map[net.Conn]bool{}}
	w.moved = sync.NewCond(&w.mu)
	t.Cleanup(func() { _ = l.Close(); w.cut(false); w.restore() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(c)
		}
	}()
	return w
}

func (w *wire) addr() string { return w.l.Addr().String() }

// cut ends all connections, or lets nothing through them.
func (w *wire) cut(silent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.silent = silent; silent {
		return
	}
	w.refusing = true
	for c := range w.open {
		_ = c.Close()
	}
}

func (w *wire) restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent, w.refusing = false, false
	w.moved.Broadcast()
}

func (w *wire) carry(c net.Conn) {
	defer c.Close()
	other, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer other.Close()
	w.mu.Lock()
	if w.refusing {
		w.mu.Unlock()
		return
	}
	w.open[c], w.open[other] = true, true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, c)
		delete(w.open, other)
	}()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{c, other}, {other, c}} {
		go func() {
			_, _ = io.Copy(way[0], &gate{way[1], w})
			done <- struct{}{}
		}()
	}
	<-done
}

// gate reads what may come through.
type gate struct {
	net.Conn
	w *wire
}

func (g *gate) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	for g.w.silent {
		g.w.moved.Wait()
	}
	return n, err
}
