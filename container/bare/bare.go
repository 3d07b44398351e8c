// Package bare is the driver for existing machines: they are reached by ssh(1), as root, with the operator's own login there.
//
// It owns what such a machine can do as a container: run commands, and report its address. It never starts, stops, copies or removes
// one.
//
// A crash leaves the machine as it is; a command that was running there may keep running.
package bare

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"

	"corpus-git/container"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/remote"
)

// Name is the name of the driver.
const Name = "bare"

// Driver implements container.Driver.
type Driver struct {
	Run execx.Commander
	// Env is the environment of ssh(1), including its agent and home.
	Env []string
}

var _ container.Driver = Driver{}

// with calls do with a connection to the machine.
func (d Driver) with(c container.Container, do func(*remote.Host) error) error {
	h := &remote.Host{Target: c.Target, Options: c.Options, Exec: d.Run, Env: d.Env, Dir: "/"}
	return errors.Join(do(h), h.Close())
}

// Check implements container.Driver: what is needed is on the other machine, and Create looks for it.
func (Driver) Check() error { return nil }

// Create implements container.Driver: it checks that the machine can be prepared.
func (d Driver) Create(ctx context.Context, c container.Container, _ func(string)) error {
	var out bytes.Buffer
	exit, err := d.Exec(ctx, c, container.Command{Argv: []string{"sh", "-c", "id -u; command -v apt-get systemctl"}, Stdout: &out})
	if err != nil {
		return err
	}
	user, _, _ := strings.Cut(out.String(), "\n")
	switch {
	case user != "0":
		return fault.New(fault.Refused, "", "the login %s is not root's", printable.Text(c.Target)).WithHint("name root@HOST")
	case exit != 0:
		return fault.New(fault.Refused, "", "%s has no apt-get or no systemd", printable.Text(c.Target)).WithHint("Debian and what derives from it can be prepared")
	}
	return nil
}

// Start implements container.Driver: a machine that can be reached is running.
func (d Driver) Start(ctx context.Context, c container.Container) error {
	_, err := d.Exec(ctx, c, container.Command{Argv: []string{"true"}})
	return err
}

// Stop implements container.Driver.
func (d Driver) Stop(_ context.Context, c container.Container) error {
	return container.NotSupported(c, "stopped")
}

// Running implements container.Driver.
func (d Driver) Running(ctx context.Context, c container.Container) (bool, error) {
	err := d.Start(ctx, c)
	if lost := (*remote.ConnectionError)(nil); errors.As(err, &lost) {
		return false, nil
	}
	return err == nil, err
}

// Exec implements container.Driver. When ctx ends, the command may keep running there.
func (d Driver) Exec(ctx context.Context, c container.Container, cmd container.Command) (exit int, err error) {
	var discard bytes.Buffer
	out, errw := cmd.Stdout, cmd.Stderr
	if out == nil {
		out = &discard
	}
	if errw == nil {
		errw = &discard
	}
	return exit, d.with(c, func(h *remote.Host) error {
		exit, err = h.Run(ctx, cmd.Argv, cmd.Stdin, out, errw)
		return err
	})
}

// Address implements container.Driver: the address at which ssh(1) reaches it, according to its configuration.
func (d Driver) Address(ctx context.Context, c container.Container) (netip.Addr, error) {
	var out bytes.Buffer
	st, err := d.Run.Run(ctx, execx.Cmd{Argv: append(append([]string{"ssh", "-G"}, c.Options...), "--", c.Target), Dir: "/", Env: d.Env, Stdout: &out})
	if err != nil || st.Exit != 0 {
		return netip.Addr{}, fault.New(fault.Failed, "", "ssh -G %s does not tell where it is: %w", printable.Text(c.Target), err)
	}
	for line := range strings.Lines(out.String()) {
		host, ok := strings.CutPrefix(line, "hostname ")
		if !ok {
			continue
		}
		list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", strings.TrimSpace(host))
		if err != nil {
			return netip.Addr{}, fault.New(fault.Failed, "", "%w", err)
		}
		return list[0].Unmap(), nil
	}
	return netip.Addr{}, fault.New(fault.Failed, "", "ssh -G %s names no host", printable.Text(c.Target))
}

// Resize implements container.Driver.
func (d Driver) Resize(_ context.Context, c container.Container) error {
	return container.NotSupported(c, "resized")
}

// Storage implements container.Driver.
func (d Driver) Storage(_ context.Context, c container.Container, _ int64) error {
	return container.NotSupported(c, "given a volume")
}

// Room implements container.Driver.
func (d Driver) Room(c container.Container, _ int64) error {
	return container.NotSupported(c, "given a volume")
}

// Snapshot implements container.Driver.
func (d Driver) Snapshot(_ context.Context, c container.Container, _ string) error {
	return container.NotSupported(c, "copied")
}

// Restore implements container.Driver.
func (d Driver) Restore(_ context.Context, c container.Container, _ string) error {
	return container.NotSupported(c, "copied")
}

// Forget implements container.Driver.
func (d Driver) Forget(_ context.Context, c container.Container, _ string) error {
	return container.NotSupported(c, "copied")
}

// Snapshots implements container.Driver: there are none.
func (d Driver) Snapshots(context.Context, container.Container) ([]string, error) { return nil, nil }

// Destroy implements container.Driver: the machine stays as it is.
func (d Driver) Destroy(context.Context, container.Container) error { return nil }
