//go:build fleet

package main

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"
)

// fault is one thing that happens to a machine, and for how long.
type fault struct {
	after, span time.Duration
	what        string // as in crashedCluster.did
	hub, agent  int    // which of them; -1 for none
	in, out     bool   // of a cut: the directions
}

// draw chooses the faults of a round: nothing is chosen while they happen, so that a seed chooses the same ones.
func (c *crashedCluster) draw() (out []fault) {
	at := time.Duration(0)
	for range 1 + c.rng.IntN(3) {
		at += time.Duration(c.rng.IntN(1500)) * time.Millisecond
		f := fault{after: at, hub: -1, agent: -1}
		f.in, f.out = true, true
		if way := c.rng.IntN(4); way < 2 {
			f.in, f.out = way == 0, way == 1
		}
		if c.rng.IntN(5) < 2 {
			f.agent = c.rng.IntN(len(c.agents))
			f.what = []string{"kill agent", "freeze agent", "cut agent"}[c.rng.IntN(3)]
			f.span = time.Duration(c.rng.IntN(1500)) * time.Millisecond
			if c.rng.IntN(40) == 0 {
				f.span += 35 * time.Second // longer than keepalives take
			}
		} else {
			f.hub = c.rng.IntN(3)
			f.what = []string{"kill hub", "freeze hub", "kill nats", "freeze nats", "kill machine", "freeze machine", "cut hub", "part hub"}[c.rng.IntN(8)]
			f.span = time.Duration(c.rng.IntN(1500)) * time.Millisecond
			switch n := c.rng.IntN(30); {
			case n == 0:
				f.span += 17 * time.Second // longer than a leader goes on without a majority
			case n < 15:
				f.span += time.Duration(2+c.rng.IntN(5)) * time.Second // longer than the others wait for it
			case n == 15:
				f.what = "kill all hubs"
			}
		}
		out = append(out, f)
	}
	return out
}

// trouble lets the faults happen, those of different machines at a time, and returns when all have ended.
func (c *crashedCluster) trouble(faults []fault) {
	var all sync.WaitGroup
	begun := time.Now()
	errs := make([]error, len(faults))
	for i, f := range faults {
		c.did[f.what]++
		all.Go(func() {
			time.Sleep(time.Until(begun.Add(f.after)))
			errs[i] = c.happen(f)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			c.fail("%v", err)
		}
	}
}

func (c *crashedCluster) happen(f fault) error {
	var programs []*program
	var at *place
	var name string
	switch {
	case f.what == "kill all hubs":
		name = "all"
		for _, h := range c.hubs {
			programs = append(programs, h.nats)
		}
		for _, h := range c.hubs {
			programs = append(programs, h.hub)
		}
	case f.agent >= 0:
		a := c.agents[f.agent]
		programs, at, name = []*program{a.run}, a.at, a.name
	default:
		h := c.hubs[f.hub]
		at, name = h.at, h.name
		programs = map[string][]*program{"kill hub": {h.hub}, "freeze hub": {h.hub}, "kill nats": {h.nats}, "freeze nats": {h.nats}}[f.what]
		if programs == nil {
			programs = []*program{h.nats, h.hub}
		}
	}
	// In the order of the list, so that none waits for another one that waits for it.
	for _, p := range c.programs() {
		if slices.Contains(programs, p) {
			p.mu.Lock()
			defer p.mu.Unlock()
		}
	}
	c.note("%s %s for %s, in %v, out %v", f.what, name, f.span, f.in, f.out)
	defer c.note("end of %s %s", f.what, name)
	var err error
	switch f.what {
	case "kill hub", "kill nats", "kill machine", "kill agent", "kill all hubs":
		for _, p := range programs {
			p.kill()
		}
		time.Sleep(f.span)
		for _, p := range programs {
			c.start(p)
		}
	case "freeze hub", "freeze nats", "freeze machine", "freeze agent":
		for _, p := range programs {
			_ = p.cmd.Process.Signal(syscall.SIGSTOP)
		}
		time.Sleep(f.span)
		for _, p := range programs {
			_ = p.cmd.Process.Signal(syscall.SIGCONT)
		}
	case "cut hub", "cut agent":
		err = c.cut(at, f)
	case "part hub": // its agents and clients reach it, the other hubs do not
		var others []string
		for i, h := range c.hubs {
			if i != f.hub {
				others = append(others, h.at.ip)
			}
		}
		err = c.cut(at, f, others...)
	default:
		err = fmt.Errorf("no fault %q", f.what)
	}
	return err
}

func (c *crashedCluster) cut(at *place, f fault, others ...string) error {
	if err := at.cut(f.in, f.out, others...); err != nil {
		return err
	}
	time.Sleep(f.span)
	return at.restore()
}
