package nspawn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"corpus-git/container"
	"corpus-git/container/network"
	"corpus-git/container/rootfs"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Driver implements container.Driver.
type Driver struct {
	Run   execx.Commander
	Store container.Store
	Maker rootfs.Maker
	// Network returns the network of the containers.
	Network func() (network.Network, error)
	// Env is the environment of the tools.
	Env []string
	// CGroups is the mount point of the control groups: /sys/fs/cgroup.
	CGroups string
	// Resolv is the text of this machine's resolv.conf(5).
	Resolv func() string
}

var _ container.Driver = Driver{}

// Name is the name of the driver.
const Name = "nspawn"

// Interface is the name of a container's network interface (systemd-nspawn(1), --network-bridge=).
const Interface = "host0"

// How long a container may take to boot and to shut down, and the interval at which it is checked.
const (
	bootWait = 2 * time.Minute
	stopWait = 90 * time.Second
	poll     = 50 * time.Millisecond
)

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
		Hostname: c.Name, Address: c.Address, Gateway: n.Prefix.Addr(), Interface: Interface, Nameservers: rootfs.Nameservers(d.Resolv()),
	})
}

// launch starts nspawn in its own control groups; its PID is written before the process becomes nspawn. $1 is the PID file, $2 the console's file,
// $3 the control groups, separated by colons; the rest is the command.
const launch = `pid=$1 console=$2 groups=$3; shift 3
echo $$ >"$pid.part" && mv "$pid.part" "$pid" || exit 1
IFS=:; for g in $groups; do echo $$ >"$g/cgroup.procs" || exit 1; done; unset IFS
exec "$@" </dev/null >"$console" 2>&1`

// Start implements container.Driver.
func (d Driver) Start(ctx context.Context, c container.Container) error {
	if running, err := d.Running(ctx, c); err != nil || running {
		if err == nil {
			err = d.booted(ctx, c)
		}
		return err
	}
	n, err := d.Network()
	if err != nil {
		return err
	}
	if err := n.Up(); err != nil {
		return err
	}
	groups, err := d.group(c.Name).make(c.Limits)
	if err != nil {
		return err
	}
	argv := []string{
		"setsid", "-f", "sh", "-c", launch, "sh", d.pidFile(c), d.console(c), strings.Join(groups, ":"),
		"systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot", "--directory=" + rootfs.Root(d.Store.Folder(c.Name)), "--machine=" + c.Name,
		"--network-bridge=" + n.Bridge, "--resolv-conf=off", "--timezone=off", "--link-journal=no",
	}
	st, err := d.Run.Run(ctx, execx.Cmd{Argv: argv, Dir: "/", Env: d.Env})
	if err == nil && st.Exit != 0 {
		err = fmt.Errorf("exit status %d", st.Exit)
	}
	if err != nil {
		return fault.New(fault.Failed, "", "start %s: %w", c.Name, err)
	}
	return d.booted(ctx, c)
}

// booted waits until the services of a container have been started.
func (d Driver) booted(ctx context.Context, c container.Container) error {
	deadline := time.Now().Add(bootWait)
	seen := false
	for {
		running, err := d.Running(ctx, c)
		if err != nil {
			return err
		}
		if seen && !running || time.Now().After(deadline) {
			return d.failed(c)
		}
		seen = seen || running
		if running {
			var out bytes.Buffer
			_, err := d.Exec(ctx, c, container.Command{Argv: []string{"systemctl", "is-system-running", "--wait"}, Stdout: &out})
			if s := strings.TrimSpace(out.String()); err == nil && (s == "running" || s == "degraded") {
				return nil
			}
		}
		if err := sleep(ctx, poll); err != nil {
			return err
		}
	}
}

// failed returns why a container did not boot: the last line of its console.
func (d Driver) failed(c container.Container) error {
	text, _ := os.ReadFile(d.console(c)) // without the file nothing is known
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := printable.Text(strings.TrimSpace(lines[len(lines)-1])); last != "" {
		return fault.New(fault.Failed, "", "%s does not boot: %s", c.Name, last).WithHint("its console:  %s", d.console(c))
	}
	if _, err := os.Stat("/usr/bin/systemd-nspawn"); errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Refused, "", "systemd-nspawn is not installed").WithHint("apt-get install systemd-container")
	}
	return fault.New(fault.Failed, "", "%s does not boot", c.Name).WithHint("its console:  %s", d.console(c))
}

// Stop implements container.Driver.
func (d Driver) Stop(ctx context.Context, c container.Container) error {
	deadline := time.Now().Add(stopWait)
	for asked := false; ; asked = true {
		pid, err := d.pid(c)
		if err != nil || pid == 0 {
			return errors.Join(err, d.group(c.Name).remove())
		}
		sig := syscall.Signal(0)
		switch {
		case time.Now().After(deadline):
			sig = syscall.SIGKILL // this also ends its PID namespace: pid_namespaces(7)
		case !asked:
			sig = syscall.SIGTERM // an orderly shutdown: systemd-nspawn(1), --kill-signal=
		}
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		if err := sleep(ctx, poll); err != nil {
			return err
		}
	}
}

// Running implements container.Driver.
func (d Driver) Running(_ context.Context, c container.Container) (bool, error) {
	pid, err := d.pid(c)
	return pid != 0, err
}

func (d Driver) pidFile(c container.Container) string {
	return filepath.Join(d.Store.Folder(c.Name), "pid")
}
func (d Driver) console(c container.Container) string {
	return filepath.Join(d.Store.Folder(c.Name), "console.log")
}

// pid returns the process of a container's nspawn, 0 if none runs.
func (d Driver) pid(c container.Container) (int, error) {
	text, err := os.ReadFile(d.pidFile(c))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fault.New(fault.Failed, "", "%s: %w", d.pidFile(c), err)
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !bytes.Contains(args, []byte("--directory="+rootfs.Root(d.Store.Folder(c.Name))+"\x00")) {
		return 0, nil // it has ended, and another process may have its PID
	}
	return pid, nil
}

// leader returns the init of a container, as a process of this machine; 0 if there is none.
func (d Driver) leader(c container.Container) (int, error) {
	pid, err := d.pid(c)
	if err != nil || pid == 0 {
		return 0, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return 0, nil //nolint:nilerr // it has ended
	}
	children := strings.Fields(string(text))
	if len(children) != 1 {
		return 0, nil // not running yet, or no longer
	}
	return strconv.Atoi(children[0])
}

// environment returns the environment of commands in a container.
func environment() []string {
	return []string{"HOME=/root", "USER=root", "LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
}

// Exec implements container.Driver.
func (d Driver) Exec(ctx context.Context, c container.Container, cmd container.Command) (int, error) {
	leader, err := d.leader(c)
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
	running, err := d.Running(ctx, c)
	if err != nil || !running {
		return err
	}
	return d.group(c.Name).set(c.Limits)
}

func sleep(ctx context.Context, t time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(t):
		return nil
	}
}
