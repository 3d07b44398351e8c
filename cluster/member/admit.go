package member

import (
	"os"
	"slices"
	"sync"

	"corpus-git/fleet/broker"
	"corpus-git/internal/fault"
	"corpus-git/layout"
)

// Admission adds and removes hubs, on a hub that is there. Its methods are safe for concurrent use; each is durable on return.
type Admission struct {
	State layout.State

	mu sync.Mutex
}

// Request is what a machine that joins sends. It contains no secret.
type Request struct {
	broker.Own
}

// Answer is what it is given. It contains secrets, unless it has joined already.
type Answer struct {
	List    List           `json:"list"`
	Joined  bool           `json:"joined"`
	Granted broker.Granted `json:"granted,omitzero"`
	// HostKeys are the ssh host keys of the hubs, which are the same: the type of each and its file.
	HostKeys map[string][]byte `json:"host_keys,omitempty"`
}

// Add adds a hub that has not joined yet. own is this hub, in case that it has no others yet: then it becomes the founder, and first is true. A hub that was added and is not needed by
// the others yet can be added again.
func (a *Admission) Add(own, m Member) (l List, first bool, err error) {
	if err := m.check(); err != nil {
		return l, false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if l, err = Load(a.State); err != nil {
		return l, false, err
	}
	if first = len(l.Hubs) == 0; first {
		if err := a.begin(&l, own); err != nil {
			return l, first, err
		}
	}
	if at := l.Find(m.Name); at >= 0 {
		self, _, err := LoadSelf(a.State)
		switch {
		case err != nil:
			return l, first, err
		case m.Name == self.Name:
			return l, first, fault.New(fault.Refused, "", "this hub is %s", m.Name)
		case l.Formed && l.Hubs[at].Joined:
			return l, first, fault.New(fault.Refused, "", "%s is a hub already", m.Name).WithHint("if its machine is lost:  corpus-git hub remove %s --yes  first", m.Name)
		}
		l.Hubs = slices.Delete(l.Hubs, at, at+1)
	}
	if len(l.Hubs) >= Size {
		return l, first, fault.New(fault.Refused, "", "there are %d hubs already", Size).WithHint("remove the one that is to be replaced:  corpus-git hub remove NAME --yes")
	}
	for _, other := range l.Hubs {
		for _, same := range [][2]string{{m.SSH, other.SSH}, {m.NATS, other.NATS}, {m.Route, other.Route}, {m.HTTP, other.HTTP}} {
			if same[0] != "" && same[0] == same[1] {
				return l, first, fault.New(fault.Refused, "", "%s is the address of %s", same[0], other.Name)
			}
		}
	}
	m.Joined, m.Users, m.Certificate = false, broker.Users{}, ""
	l.Hubs = append(l.Hubs, m)
	return l, first, writeJSON(a.State, a.State.ClusterHubs(), l)
}

// begin makes this hub the first one of the list.
func (a *Admission) begin(l *List, own Member) error {
	if err := own.check(); err != nil {
		return err
	}
	if _, err := broker.Load(a.State.NATS()); err != nil {
		return err
	}
	said, err := broker.Prepare(a.State.NATS(), own.NATS, own.Route)
	if err != nil {
		return err
	}
	if _, err := broker.Authorize(a.State.NATS()); err != nil {
		return err
	}
	own.Users, own.Certificate, own.Joined = said.Users, said.Certificate, true
	l.Hubs = []Member{own}
	// Which hub it is becomes durable first: without a list it means nothing.
	return writeJSON(a.State, a.State.ClusterSelf(), Self{Name: own.Name, Founder: true})
}

// Admit gives a machine that has shown the token of a hub what it needs. One that has joined is given the list only.
func (a *Admission) Admit(name string, q Request) (out Answer, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, err := Load(a.State)
	if err != nil {
		return out, err
	}
	at := l.Find(name)
	if at < 0 {
		return out, fault.New(fault.Refused, "", "%s is not one of the hubs", name)
	}
	if l.Hubs[at].Joined {
		return Answer{List: l, Joined: true}, nil
	}
	m := &l.Hubs[at]
	if err := q.Check(m.Route); err != nil {
		return out, err
	}
	for i, other := range l.Hubs {
		for _, name := range q.Users.All() {
			if i != at && slices.Contains(other.Users.All(), name) || slices.Contains(l.Retired, name) {
				return out, fault.New(fault.Refused, "", "its keys for NATS are those of another hub")
			}
		}
		if i != at && other.Certificate == q.Certificate {
			return out, fault.New(fault.Refused, "", "its certificate is that of another hub")
		}
	}
	if q.Users.Hub == q.Users.System || q.Users.Hub == q.Users.Log || q.Users.System == q.Users.Log {
		return out, fault.New(fault.Refused, "", "its keys for NATS are not three")
	}
	if out.Granted, err = broker.Grant(a.State.NATS(), m.NATS, q.Request); err != nil {
		return out, err
	}
	out.HostKeys = map[string][]byte{}
	for path := range hostKeys(a.State) {
		if out.HostKeys[hostKeys(a.State)[path]], err = os.ReadFile(path); err != nil {
			return out, err
		}
	}
	m.Users, m.Certificate = q.Users, q.Certificate
	out.List = l
	return out, writeJSON(a.State, a.State.ClusterHubs(), l)
}

// hostKeys returns the files of the ssh host keys, and the types of keys.
func hostKeys(state layout.State) map[string]string {
	return map[string]string{state.HostKey(): "ed25519", state.HostKeyECDSA(): "ecdsa"}
}

// Joined records that a machine has all that it needs. When it is the last one the hubs are formed, and the configuration of the NATS server beside this hub is written.
func (a *Admission) Joined(name string) (l List, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l, err = Load(a.State); err != nil {
		return l, err
	}
	at := l.Find(name)
	if at < 0 || l.Hubs[at].Certificate == "" {
		return l, fault.New(fault.Refused, "", "%s was not admitted", name)
	}
	if !l.Hubs[at].Joined {
		l.Hubs[at].Joined = true
		l.Formed = l.Formed || len(l.Known()) == Size
		if err := writeJSON(a.State, a.State.ClusterHubs(), l); err != nil {
			return l, err
		}
	}
	_, _, err = Configure(a.State)
	return l, err
}

// Remove removes a hub from the list; its keys are not accepted any more when the NATS servers of the others have read their configuration.
func (a *Admission) Remove(name string) (l List, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l, err = Load(a.State); err != nil {
		return l, err
	}
	self, _, err := LoadSelf(a.State)
	if err != nil {
		return l, err
	}
	at := l.Find(name)
	switch {
	case at < 0:
		return l, fault.New(fault.Refused, "", "%s is not one of the hubs", name).WithHint("corpus-git hub list")
	case name == self.Name:
		return l, fault.New(fault.Refused, "", "%s is this hub: another one that leads can remove it", name).WithHint("stop this hub in order: another one leads at once, and can remove it")
	case l.Formed && l.Hubs[at].Joined && len(l.Known()) < Size:
		return l, fault.New(fault.Refused, "", "only two hubs are left: without %s there is no majority", name).WithHint("add the third one first:  corpus-git hub add NAME --ssh HOST:PORT --nats tls://HOST:PORT")
	}
	for _, user := range l.Hubs[at].Users.All() {
		if user != "" && l.Formed {
			l.Retired = append(l.Retired, user)
		}
	}
	l.Hubs = slices.Delete(l.Hubs, at, at+1)
	if err := writeJSON(a.State, a.State.ClusterHubs(), l); err != nil {
		return l, err
	}
	_, _, err = Configure(a.State)
	return l, err
}
