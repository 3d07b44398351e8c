package system

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"corpus-git/container"
	"corpus-git/container/network"
	"corpus-git/container/rootfs"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/sleep"
)

// Kind boots containers.
type Kind interface {
	// Boot starts the container, whose network is up, and returns once its process exists. It keeps running when the process that started it ends.
	Boot(ctx context.Context, c container.Container, n network.Network) error
	// Stop shuts it down, and kills it after a timeout. A stopped one is not an error.
	Stop(ctx context.Context, c container.Container) error
	Running(ctx context.Context, c container.Container) (bool, error)
	// Leader returns its init, as a process of this machine; 0 if there is none.
	Leader(ctx context.Context, c container.Container) (int, error)
	// Limit applies c.Limits to a running container.
	Limit(ctx context.Context, c container.Container) error
	// Console is the file with the output of its console. Missing returns an error if the tools of this kind are not installed.
	Console(c container.Container) string
	Missing() error
}

// Driver implements container.Driver.
type Driver struct {
	Kind  Kind
	Run   execx.Commander
	Store container.Store
	Maker rootfs.Maker
	// Network returns the network of the containers.
	Network func() (network.Network, error)
	// Env is the environment of the tools.
	Env []string
	// Resolv is the text of this machine's resolv.conf(5).
	Resolv func() string
}

var _ container.Driver = Driver{}

// Interface is the name of a container's network interface.
const Interface = "host0"

// bootWait is how long a container may take to boot.
const bootWait = 2 * time.Minute

// tools are the programs that every kind needs, and the packages of Debian that have them.
func tools() []struct{ program, pkg string } {
	return []struct{ program, pkg string }{
		{"debootstrap", "debootstrap"}, {"nsenter", "util-linux"}, {"unshare", "util-linux"}, {"setsid", "util-linux"}, {"losetup", "mount"}, {"mkfs.ext4", "e2fsprogs"}, {"chroot", "coreutils"},
	}
}

// Check implements container.Driver.
func (d Driver) Check() error {
	if err := d.Kind.Missing(); err != nil {
		return err
	}
	for _, t := range tools() {
		if _, err := execx.LookPath(t.program, "/", d.Env); err != nil {
			return fault.New(fault.Refused, "", "%s is not installed", t.program).WithHint("apt-get install %s", t.pkg)
		}
	}
	return d.Maker.Able()
}

// Create implements container.Driver.
func (d Driver) Create(ctx context.Context, c container.Container, say func(string)) error {
	folder := d.Store.Folder(c.Name)
	if rootfs.Made(folder) {
		return nil
	}
	base, err := d.Maker.Base(ctx, rootfs.System{Suite: c.Suite, Mirror: c.Mirror, Packages: c.Packages}, say)
	if err != nil {
		return err
	}
	n, err := d.Network()
	if err != nil {
		return err
	}
	return d.Maker.Make(ctx, base, folder, rootfs.Settings{
		Hostname: c.Name, Address: c.Address, Gateway: n.Prefix.Addr(), Address6: c.Address6, Gateway6: n.Prefix6().Addr(), Interface: Interface, Nameservers: rootfs.Nameservers(d.Resolv()),
	})
}

// Start implements container.Driver.
func (d Driver) Start(ctx context.Context, c container.Container) error {
	running, err := d.Kind.Running(ctx, c)
	if err != nil {
		return err
	}
	n, err := d.up() // also for one that runs: somebody may have removed the rules
	if err != nil {
		return err
	}
	if !running {
		if c.Storage > 0 {
			err = d.volumes().Mount(ctx, d.Store.Folder(c.Name))
		}
		if err == nil {
			err = d.Kind.Boot(ctx, c, n)
		}
		if err != nil {
			return err
		}
	}
	return d.booted(ctx, c)
}

// up brings the network up, as it is recorded now: under the lock of whoever changes it, so that older rules never replace newer ones.
func (d Driver) up() (network.Network, error) {
	unlock, err := d.Store.Lock("")
	if err != nil {
		return network.Network{}, err
	}
	defer unlock()
	n, err := d.Network()
	if err == nil {
		err = n.Up()
	}
	return n, err
}

// booted waits until the services of a container have been started.
func (d Driver) booted(ctx context.Context, c container.Container) error {
	ctx, end := context.WithTimeoutCause(ctx, bootWait, errSlow)
	defer end()
	for {
		running, err := d.Kind.Running(ctx, c)
		if err == nil && !running || errors.Is(context.Cause(ctx), errSlow) {
			return d.failed(c)
		}
		if err != nil {
			return err
		}
		var out bytes.Buffer
		_, err = d.Exec(ctx, c, container.Command{Argv: []string{"systemctl", "is-system-running", "--wait"}, Stdout: &out})
		if s := strings.TrimSpace(out.String()); err == nil && (s == "running" || s == "degraded") {
			return nil
		}
		if err := sleep.For(ctx, Poll); err != nil && !errors.Is(err, errSlow) {
			return err
		}
	}
}

// errSlow is the cause of the end of a boot that takes too long.
var errSlow = errors.New("it does not boot in time")

// leftover is the beginning of a line that nspawn prints when it ends, whatever the reason, where /run is on a disk.
const leftover = "Attempted to remove disk file system under"

// failed returns why a container did not boot: the last line of its console.
func (d Driver) failed(c container.Container) error {
	path := d.Kind.Console(c)
	text, _ := os.ReadFile(path) // without the file nothing is known
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for len(lines) > 1 && strings.HasPrefix(lines[len(lines)-1], leftover) {
		lines = lines[:len(lines)-1]
	}
	if last := printable.Text(strings.TrimSpace(lines[len(lines)-1])); last != "" {
		return fault.New(fault.Failed, "", "%s does not boot: %s", c.Name, last).WithHint("its console:  %s", path)
	}
	if err := d.Kind.Missing(); err != nil {
		return err
	}
	return fault.New(fault.Failed, "", "%s does not boot", c.Name).WithHint("its console:  %s", path)
}

// Stop implements container.Driver.
func (d Driver) Stop(ctx context.Context, c container.Container) error {
	if err := d.Kind.Stop(ctx, c); err != nil {
		return err
	}
	return d.volumes().Unmount(ctx, d.Store.Folder(c.Name))
}

// Running implements container.Driver.
func (d Driver) Running(ctx context.Context, c container.Container) (bool, error) {
	return d.Kind.Running(ctx, c)
}

// environment returns the environment of commands in a container.
func environment() []string {
	return []string{"HOME=/root", "USER=root", "LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
}

// Exec implements container.Driver.
func (d Driver) Exec(ctx context.Context, c container.Container, cmd container.Command) (int, error) {
	leader, err := d.Kind.Leader(ctx, c)
	if err != nil {
		return 0, err
	}
	if leader == 0 {
		return 0, container.NotRunning(c)
	}
	argv := append([]string{"nsenter", "--target=" + strconv.Itoa(leader), "--all", "--", "env", "-i", "--chdir=/root"}, environment()...)
	st, err := d.Run.Run(ctx, execx.Cmd{Argv: append(argv, cmd.Argv...), Dir: "/", Env: d.Env, Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr})
	return st.Exit, err
}

// Address implements container.Driver.
func (d Driver) Address(_ context.Context, c container.Container) (netip.Addr, error) {
	return c.Address.Addr(), nil
}

// Resize implements container.Driver.
func (d Driver) Resize(ctx context.Context, c container.Container) error {
	running, err := d.Kind.Running(ctx, c)
	if err != nil || !running {
		return err
	}
	return d.Kind.Limit(ctx, c)
}
