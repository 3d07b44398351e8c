package container

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
	"corpus-git/internal/vfs"
)

// Store is the folder with the records and root file systems of containers.
type Store struct {
	Dir string
	FS  vfs.FS
}

// Folder returns the folder of one container: its record, its root file system, its snapshots.
func (s Store) Folder(name string) string { return filepath.Join(s.Dir, "machines", name) }

// Bases returns the folder of the root file systems that are copied.
func (s Store) Bases() string { return filepath.Join(s.Dir, "bases") }

func (s Store) record(name string) string { return filepath.Join(s.Folder(name), "container.json") }

// Lock takes the lock of a container; "" means the lock of the addresses. It is fault.Busy if another process holds the lock. unlock releases it.
func (s Store) Lock(name string) (unlock func(), err error) {
	dir := filepath.Join(s.Dir, "locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, s.denied(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, name+".lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, s.denied(err)
	}
	how := syscall.LOCK_EX
	if name != "" {
		how |= syscall.LOCK_NB
	}
	if err := vfs.Flock(f, how); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fault.New(fault.Busy, "", "another command works on %s", name).WithHint("try again when it has ended")
		}
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// denied explains why the folder cannot be written to.
func (s Store) denied(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fault.New(fault.Refused, "", "%w", err).WithHint("containers need root; run the command with sudo")
	}
	return err
}

// Get finds a container; an unknown name is fault.Refused.
func (s Store) Get(name string) (Container, error) {
	if err := CheckName(name); err != nil {
		return Container{}, err
	}
	var c Container
	text, err := os.ReadFile(s.record(name))
	if errors.Is(err, fs.ErrNotExist) {
		return c, s.unknown(name)
	}
	if err != nil {
		return c, s.denied(err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fault.New(fault.Failed, "", "%s: %w", s.record(name), err)
	}
	return c, nil
}

func (s Store) unknown(name string) error {
	e := fault.New(fault.Refused, "", "there is no container %s", name)
	list, err := s.List()
	if err != nil || len(list) == 0 {
		return e.WithHint("corpus-git container create %s", name)
	}
	var names []string
	for _, c := range list {
		names = append(names, c.Name)
	}
	if near := nearest.To(name, names); near != "" {
		return e.WithHint("did you mean  %s ?", near)
	}
	return e.WithHint("corpus-git container list  shows those that there are")
}

// List returns the containers in the order of their names.
func (s Store) List() ([]Container, error) {
	entries, err := os.ReadDir(filepath.Join(s.Dir, "machines"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.denied(err)
	}
	var out []Container
	for _, e := range entries {
		if CheckName(e.Name()) != nil {
			continue
		}
		text, err := os.ReadFile(s.record(e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a container that is being destroyed
		}
		var c Container
		if err == nil {
			err = json.Unmarshal(text, &c)
		}
		if err != nil {
			return nil, fault.New(fault.Failed, "", "%s: %w", s.record(e.Name()), s.denied(err))
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Container) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Put writes a record; it is durable on return.
func (s Store) Put(c Container) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Folder(c.Name), 0o700); err != nil {
		return s.denied(err)
	}
	return errors.Join(vfs.WriteFileAtomic(s.FS, s.record(c.Name), append(text, '\n'), 0o600), vfs.SyncParents(s.FS, s.Folder(c.Name)))
}

// Add records a new container, with an address of the network if it needs one and has none. A name or an address that is already in use is
// fault.Refused.
func (s Store) Add(c Container, network netip.Prefix) (Container, error) {
	unlock, err := s.Lock("")
	if err != nil {
		return c, err
	}
	defer unlock()
	list, err := s.List()
	if err != nil {
		return c, err
	}
	used := map[netip.Addr]string{network.Addr(): "the machine itself"}
	for _, other := range list {
		if other.Name == c.Name {
			return c, fault.New(fault.Refused, "", "there is a container %s already", c.Name).WithHint("corpus-git container show %s", c.Name)
		}
		used[other.Address.Addr()] = other.Name
	}
	if c.Target == "" {
		if c.Address, err = free(c.Address, network, used); err != nil {
			return c, err
		}
	}
	return c, s.Put(c)
}

// free returns an address of the network that is not in use: the wanted one, or the first.
func free(want, network netip.Prefix, used map[netip.Addr]string) (netip.Prefix, error) {
	if want.IsValid() {
		switch owner := used[want.Addr()]; {
		case owner != "":
			return want, fault.New(fault.Refused, "", "%s is the address of %s", want.Addr(), owner)
		case !hosts(network, want.Addr()):
			return want, fault.New(fault.Refused, "", "%s is no address of a machine in the network %s", want.Addr(), network.Masked())
		}
		return netip.PrefixFrom(want.Addr(), network.Bits()), nil
	}
	for a := network.Masked().Addr().Next(); hosts(network, a); a = a.Next() {
		if used[a] == "" {
			return netip.PrefixFrom(a, network.Bits()), nil
		}
	}
	return want, fault.New(fault.Refused, "", "the network %s has no address left", network.Masked())
}

// hosts reports whether an address can be that of a machine in an IPv4 network: neither its first, which names the network, nor its last, the
// broadcast address (RFC 1122, 3.2.1.3).
func hosts(network netip.Prefix, a netip.Addr) bool {
	return network.Contains(a) && a != network.Masked().Addr() && network.Contains(a.Next())
}
