package machines

import (
	"slices"
	"strings"

	"corpus-git/internal/fault"
)

// The key of an agent that was copied, as with the image of a machine, is used by two agents. Orders would reach the one or the other, and the hub would take both for one
// node. So each run of an agent identifies itself when it connects. A new one replaces the streams that wait of the last one; an agent that is still there offers others at once,
// and is known by that. (A connection whose machine lost its power does not: it may stay for minutes, beside that of the machine's next start.)

// announced says which process is at the other end of a connection.
type announced struct{ connection, process string }

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

// replace returns the streams that a new one replaces: those of other processes that no session uses. A process that was replaced itself, and is still there, replaces none. Called with mu held.
func (p *pool) replace(l *link) (old []*link) {
	for _, a := range p.said {
		if a.connection == l.from {
			l.process = a.process
		}
	}
	if l.process == "" {
		return nil
	}
	if l.returned = slices.Contains(p.ousted, l.process); l.returned {
		return nil
	}
	for _, o := range p.links {
		if o.process == "" || o.process == l.process {
			continue
		}
		if !slices.Contains(p.ousted, o.process) {
			p.ousted = last(append(p.ousted, o.process))
		}
		if !o.taken {
			old = append(old, o)
		}
	}
	return old
}

// machines returns the addresses of the agents that use the key of a node at the same time, if there are several. Called with mu held.
func (p *pool) machines() (at []string) {
	back, of := false, map[string]string{}
	for _, l := range p.links {
		if l.process != "" {
			of[l.process] = l.from
			back = back || l.returned
		}
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
