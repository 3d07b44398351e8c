package member

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"

	"corpus-git/cluster"
	"corpus-git/fleet/broker"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// Size is the number of hubs of a cluster.
const Size = 3

// Member is a hub, and what the others know of the NATS server beside it.
type Member struct {
	cluster.Hub
	// Route is HOST:PORT at which the other NATS servers reach that of this hub.
	Route string `json:"route"`
	// Users and Certificate are those of its NATS server; empty before the machine has joined.
	Users       broker.Users `json:"users"`
	Certificate string       `json:"certificate,omitempty"`
	// Joined reports that the machine has all that it needs.
	Joined bool `json:"joined"`
}

// List is the hubs, as in layout.State.ClusterHubs. It contains no secret.
type List struct {
	// Formed reports that there have been as many hubs as a cluster has: from then on they share their state, also while one of them is replaced.
	Formed bool     `json:"formed"`
	Hubs   []Member `json:"hubs"`
	// Retired are the users of NATS of hubs that were removed.
	Retired []string `json:"retired,omitempty"`
}

// Self is which of the hubs a machine is, as in layout.State.ClusterSelf.
type Self struct {
	Name string `json:"name"`
	// Founder means that this machine's state is the one that the others copy first: it serves alone until they do.
	Founder bool `json:"founder"`
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// check returns what is wrong with a hub that a person describes: fault.Usage.
func (m Member) check() error {
	if !validName.MatchString(m.Name) {
		return fault.New(fault.Usage, "", "%q is not a valid name of a hub", printable.Clip(m.Name, 100)).WithHint("small letters, digits and hyphens, such as  hub2")
	}
	for _, at := range []struct{ flag, text string }{{"--ssh", m.SSH}, {"--http", m.HTTP}, {"--route", m.Route}} {
		if at.text == "" && at.flag == "--http" {
			continue
		}
		if err := checkAddress(at.flag, at.text); err != nil {
			return err
		}
	}
	host, _, err := broker.Parse(m.NATS)
	if err == nil && !validHost.MatchString(host) {
		err = fault.New(fault.Usage, "", "--nats: %q is not a host", printable.Clip(host, 100))
	}
	return err
}

func checkAddress(flag, text string) error {
	host, port, err := net.SplitHostPort(text)
	if n, perr := strconv.Atoi(port); err != nil || perr != nil || n <= 0 || n > 65535 || !validHost.MatchString(host) {
		return fault.New(fault.Usage, "", "%s %q is not HOST:PORT", flag, printable.Clip(text, 100)).WithHint("where the other hubs reach it, such as  hub2.example.org:2222")
	}
	return nil
}

var validHost = regexp.MustCompile(`^[A-Za-z0-9.:_-]{1,253}$`)

// server returns a member as its NATS server is configured.
func (m Member) server() broker.Server {
	return broker.Server{Name: m.Name, Address: m.NATS, Route: m.Route, Users: m.Users, Certificate: m.Certificate}
}

// Find returns the index of a hub, -1 if there is none.
func (l List) Find(name string) int {
	return slices.IndexFunc(l.Hubs, func(m Member) bool { return m.Name == name })
}

// Known returns the hubs that have joined.
func (l List) Known() (out []cluster.Hub) {
	for _, m := range l.Hubs {
		if m.Joined {
			out = append(out, m.Hub)
		}
	}
	return out
}

// Addresses returns the addresses of the NATS servers of the hubs that have joined, that of the hub own first.
func (l List) Addresses(own string) (out []string) {
	for _, m := range l.Hubs {
		switch {
		case m.Name == own:
			out = slices.Insert(out, 0, m.NATS)
		case m.Joined:
			out = append(out, m.NATS)
		}
	}
	return out
}

func (l List) servers() (out []broker.Server) {
	for _, m := range l.Hubs {
		if m.Joined {
			out = append(out, m.server())
		}
	}
	return out
}

// Load reads the list of hubs; it is empty on a machine that has no others.
func Load(state layout.State) (l List, err error) {
	_, err = readJSON(state.ClusterHubs(), &l)
	return l, err
}

// LoadSelf reads which hub this machine is; ok is false if it has no others.
func LoadSelf(state layout.State) (s Self, ok bool, err error) {
	ok, err = readJSON(state.ClusterSelf(), &s)
	return s, ok, err
}

// Founded records that this machine's state is no longer the first one: the hubs have one in common. Durable on return.
func Founded(state layout.State) error {
	s, ok, err := LoadSelf(state)
	if err != nil || !ok || !s.Founder {
		return err
	}
	return writeJSON(state, state.ClusterSelf(), Self{Name: s.Name})
}

func readJSON(path string, v any) (there bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return false, fault.New(fault.Internal, path, "%w", err)
	}
	return true, nil
}

// writeJSON is durable on return.
func writeJSON(state layout.State, path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = vfs.MkdirAll(vfs.OS{}, state.Cluster(), 0o700)
	}
	if err == nil {
		err = vfs.WriteFileAtomic(vfs.OS{}, path, append(text, '\n'), 0o600)
	}
	return err
}

// Configure writes the configuration of the NATS server beside this hub, of the hubs that have joined, where there is a cluster. changed reports that the NATS server has to read it.
func Configure(state layout.State) (path string, changed bool, err error) {
	l, err := Load(state)
	if err != nil || !l.Formed {
		return "", false, err
	}
	self, _, err := LoadSelf(state)
	if err != nil {
		return "", false, err
	}
	return broker.Configure(state.NATS(), state.JetStream(), self.Name, l.servers(), l.Retired)
}
