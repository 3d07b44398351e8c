package machines

import (
	"context"
	"slices"
	"strings"
	"time"

	"corpus-git/internal/fault"
)

// The key of an agent that was copied, as with the image of a machine, is used by two agents. Orders would reach the one or the other, and the hub would take both for one
// node. So each run of an agent identifies itself when it connects. A new one replaces the streams that wait of the last one; an agent that is still there offers others at once,
// and is known by that. (A connection whose machine lost its power does not: it may stay for minutes, beside that of the machine's next start.) The last one's connections over which the hub opens streams
// are asked for a sign of life, and ended if there is none.

// announced says which process is at the other end of a connection.
type announced struct{ connection, process string }

// origin is the other end of a stream, or of a connection over which streams are opened. Its fields are held with Fleet.mu.
type origin struct {
	// from is its connection, process which one of the node's agent it is, "" if unknown.
	from, process string
	// returned: the process was still there after another one had replaced it.
	returned bool
}

// askTimeout is how long a connection of a process that was replaced may take to give a sign of life.
const askTimeout = 5 * time.Second

// remembered limits how many connections and processes of a node are remembered, maxProcess the length of a process's ID.
const (
	remembered = 32
	maxProcess = 64
)

// Announce says which process of a node's agent is at the other end of a connection; "" is one that does not say so.
func (f *Fleet) Announce(name, connection, process string) {
	if process == "" || len(process) > maxProcess {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pool(name)
	p.said = slices.DeleteFunc(p.said, func(a announced) bool { return a.connection == connection })
	p.said = last(append(p.said, announced{connection, process}))
}

func last[T any](list []T) []T { return list[max(0, len(list)-remembered):] }

// replace returns what a new stream or connection replaces, of other processes: the streams that no session uses, and the connections to ask. A process that was replaced itself, and is still there, replaces none. Called with mu held.
func (p *pool) replace(e *origin) (old []*link, ask []*caller) {
	for _, a := range p.said {
		if a.connection == e.from {
			e.process = a.process
		}
	}
	if e.process == "" {
		return nil, nil
	}
	if e.returned = slices.Contains(p.ousted, e.process); e.returned {
		return nil, nil
	}
	for _, o := range p.links {
		if p.oust(o.origin, e.process) && !o.taken {
			old = append(old, o)
		}
	}
	for _, o := range p.callers {
		if p.oust(o.origin, e.process) && !o.asked {
			o.asked = true
			ask = append(ask, o)
		}
	}
	return old, ask
}

// oust notes that the process of an end was replaced by another one, unless it was not. Called with mu held.
func (p *pool) oust(e origin, by string) bool {
	if e.process == "" || e.process == by {
		return false
	}
	if !slices.Contains(p.ousted, e.process) {
		p.ousted = last(append(p.ousted, e.process))
	}
	return true
}

// replaced ends and asks what replace has returned.
func (f *Fleet) replaced(name string, old []*link, ask []*caller) {
	for _, l := range old {
		_ = l.Close()
	}
	for _, c := range ask {
		go f.ask(name, c)
	}
}

// ask finds out whether the agent at the other end of a connection is still there.
func (f *Fleet) ask(name string, c *caller) {
	ctx, end := context.WithTimeout(context.Background(), askTimeout)
	err := c.Ask(ctx)
	end()
	f.mu.Lock()
	p := f.pool(name)
	c.asked = false
	if c.returned = err == nil; !c.returned {
		p.hangUp(c)
	}
	p.wake()
	twice := p.machines()
	f.mu.Unlock()
	if err != nil {
		c.End("another process of the agent has connected, and this one does not respond: " + err.Error())
		return
	}
	f.warn(name, twice)
}

// asking reports that it is being found out whether an agent is still there. Called with mu held.
func (p *pool) asking() bool {
	return slices.ContainsFunc(p.callers, func(c *caller) bool { return c.asked })
}

// warn logs that several agents use the key of a node.
func (f *Fleet) warn(name string, from []string) {
	if len(from) > 1 {
		f.Log.Warn().Str("node", name).Strs("from", from).Msg("two agents use the key of one node: it is not deployed to")
	}
}

// machines returns the addresses of the agents that use the key of a node at the same time, if there are several. Called with mu held.
func (p *pool) machines() (at []string) {
	back, of := false, map[string]string{}
	note := func(e origin) {
		if e.process != "" {
			of[e.process] = e.from
			back = back || e.returned
		}
	}
	for _, l := range p.links {
		note(l.origin)
	}
	for _, c := range p.callers {
		note(c.origin)
	}
	if !back || len(of) < 2 {
		return nil
	}
	for _, from := range of {
		at = append(at, from)
	}
	slices.Sort(at)
	return at
}

// copied is the error of a node of which several agents are connected.
func copied(name string, at []string) error {
	return fault.New(fault.Refused, "", "%d agents use the key of %s at the same time, from %s, as after its machine was copied: stop one of them", len(at), name, strings.Join(at, " and ")).
		WithHint("join the other machine as a node of its own:  corpus-git node token NAME")
}
