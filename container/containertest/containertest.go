// Package containertest contains the tests that every container driver must pass.
//
// It tests the contract of container.Driver on real containers: the tests need root, and some minutes if a base system has to be made.
package containertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/container"
	"corpus-git/internal/fault"
)

// Subject is a driver, and its properties.
type Subject struct {
	// Driver returns the driver as another process would see it: two of them share no state.
	Driver func() container.Driver
	// Container does not exist yet; a driver for existing machines has a machine for it.
	Container container.Container
	// Machine reports that it is an existing machine: it can't be stopped, resized or copied.
	Machine bool
	// Put records a container, as commands do.
	Put func(t *testing.T, c container.Container)
}

// timeout is how long a test waits for what must come.
const timeout = 30 * time.Second

// Run runs the tests. They are one sequence, since booting takes time.
func Run(t *testing.T, s Subject) {
	ctx, c := t.Context(), s.Container
	say := func(string) {}
	t.Cleanup(func() { // also if the sequence ends early
		if s.Machine {
			return
		}
		_ = s.Driver().Stop(context.WithoutCancel(ctx), c)
		_ = s.Driver().Destroy(context.WithoutCancel(ctx), c)
	})
	s.Put(t, c)

	// An interrupted creation is continued.
	stopped, stop := context.WithCancelCause(ctx)
	stop(errors.New("interrupted"))
	require.Error(t, s.Driver().Create(stopped, c, say))
	require.NoError(t, s.Driver().Create(ctx, c, say))
	require.NoError(t, s.Driver().Create(ctx, c, say), "what is there is no error")
	if !s.Machine {
		running, err := s.Driver().Running(ctx, c)
		require.NoError(t, err)
		require.False(t, running)
		_, err = s.Driver().Exec(ctx, c, container.Command{Argv: []string{"true"}})
		require.Equal(t, fault.Refused, fault.KindOf(err), "%v", err)
	}
	require.NoError(t, s.Driver().Start(ctx, c))
	require.NoError(t, s.Driver().Start(ctx, c), "what runs is no error")
	running, err := s.Driver().Running(ctx, c)
	require.NoError(t, err)
	require.True(t, running)

	s.exec(t)
	s.address(t)
	if s.Machine {
		s.machine(t)
		return
	}
	s.resize(t)
	s.snapshot(t)
	s.storage(t)
	require.NoError(t, s.Driver().Start(ctx, c))
	require.Equal(t, fault.Refused, fault.KindOf(s.Driver().Destroy(ctx, c)), "one that runs is not destroyed")
	require.NoError(t, s.Driver().Stop(ctx, c))
	require.NoError(t, s.Driver().Stop(ctx, c), "what is stopped is no error")
	require.NoError(t, s.Driver().Destroy(ctx, c))
	require.NoError(t, s.Driver().Destroy(ctx, c), "what is gone is no error")
}

// Sh runs a script in the container, which must succeed, and returns what it printed.
func (s Subject) Sh(t *testing.T, script string) string {
	t.Helper()
	var out, errw bytes.Buffer
	exit, err := s.Driver().Exec(t.Context(), s.Container, container.Command{Argv: []string{"sh", "-euc", script}, Stdout: &out, Stderr: &errw})
	require.NoError(t, err)
	require.Zero(t, exit, "%s\n%s%s", script, out.String(), errw.String())
	return out.String()
}

func (s Subject) exec(t *testing.T) {
	t.Helper()
	require.Equal(t, "0\n", s.Sh(t, "id -u"))
	var out, errw bytes.Buffer
	exit, err := s.Driver().Exec(t.Context(), s.Container, container.Command{
		Argv: []string{"sh", "-c", `cat; echo "$1" >&2; exit 7`, "sh", "it's $HOME; a\nline"}, Stdin: strings.NewReader("given\n"), Stdout: &out, Stderr: &errw,
	})
	require.NoError(t, err)
	require.Equal(t, 7, exit)
	require.Equal(t, "given\n", out.String())
	require.Equal(t, "it's $HOME; a\nline\n", errw.String(), "words arrive as they are")
	require.Equal(t, "/root", strings.TrimSpace(s.Sh(t, `echo "$HOME"`)))

	if s.Machine {
		return // a cancelled command may keep running there
	}
	// A cancelled command ends in the container, too.
	ctx, cancel := context.WithCancelCause(t.Context())
	started := &signalling{found: make(chan struct{})}
	go func() {
		<-started.found
		cancel(errors.New("enough"))
	}()
	_, err = s.Driver().Exec(ctx, s.Container, container.Command{Argv: []string{"sh", "-c", "echo begun; exec sleep 86399"}, Stdout: started})
	require.ErrorContains(t, err, "enough")
	require.Eventually(t, func() bool {
		exit, err := s.Driver().Exec(t.Context(), s.Container, container.Command{Argv: []string{"sh", "-c", "! grep -qsz '^86399$' /proc/[0-9]*/cmdline"}})
		return err == nil && exit == 0
	}, timeout, 100*time.Millisecond, "the command runs on")
}

