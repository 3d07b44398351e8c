package lxc

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

	"corpus-git/container"
	"corpus-git/container/network"
	"corpus-git/container/rootfs"
	"corpus-git/container/storage"
	"corpus-git/container/system"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/sleep"
	"corpus-git/internal/vfs"
)

// Kind implements system.Kind.
type Kind struct{ system.Host }

var _ system.Kind = Kind{}

// Name is the name of the driver.
const Name = "lxc"

// stopWait is how long a container may take to shut down before it is killed, in seconds.
const stopWait = "90"

// folder is LXC's own folder for a container (lxc(7), lxcpath).
func (k Kind) folder(c container.Container) string {
	return filepath.Join(k.Store.Folder(c.Name), "lxc")
}

// Missing implements system.Kind.
func (k Kind) Missing() error {
	if _, err := os.Stat("/usr/bin/lxc-start"); errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Refused, "", "lxc is not installed").WithHint("apt-get install lxc")
	}
	return nil
}

// tool runs one of LXC's tools for a container, and returns its exit status and what it printed.
func (k Kind) tool(ctx context.Context, c container.Container, name string, args ...string) (exit int, out, errs string, err error) {
	var o, e bytes.Buffer
	argv := append([]string{name, "-P", k.folder(c), "-n", c.Name}, args...)
	st, err := k.Run.Run(ctx, execx.Cmd{Argv: argv, Dir: "/", Env: k.Env, Stdout: &o, Stderr: &e})
	return st.Exit, o.String(), e.String(), err
}

// config returns the configuration of a container (lxc.container.conf(5)). A line feed cannot be in its values: names and paths are checked by their owners, except
// that of the folder, which Boot checks.
func (k Kind) config(c container.Container, n network.Network) string {
	var b strings.Builder
	set := func(key, value string) { fmt.Fprintf(&b, "%s = %s\n", key, value) }
	set("lxc.include", "/usr/share/lxc/config/common.conf")
	set("lxc.uts.name", c.Name)
	set("lxc.rootfs.path", "dir:"+rootfs.Root(k.Store.Folder(c.Name)))
	set("lxc.apparmor.profile", "unconfined")
	set("lxc.net.0.type", "veth")
	set("lxc.net.0.link", n.Bridge)
	set("lxc.net.0.name", system.Interface)
	set("lxc.net.0.flags", "up")
	set("lxc.signal.halt", "SIGRTMIN+4") // systemd(1): power off
	set("lxc.console.logfile", k.Console(c))
	if c.Storage > 0 { // fstab(5): a space is written as \040
		set("lxc.mount.entry", strings.ReplaceAll(storage.Mountpoint(k.Store.Folder(c.Name)), " ", `\040`)+" "+container.StoragePath[1:]+" none bind,create=dir 0 0")
	}
	prefix := "lxc.cgroup."
	if k.Second() {
		prefix = "lxc.cgroup2."
	}
	for _, l := range k.LimitFiles(c.Limits) {
		if !l.None {
			set(prefix+l.File, l.Value)
		}
	}
	return b.String()
}

// Boot implements system.Kind.
func (k Kind) Boot(ctx context.Context, c container.Container, n network.Network) error {
	if err := k.Missing(); err != nil {
		return err
	}
	if strings.ContainsAny(k.folder(c), "\n") {
		return fault.New(fault.Refused, "", "the path of the folder of containers has a line feed, which LXC cannot read")
	}
	if err := os.MkdirAll(k.folder(c), 0o700); err != nil {
		return err
	}
	path := filepath.Join(k.folder(c), "config")
	if err := vfs.WriteFileAtomic(k.Store.FS, path, []byte(k.config(c, n)), 0o600); err != nil {
		return err
	}
	if err := os.Remove(k.Console(c)); err != nil && !errors.Is(err, fs.ErrNotExist) { // that of the boot before
		return err
	}
	exit, _, errs, err := k.tool(ctx, c, "lxc-start", "-f", path, "-d")
	if err == nil && exit != 0 {
		err = fault.New(fault.Failed, "", "start %s: lxc-start: %s", c.Name, said(errs, exit))
	}
	return err
}

// said returns the first line that a tool printed, or its exit status.
func said(text string, exit int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first == "" {
		return fmt.Sprintf("exit status %d", exit)
	}
	return printable.Text(first)
}

// state returns the state and the init of a container; STOPPED and 0 where LXC knows none.
func (k Kind) state(ctx context.Context, c container.Container) (state string, leader int, err error) {
	exit, out, _, err := k.tool(ctx, c, "lxc-info", "-s", "-p", "-H")
	if err != nil || exit != 0 {
		return stopped, 0, err
	}
	state = stopped
	for _, f := range strings.Fields(out) {
		if n, err := strconv.Atoi(f); err == nil {
			leader = n
		} else {
			state = f
		}
	}
	return state, leader, nil
}

// stopped is the state of a container that does not run.
const stopped = "STOPPED"

// Running implements system.Kind.
func (k Kind) Running(ctx context.Context, c container.Container) (bool, error) {
	if k.Missing() != nil {
		return false, nil
	}
	s, _, err := k.state(ctx, c)
	return s != stopped, err
}

// Leader implements system.Kind.
func (k Kind) Leader(ctx context.Context, c container.Container) (int, error) {
	if k.Missing() != nil {
		return 0, nil
	}
	_, leader, err := k.state(ctx, c)
	return leader, err
}

// Stop implements system.Kind.
func (k Kind) Stop(ctx context.Context, c container.Container) error {
	for asked := false; ; asked = true {
		running, err := k.Running(ctx, c)
		if err != nil || !running {
			return err
		}
		if !asked {
			exit, _, errs, err := k.tool(ctx, c, "lxc-stop", "-t", stopWait)
			if err != nil {
				return err
			}
			if again, rerr := k.Running(ctx, c); exit != 0 && again {
				return errors.Join(rerr, fault.New(fault.Failed, "", "stop %s: lxc-stop: %s", c.Name, said(errs, exit)))
			}
		}
		if err := sleep.For(ctx, system.Poll); err != nil {
			return err
		}
	}
}

// Limit implements system.Kind.
func (k Kind) Limit(ctx context.Context, c container.Container) error {
	for _, l := range k.LimitFiles(c.Limits) {
		exit, _, errs, err := k.tool(ctx, c, "lxc-cgroup", "--", l.File, l.Value)
		if err != nil {
			return err
		}
		if exit != 0 {
			return fault.New(fault.Refused, "", "%s of %s cannot be set to %s: %s", l.File, c.Name, l.Value, said(errs, exit)).WithHint("if it uses more than that now, stop it first")
		}
	}
	return nil
}
