package app

import (
	"context"
	"fmt"
	"io"
	"net"
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

// sockets are listeners that the service manager opened (sd_listen_fds(3)).
type sockets struct{ ssh, http net.Listener }

func inheritedSockets() (s sockets, err error) {
	byName, err := activation.ListenersWithNames()
	if err != nil {
		return s, fault.New(fault.Internal, "sockets of the service manager", "%w", err)
	}
	for name, list := range byName {
		for _, l := range list {
			at := &s.ssh
			switch name {
			case sshSocket, defaultSocket:
			case httpSocket:
				at = &s.http
			default:
				return s, fault.New(fault.Usage, "sockets of the service manager", "a socket is named %q", name).
					WithHint("set  FileDescriptorName=ssh  or  http  in its .socket unit")
			}
			if *at != nil || l == nil {
				return s, fault.New(fault.Usage, "sockets of the service manager", "more than one socket, or one that is not for connections, is named %q", name).
					WithHint("set one ListenStream= for each name; [::]:2222 takes IPv4, too")
			}
			*at = l
		}
	}
	return s, nil
}

// listen opens an address, or takes the socket that was handed over in its place.
func listen(given net.Listener, key, addr string) (net.Listener, error) {
	if given != nil {
		return given, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError(key, addr, err)
	}
	return l, nil
}

// manager tells the service manager what the server does (sd_notify(3)); where there is none it says nothing.
type manager struct{ log zerolog.Logger }

func (m manager) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn().Err(err).Msg("notify the service manager")
	}
}

// ready says that the server answers.
func (m manager) ready(status string) { m.notify(daemon.SdNotifyReady + "\nSTATUS=" + status) }

// reloading says that the configuration is being read; ready follows. The time is needed by Type=notify-reload.
func (m manager) reloading() {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		m.log.Warn().Err(err).Msg("notify the service manager")
		return
	}
	m.notify(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/1000))
}

// stopping says that the server ends within a time, after which the manager may kill it.
func (m manager) stopping(within time.Duration) {
	m.notify(fmt.Sprintf("%s\nSTATUS=waiting for deployments to end\nEXTEND_TIMEOUT_USEC=%d", daemon.SdNotifyStopping, within.Microseconds()))
}

// watchdog says again and again that the server answers, as often as the manager asks for it (WatchdogSec= of systemd.service(5)), and only when
// a request over the control socket was answered. It returns when ctx ends.
func (m manager) watchdog(ctx context.Context, state layout.State) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil || within == 0 {
		return
	}
	for ctx.Err() == nil {
		if err := answers(ctx, state, within/2); err != nil {
			m.log.Error().Err(err).Msg("the server does not answer; the service manager will start it again")
		} else {
			m.notify(daemon.SdNotifyWatchdog)
		}
		select {
		case <-ctx.Done():
		case <-time.After(within / 3):
		}
	}
}

// answers asks the server over its own socket.
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
