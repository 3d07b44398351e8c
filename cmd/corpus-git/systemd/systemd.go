// Package systemd implements socket activation and status notifications for a service manager.
//
// It owns no file. Without a service manager it does nothing. A crash leaves nothing.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"corpus-git/cmd/corpus-git/control"
	"corpus-git/internal/fault"
	"corpus-git/layout"
)

// The names of sockets that a service manager may hand over (systemd.socket(5), FileDescriptorName=). One that has no name of its own has that of its
// unit, and is the SSH server's.
const (
	sshSocket     = "ssh"
	httpSocket    = "http"
	defaultSocket = "corpus-git.socket"
)

// Sockets are listeners that the service manager opened (sd_listen_fds(3)); nil if there is none.
type Sockets struct{ SSH, HTTP net.Listener }

// Inherited returns the sockets passed to this process. An unknown name, or two sockets of the same name, are fault.Usage.
func Inherited() (s Sockets, err error) {
	byName, err := activation.ListenersWithNames()
	if err != nil {
		return s, fault.New(fault.Internal, "sockets of the service manager", "%w", err)
	}
	for name, list := range byName {
		for _, l := range list {
			at := &s.SSH
			switch name {
			case sshSocket, defaultSocket:
			case httpSocket:
				at = &s.HTTP
			default:
				return s, fault.New(fault.Usage, "sockets of the service manager", "unknown socket name %q", name).
					WithHint("set  FileDescriptorName=ssh  or  http  in its .socket unit")
			}
			if *at != nil || l == nil {
				return s, fault.New(fault.Usage, "sockets of the service manager", "more than one socket, or a non-stream socket, is named %q", name).
					WithHint("set one ListenStream= for each name; [::]:2222 takes IPv4, too")
			}
			*at = l
		}
	}
	return s, nil
}

// Listen returns the passed socket, or else listens on addr, the value of the setting key.
func Listen(given net.Listener, key, addr string) (net.Listener, error) {
	if given != nil {
		return given, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError(key, addr, err)
	}
	return l, nil
}

// listenError adds a hint to err: which setting to change, and how to find the conflict.
func listenError(key, addr string, err error) error {
	hint := fmt.Sprintf("choose another address with  %s ; 127.0.0.1:0 takes any free port", key)
	_, port, _ := net.SplitHostPort(addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = fmt.Sprintf("see which program has it with  ss -ltnp 'sport = :%s' , or %s", port, hint)
	case errors.Is(err, syscall.EACCES):
		hint = fmt.Sprintf("a port below 1024 takes root, or the capability CAP_NET_BIND_SERVICE (systemd.exec(5), AmbientCapabilities); or %s", hint)
	}
	return fault.New(fault.Refused, key, "%w", err).WithHint("%s", hint)
}

// Manager is the service manager (sd_notify(3)). Without one its methods do nothing.
type Manager struct{ Log zerolog.Logger }

func (m Manager) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.Log.Warn().Err(err).Msg("notify the service manager")
	}
}

// Ready reports that the server is ready; status is shown to people.
func (m Manager) Ready(status string) { m.notify(daemon.SdNotifyReady + "\nSTATUS=" + status) }

// Reloading reports that the configuration is being reloaded. Ready follows it. The time is needed by Type=notify-reload.
func (m Manager) Reloading() {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		m.Log.Warn().Err(err).Msg("notify the service manager")
		return
	}
	m.notify(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/1000))
}

// Stopping reports that the server stops within a time, after which the manager may kill it.
func (m Manager) Stopping(within time.Duration) {
	m.notify(fmt.Sprintf("%s\nSTATUS=waiting for deployments to end\nEXTEND_TIMEOUT_USEC=%d", daemon.SdNotifyStopping, within.Microseconds()))
}

// Watchdog sends watchdog notifications (WatchdogSec= of systemd.service(5)), each only after a successful request over the control socket of state. It returns
// when ctx ends, and immediately without a watchdog.
func (m Manager) Watchdog(ctx context.Context, state layout.State) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil || within == 0 {
		return
	}
	for ctx.Err() == nil {
		if err := answers(ctx, state, within/2); err != nil {
			m.Log.Error().Err(err).Msg("the server does not respond; the service manager will restart it")
		} else {
			m.notify(daemon.SdNotifyWatchdog)
		}
		select {
		case <-ctx.Done():
		case <-time.After(within / 3):
		}
	}
}

// answers sends a request to the server over its own socket.
func answers(ctx context.Context, state layout.State, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c, err := control.Dial(state.Socket())
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Do(ctx, control.Request{Argv: []string{"version"}}, nil, io.Discard, io.Discard)
	return err
}