// signalling reports when something is written.
type signalling struct {
	found chan struct{}
	once  bool
}

// Write implements io.Writer.
func (s *signalling) Write(p []byte) (int, error) {
	if !s.once {
		s.once = true
		close(s.found)
	}
	return len(p), nil
}

// address checks that other machines reach the container's services at the address returned by Address.
func (s Subject) address(t *testing.T) {
	t.Helper()
	a, err := s.Driver().Address(t.Context(), s.Container)
	require.NoError(t, err)
	if s.Machine {
		return // its ssh server was reached at its own port
	}
	dial := func() bool {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", net.JoinHostPort(a.String(), "22"))
		if err != nil {
			return false
		}
		defer conn.Close()
		said := make([]byte, 4)
		_ = conn.SetDeadline(time.Now().Add(timeout))
		_, err = conn.Read(said)
		return err == nil && string(said) == "SSH-"
	}
	require.Eventually(t, dial, timeout, 100*time.Millisecond, "no ssh server at %s", a)
}

func (s Subject) resize(t *testing.T) {
	t.Helper()
	small := s.Container
	small.Limits = container.Limits{Memory: 256 << 20, CPUs: 0.5}
	require.NoError(t, s.Driver().Resize(t.Context(), small))
	// More memory than that is not available: the kernel kills a process that uses more, or the container's own limits show it.
	var out bytes.Buffer
	exit, err := s.Driver().Exec(t.Context(), s.Container, container.Command{
		Argv: []string{"systemd-run", "--quiet", "--wait", "--pipe", "-p", "OOMPolicy=continue", "sh", "-c", "head -c 600000000 /dev/zero | tail -c 600000000 | wc -c"}, Stdout: &out, Stderr: &out,
	})
	require.NoError(t, err)
	require.NotEqual(t, "600000000", strings.TrimSpace(out.String()), "exit status %d: it got the memory", exit)
	require.NoError(t, s.Driver().Resize(t.Context(), s.Container))
	require.Equal(t, "600000000\n", s.Sh(t, "systemd-run --quiet --wait --pipe sh -c 'head -c 600000000 /dev/zero | tail -c 600000000 | wc -c'"))
}

func (s Subject) snapshot(t *testing.T) {
	t.Helper()
	ctx, c := t.Context(), s.Container
	s.Sh(t, "echo old >/root/file; chown 1234:1234 /root/file; chmod 640 /root/file; sync")
	require.Equal(t, fault.Refused, fault.KindOf(s.Driver().Snapshot(ctx, c, "before")), "one that runs is not copied")
	require.NoError(t, s.Driver().Stop(ctx, c))
	require.NoError(t, s.Driver().Snapshot(ctx, c, "before"))
	require.Equal(t, fault.Refused, fault.KindOf(s.Driver().Snapshot(ctx, c, "before")), "a name is used once")
	require.Equal(t, fault.Refused, fault.KindOf(s.Driver().Restore(ctx, c, "after")))
	require.NoError(t, s.Driver().Start(ctx, c))
	s.Sh(t, "echo new >/root/file; touch /root/more; sync")
	require.NoError(t, s.Driver().Stop(ctx, c))
	require.NoError(t, s.Driver().Restore(ctx, c, "before"))
	require.NoError(t, s.Driver().Start(ctx, c))
	require.Equal(t, "old\n1234:1234 640\n", s.Sh(t, "cat /root/file; stat -c '%u:%g %a' /root/file; test ! -e /root/more"))
	require.NoError(t, s.Driver().Stop(ctx, c))
	list, err := s.Driver().Snapshots(ctx, c)
	require.NoError(t, err)
	require.Equal(t, []string{"before"}, list)
	require.NoError(t, s.Driver().Forget(ctx, c, "before"))
	list, err = s.Driver().Snapshots(ctx, c)
	require.NoError(t, err)
	require.Empty(t, list)
}

