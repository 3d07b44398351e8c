package container

import (
	"context"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"corpus-git/internal/fault"
)

// Container is the record of one container.
type Container struct {
	Name string `json:"name"`
	// Driver is its kind: nspawn, lxc or bare.
	Driver string `json:"driver"`
	// Suite is the release of Debian, Mirror is the source of its packages ("" is debootstrap's default), Packages is what is installed in addition to the base system.
	// They are empty for machines of the driver bare, which exist already.
	Suite    string   `json:"suite,omitempty"`
	Mirror   string   `json:"mirror,omitempty"`
	Packages []string `json:"packages,omitempty"`
	// Address is its address, with the length of the network's prefix.
	Address netip.Prefix `json:"address,omitzero"`
	// Address6 is its IPv6 address; invalid if it has none, as containers that were created without one.
	Address6 netip.Prefix `json:"address6,omitzero"`
	// Target and Options are those of ssh(1) for a machine of the driver bare.
	Target  string   `json:"ssh,omitempty"`
	Options []string `json:"ssh_options,omitempty"`
	Limits  Limits   `json:"limits,omitzero"`
	// Storage is the size of its volume, mounted at StoragePath, in bytes; 0 means none.
	Storage int64 `json:"storage,omitempty"`
	// Ready reports that its creation is complete; Started that it is to be running.
	Ready   bool      `json:"ready"`
	Started bool      `json:"started"`
	Created time.Time `json:"created"`
}

// StoragePath is where a container has its volume.
const StoragePath = "/storage"

// Limits are what a container may use of the machine; a zero value means no limit.
type Limits struct {
	// Memory is in bytes.
	Memory int64 `json:"memory,omitempty"`
	// CPUs is the number of processors, for example 0.5.
	CPUs float64 `json:"cpus,omitempty"`
}

// Differences returns which settings, chosen when a container is created, other ones differ in. An address that is not chosen is no difference.
func (c Container) Differences(now Container) (other []string) {
	sorted := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	for _, s := range []struct {
		what string
		same bool
	}{
		{"driver", c.Driver == now.Driver}, {"suite", c.Suite == now.Suite}, {"mirror", c.Mirror == now.Mirror}, {"packages", slices.Equal(sorted(c.Packages), sorted(now.Packages))},
		{"address", !now.Address.IsValid() || now.Address.Addr() == c.Address.Addr()}, {"limits", c.Limits == now.Limits},
	} {
		if !s.same {
			other = append(other, s.what)
		}
	}
	return other
}

// Command is a command that runs in a container, as root inside it.
type Command struct {
	Argv           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Driver is a kind of container. The caller holds the container's lock, except for Running, Exec and Address. Its methods can be called again after an interruption at any
// point, and then complete what is missing; what is done already is not an error.
type Driver interface {
	// Check is fault.Refused if this machine lacks what the driver needs, before anything is made or recorded.
	Check() error
	// Create makes the container, not started. say is called with a message about anything that takes time.
	Create(ctx context.Context, c Container, say func(string)) error
	// Start starts it, and returns when its init has started its services. The container keeps running when the process that started it ends.
	Start(ctx context.Context, c Container) error
	// Stop shuts it down, and kills it after a timeout.
	Stop(ctx context.Context, c Container) error
	Running(ctx context.Context, c Container) (bool, error)
	// Exec runs a command in it, and returns its exit status. A container that is not running is fault.Refused. When ctx ends, the command is ended; on an existing machine
	// it may keep running.
	Exec(ctx context.Context, c Container, cmd Command) (exit int, err error)
	// Address returns the address at which other machines reach it.
	Address(ctx context.Context, c Container) (netip.Addr, error)
	// Resize applies c.Limits, to a running container immediately.
	Resize(ctx context.Context, c Container) error
	// Storage gives the volume of a container, which has c.Storage bytes, another size; 0 removes it with its files. One that is only enlarged may be in use, unless that is
	// fault.Busy, as this machine does not allow it; otherwise a running container is fault.Refused. The caller records the size.
	Storage(ctx context.Context, c Container, size int64) error
	// Room is fault.Refused if this machine has no room for a volume of that size, before a container is stopped for it.
	Room(c Container, size int64) error
	// Snapshot stores the root file system of a stopped container under a name; it is durable on return. Restore restores it, and Forget removes it.
	Snapshot(ctx context.Context, c Container, id string) error
	Restore(ctx context.Context, c Container, id string) error
	Forget(ctx context.Context, c Container, id string) error
	// Snapshots returns the names, in byte order.
	Snapshots(ctx context.Context, c Container) ([]string, error)
	// Destroy removes a stopped container and its snapshots.
	Destroy(ctx context.Context, c Container) error
}

// validName matches the name of a container, which is also its host name and the name of a node: RFC 1123, 2.1, in lower case.
var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}[a-z0-9]$|^[a-z]$`)

// CheckName refuses an invalid name of a container or snapshot.
func CheckName(name string) error {
	if !validName.MatchString(name) || name == "localhost" {
		return fault.New(fault.Usage, "", "%q is not a valid name", name).WithHint("at most 32 lower-case letters, digits and dashes, beginning with a letter, and not localhost")
	}
	return nil
}

// MinMemory is the memory that a container with systemd needs to boot, in bytes.
const MinMemory = 64 << 20

// Check refuses limits with which no container can run.
func (l Limits) Check() error {
	switch {
	case l.Memory != 0 && l.Memory < MinMemory:
		return fault.New(fault.Usage, "", "a container needs at least 64 MB of memory")
	case l.CPUs < 0 || l.CPUs != 0 && l.CPUs < 0.01:
		return fault.New(fault.Usage, "", "a container needs at least 0.01 of a processor")
	}
	return nil
}

// NotSupported returns the error for something that a driver does not support at all.
func NotSupported(c Container, what string) error {
	return fault.New(fault.Refused, "", "%s is a machine of its own (driver %s), which cannot be %s from here", c.Name, c.Driver, what)
}

// NotRunning returns the error for something that needs a running container.
func NotRunning(c Container) error {
	return fault.New(fault.Refused, "", "%s does not run", c.Name).WithHint("corpus-git container start %s", c.Name)
}

// Running returns the error for something that needs a stopped container.
func Running(c Container) error {
	return fault.New(fault.Refused, "", "%s runs", c.Name).WithHint("corpus-git container stop %s", c.Name)
}
