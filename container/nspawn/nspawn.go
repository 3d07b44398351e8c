package nspawn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"corpus-git/container"
	"corpus-git/container/network"
	"corpus-git/container/rootfs"
	"corpus-git/container/storage"
	"corpus-git/container/system"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/sleep"
)

// Kind implements system.Kind.
type Kind struct{ system.Host }

var _ system.Kind = Kind{}

// Name is the name of the driver.
const Name = "nspawn"

// How long a container may take to shut down, and its process to begin.
const (
	stopWait  = 90 * time.Second
	beginWait = 30 * time.Second
)

// launch starts nspawn in its own control groups; its PID is written before the process becomes nspawn. $1 is the PID file, $2 the console's file,
// $3 the control groups, separated by colons, $4 where its own volume is mounted; the rest is the command. It runs in a mount namespace of its own, in which the volumes of other
// containers are unmounted: nspawn keeps what is mounted when it starts, so none of them could be released while it runs.
const launch = `pid=$1 console=$2 groups=$3 own=$4; shift 4
while read -r _ _ _ _ at _; do
	at=$(printf %b "$at")
	case $at in "$own") ;; */machines/*/storage) umount -l "$at" ;; esac
done </proc/self/mountinfo
echo $$ >"$pid.part" && mv "$pid.part" "$pid" || exit 1
IFS=:; for g in $groups; do echo $$ >"$g/cgroup.procs" || exit 1; done; unset IFS
exec "$@" </dev/null >"$console" 2>&1`

// Boot implements system.Kind.
func (d Kind) Boot(ctx context.Context, c container.Container, n network.Network) error {
	groups, err := d.group(c).make(c.Limits)
	if err != nil {
		return err
	}
	argv := []string{
		"setsid", "-f", "unshare", "--mount", "sh", "-c", launch, "sh", d.pidFile(c), d.Console(c), strings.Join(groups, ":"), storage.Mountpoint(d.Store.Folder(c.Name)),
		"systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot", "--directory=" + rootfs.Root(d.Store.Folder(c.Name)), "--machine=" + d.ID(c), "--hostname=" + c.Name,
		"--network-bridge=" + n.Bridge, "--resolv-conf=off", "--timezone=off", "--link-journal=no",
	}
	if c.Storage > 0 { // a colon separates the paths
		argv = append(argv, "--bind="+strings.ReplaceAll(storage.Mountpoint(d.Store.Folder(c.Name)), ":", `\:`)+":"+container.StoragePath)
	}
	if err := os.Remove(d.pidFile(c)); err != nil && !errors.Is(err, fs.ErrNotExist) { // that of the boot before
		return err
	}
	st, err := d.Run.Run(ctx, execx.Cmd{Argv: argv, Dir: "/", Env: d.Env})
	if err == nil && st.Exit != 0 {
		err = fmt.Errorf("exit status %d", st.Exit)
	}
	if err == nil {
		err = d.begun(ctx, c)
	}
	if err != nil {
		return fault.New(fault.Failed, "", "start %s: %w", c.Name, err)
	}
	return nil
}

// begun waits until the process of a container exists, or existed.
func (d Kind) begun(ctx context.Context, c container.Container) error {
	for deadline := time.Now().Add(beginWait); ; {
		_, err := os.Lstat(d.pidFile(c))
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("its process did not begin")
		}
		if err := sleep.For(ctx, system.Poll); err != nil {
			return err
		}
	}
}

// Missing implements system.Kind.
func (d Kind) Missing() error {
	if _, err := os.Stat("/usr/bin/systemd-nspawn"); errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Refused, "", "systemd-nspawn is not installed").WithHint("apt-get install systemd-container")
	}
	return nil
}

// halt is the signal that makes systemd halt, as nspawn sends it (systemd(1), SIGRTMIN+3).
const halt = syscall.Signal(34 + 3)

// Stop implements system.Kind.
func (d Kind) Stop(ctx context.Context, c container.Container) error {
	deadline := time.Now().Add(stopWait)
	for asked := false; ; asked = true {
		pid, err := d.pid(c)
		if err != nil {
			return err
		}
		ask := syscall.SIGTERM // an orderly shutdown: systemd-nspawn(1), --kill-signal=
		if pid == 0 {
			if pid, err = d.group(c).init(); err != nil || pid == 0 {
				return errors.Join(err, d.group(c).remove())
			}
			ask = halt
		}
		sig := syscall.Signal(0)
		switch {
		case time.Now().After(deadline):
			sig = syscall.SIGKILL // nspawn at first, which does not end the container, then its init, which ends its PID namespace: pid_namespaces(7)
		case !asked:
			sig = ask
		}
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		if err := sleep.For(ctx, system.Poll); err != nil {
			return err
		}
	}
}

// Running implements system.Kind. A container whose nspawn was killed runs on without it.
func (d Kind) Running(_ context.Context, c container.Container) (bool, error) {
	pid, err := d.pid(c)
	if err == nil && pid == 0 {
		pid, err = d.group(c).init()
	}
	return pid != 0, err
}

func (d Kind) pidFile(c container.Container) string {
	return filepath.Join(d.Store.Folder(c.Name), "pid")
}

// pid returns the process of a container's nspawn, 0 if none runs.
func (d Kind) pid(c container.Container) (int, error) {
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
	args, err := arguments(pid)
	if err != nil || !bytes.Contains(args, []byte("--directory="+rootfs.Root(d.Store.Folder(c.Name))+"\x00")) {
		return 0, nil // it has ended, and another process may have its PID
	}
	return pid, nil
}

// argumentTries is how often the arguments of a process are read that has none.
const argumentTries = 100

// arguments returns the arguments of a process as the kernel shows them. It shows none while the process becomes another program (execve(2)), which is waited for, nor for one that has
// ended and was not reaped.
func arguments(pid int) (args []byte, err error) {
	for range argumentTries {
		args, err = os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || len(args) > 0 {
			break
		}
		stat, serr := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, rest, ok := bytes.Cut(stat, []byte(") ")); serr != nil || !ok || bytes.HasPrefix(rest, []byte("Z")) || bytes.HasPrefix(rest, []byte("X")) {
			break
		}
		time.Sleep(system.Poll / 5)
	}
	return args, err
}

// Leader implements system.Kind.
func (d Kind) Leader(_ context.Context, c container.Container) (int, error) {
	pid, err := d.pid(c)
	if err != nil {
		return 0, err
	}
	if pid == 0 {
		return d.group(c).init()
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

// Limit implements system.Kind.
func (d Kind) Limit(_ context.Context, c container.Container) error {
	return d.group(c).set(c.Limits)
}