// storage checks a volume of a stopped container: it is made, enlarged while it is in use, reduced while it is not, and removed.
func (s Subject) storage(t *testing.T) {
	t.Helper()
	ctx, c, d := t.Context(), s.Container, s.Driver()
	require.NoError(t, d.Storage(ctx, c, 64<<20))
	s.Container.Storage = 64 << 20
	with := s.Container
	s.Put(t, with)
	require.NoError(t, d.Start(ctx, with))
	size := func() int {
		var n int
		_, err := fmt.Sscan(s.Sh(t, "df --output=size -B1M "+container.StoragePath+" | tail -n 1"), &n)
		require.NoError(t, err)
		return n
	}
	small := size()
	// One that starts while the volume is in use does not keep it in use.
	other := s.Container
	other.Name, other.Storage, other.Address = c.Name+"2", 0, netip.PrefixFrom(c.Address.Addr().Next(), c.Address.Bits())
	s.Put(t, other)
	t.Cleanup(func() {
		_ = d.Stop(context.WithoutCancel(ctx), other)
		_ = d.Destroy(context.WithoutCancel(ctx), other)
	})
	require.NoError(t, d.Create(ctx, other, func(string) {}))
	require.NoError(t, d.Start(ctx, other))
	defer func() {
		require.NoError(t, d.Stop(ctx, other))
		require.NoError(t, d.Destroy(ctx, other))
	}()
	require.Less(t, small, 65)
	s.Sh(t, "head -c 20000000 /dev/urandom >/storage/data; sha256sum /storage/data >/storage/sum; sync")
	if err := d.Storage(ctx, with, 128<<20); fault.KindOf(err) == fault.Busy { // this machine allows it only while it is stopped
		require.NoError(t, d.Stop(ctx, with))
		require.NoError(t, d.Storage(ctx, with, 128<<20))
		require.NoError(t, d.Start(ctx, with))
	} else {
		require.NoError(t, err)
	}
	with.Storage = 128 << 20
	require.Greater(t, size(), small+50, "enlarged")
	require.Equal(t, fault.Refused, fault.KindOf(d.Storage(ctx, with, 64<<20)), "not reduced while it is in use")
	require.Equal(t, fault.Refused, fault.KindOf(d.Storage(ctx, with, 1<<50)), "there is no such machine")
	require.NoError(t, d.Stop(ctx, with))
	require.Equal(t, fault.Refused, fault.KindOf(d.Storage(ctx, with, 16<<20)), "it holds more than that")
	require.NoError(t, d.Storage(ctx, with, 96<<20))
	with.Storage = 96 << 20
	s.Put(t, with)
	require.NoError(t, d.Start(ctx, with))
	s.Sh(t, "sha256sum -c /storage/sum")
	require.Less(t, size(), 97)
	require.Equal(t, fault.Refused, fault.KindOf(d.Storage(ctx, with, 0)), "not removed while it is in use")
	require.NoError(t, d.Stop(ctx, with))
	require.NoError(t, d.Storage(ctx, with, 0))
	s.Put(t, c)
}

// machine checks that operations not supported for a machine are refused, and that Destroy does not change it.
func (s Subject) machine(t *testing.T) {
	t.Helper()
	ctx, c := t.Context(), s.Container
	resized := c
	resized.Limits = container.Limits{Memory: 256 << 20}
	for what, err := range map[string]error{
		"resize": s.Driver().Resize(ctx, resized), "snapshot": s.Driver().Snapshot(ctx, c, "a"), "restore": s.Driver().Restore(ctx, c, "a"), "stop": s.Driver().Stop(ctx, c), "storage": s.Driver().Storage(ctx, c, 64<<20),
	} {
		require.Equal(t, fault.Refused, fault.KindOf(err), "%s: %v", what, err)
	}
	s.Sh(t, "echo here >/root/containertest")
	require.NoError(t, s.Driver().Destroy(ctx, c))
	require.Equal(t, "here\n", s.Sh(t, "cat /root/containertest; rm /root/containertest"), "the machine is as it was")
}
