package container

import (
	"context"
	"io"
	"net/netip"
	"regexp"
	"time"

	"corpus-git/internal/fault"
)

// Container is the record of one.
type Container struct {
	Name string `json:"name"`
	// Driver is its kind: nspawn, lxc or bare.
	Driver string `json:"driver"`
	// Suite is the release of Debian, Mirror where its packages come from ("" is debootstrap's default), Packages what is installed beside the
	// base system. Empty for machines of the driver bare, which exist already.
	Suite    string   `json:"suite,omitempty"`
	Mirror   string   `json:"mirror,omitempty"`
	Packages []string `json:"packages,omitempty"`
	// Address is its address, with the length of the network's prefix.
	Address netip.Prefix `json:"address,omitzero"`
	// Target and Options reach a machine of the driver bare: those of ssh(1).
	Target  string   `json:"ssh,omitempty"`
	Options []string `json:"ssh_options,omitempty"`
	Limits  Limits   `json:"limits,omitzero"`
	// Ready reports that it was created wholly; Started that it is to run.
	Ready   bool      `json:"ready"`
	Started bool      `json:"started"`
	Created time.Time `json:"created"`
}

// Limits are what a container may use of the machine; zero values are no limit.
type Limits struct {
	// Memory is in bytes.
	Memory int64 `json:"memory,omitempty"`
	// CPUs is a number of processors, such as 0.5.
	CPUs float64 `json:"cpus,omitempty"`
}

// Command is a command that runs in a container, as root there.
type Command struct {
	Argv           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Driver is a kind of container. Whoever calls it holds the container's lock, but for Running, Exec and Address. Its methods can be called
// again after they were interrupted at any moment, and do what is left then; what is done already is no error.
type Driver interface {
	// Create makes the container, not started. say tells what takes time.
	Create(ctx context.Context, c Container, say func(string)) error
	// Start starts it, and returns when its init has started its services. It runs on when the process ends that started it.
	Start(ctx context.Context, c Container) error
	// Stop lets it shut down, and ends it after a while.
	Stop(ctx context.Context, c Container) error
	Running(ctx context.Context, c Container) (bool, error)
	// Exec runs a command in it, and gives its exit status. One that does not run is fault.Refused. When ctx ends, the command ends; on a machine of its own it may run on.
	Exec(ctx context.Context, c Container, cmd Command) (exit int, err error)
	// Address is where other machines reach it.
	Address(ctx context.Context, c Container) (netip.Addr, error)
	// Resize sets c.Limits, of a running container at once.
	Resize(ctx context.Context, c Container) error
	// Snapshot keeps the root file system of a stopped container under a name; durable on return. Restore brings it back, and Forget removes it.
	Snapshot(ctx context.Context, c Container, id string) error
	Restore(ctx context.Context, c Container, id string) error
	Forget(ctx context.Context, c Container, id string) error
	// Snapshots returns the names, in the order of bytes.
	Snapshots(ctx context.Context, c Container) ([]string, error)
	// Destroy removes a stopped container with its snapshots.
	Destroy(ctx context.Context, c Container) error
}

// validName is that of a container, which is its host name, too, and that of a node: RFC 1123, 2.1, in lower case.
var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}[a-z0-9]$|^[a-z]$`)

// CheckName refuses what is not a name of a container or of a snapshot.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fault.New(fault.Usage, "", "%q is not a valid name", name).WithHint("at most 32 lower-case letters, digits and dashes, beginning with a letter")
	}
	return nil
}

// MinMemory is what a container with systemd needs to boot, in bytes.
const MinMemory = 64 << 20

// Check refuses limits with which no container runs.
func (l Limits) Check() error {
	switch {
	case l.Memory != 0 && l.Memory < MinMemory:
		return fault.New(fault.Usage, "", "a container needs at least 64 MB of memory")
	case l.CPUs < 0 || l.CPUs != 0 && l.CPUs < 0.01:
		return fault.New(fault.Usage, "", "a container needs at least 0.01 of a processor")
	}
	return nil
}

// NotSupported is the error of a driver that cannot do something at all.
func NotSupported(c Container, what string) error {
	return fault.New(fault.Refused, "", "%s is a machine of its own (driver %s), which cannot be %s from here", c.Name, c.Driver, what)
}

// NotRunning is the error of what needs a running container.
func NotRunning(c Container) error {
	return fault.New(fault.Refused, "", "%s does not run", c.Name).WithHint("corpus-git container start %s", c.Name)
}

// Running is the error of what needs a stopped container.
func Running(c Container) error {
	return fault.New(fault.Refused, "", "%s runs", c.Name).WithHint("corpus-git container stop %s", c.Name)
}
