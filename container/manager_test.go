package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/container/network"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// machine is a driver whose containers are what was done to them. It fails once where it is told to.
type machine struct {
	done    []string
	running bool
	kept    []string
	failAt  string
	lacks   error
	up      []network.Network
	downs   int
	// busy: a volume cannot grow while the container runs.
	busy bool
}

func (m *machine) do(what string) error {
	if m.failAt == what {
		m.failAt = ""
		return errors.New("power cut")
	}
	m.done = append(m.done, what)
	return nil
}

// A volume is made and reduced while the container is stopped, and enlarged while it runs; what is recorded is what the driver did.
func TestStorage(t *testing.T) {
	d := &machine{running: true}
	m := Manager{Store: Store{Dir: t.TempDir(), FS: vfs.OS{}}, Drivers: map[string]Driver{"fake": d}, Say: func(string) {}}
	require.NoError(t, m.Store.Put(Container{Name: "web1", Driver: "fake", Ready: true, Started: true}))
	set := func(size int64) error {
		d.done = nil
		_, err := m.Storage(t.Context(), "web1", func(int64) (int64, error) { return size, nil })
		return err
	}
	recorded := func() int64 {
		c, err := m.Store.Get("web1")
		require.NoError(t, err)
		return c.Storage
	}
	require.ErrorContains(t, set(2000), "no room")
	require.Empty(t, d.done, "it is not stopped for what fails")
	require.NoError(t, set(100))
	require.Equal(t, []string{"stop", "storage", "start"}, d.done)
	require.NoError(t, set(200))
	require.Equal(t, []string{"storage"}, d.done)
	// Where the kernel allows no growth in use, the container is stopped for it.
	d.busy = true
	require.NoError(t, set(250))
	require.Equal(t, []string{"stop", "storage", "start"}, d.done)
	require.NoError(t, set(200))
	d.failAt = "storage"
	require.ErrorContains(t, set(50), "power cut")
	require.True(t, d.running, "it is started again")
	require.Equal(t, int64(200), recorded())
	require.NoError(t, set(0))
	require.Zero(t, recorded())
}

func (m *machine) Check() error                                          { return m.lacks }
func (m *machine) Create(context.Context, Container, func(string)) error { return m.do("create") }
func (m *machine) Start(context.Context, Container) error {
	err := m.do("start")
	m.running = m.running || err == nil
	return err
}
func (m *machine) Stop(context.Context, Container) error {
	err := m.do("stop")
	m.running = m.running && err != nil
	return err
}
func (m *machine) Running(context.Context, Container) (bool, error)      { return m.running, nil }
func (m *machine) Exec(context.Context, Container, Command) (int, error) { return 0, m.do("exec") }
func (m *machine) Resize(context.Context, Container) error               { return m.do("resize") }
func (m *machine) Restore(_ context.Context, _ Container, id string) error {
	return m.do("restore " + id)
}
func (m *machine) Storage(_ context.Context, c Container, size int64) error {
	if m.running && (c.Storage == 0 || size < c.Storage) {
		return errors.New("it runs")
	}
	if m.running && m.busy {
		return fault.New(fault.Busy, "", "not while it is in use")
	}
	return m.do("storage")
}
func (m *machine) Room(_ Container, size int64) error {
	if size > 1000 && size < 1<<20 {
		return fault.New(fault.Refused, "", "no room")
	}
	return nil
}
func (m *machine) Snapshots(context.Context, Container) ([]string, error) { return m.kept, nil }
func (m *machine) Destroy(context.Context, Container) error               { return m.do("destroy") }
func (m *machine) Address(_ context.Context, c Container) (netip.Addr, error) {
	return c.Address.Addr(), nil
}
func (m *machine) Snapshot(_ context.Context, _ Container, id string) error {
	m.kept = append(m.kept, id)
	return m.do("snapshot " + id)
}
func (m *machine) Forget(_ context.Context, _ Container, id string) error {
	m.kept = slices.DeleteFunc(m.kept, func(k string) bool { return k == id })
	return m.do("forget " + id)
}

func newManager(t *testing.T) (Manager, *machine) {
	dir := t.TempDir()
	d := &machine{}
	return Manager{
		Store: Store{Dir: dir, FS: vfs.OS{}}, Network: network.Store{Path: filepath.Join(dir, "network.json"), FS: vfs.OS{}},
		Drivers: map[string]Driver{"fake": d}, Say: func(string) {},
		Up:   func(n network.Network) error { d.up = append(d.up, n); return nil },
		Down: func(network.Network) error { d.downs++; return nil },
		Dial: (&net.Dialer{}).DialContext,
	}, d
}

// What is interrupted is continued by the same command, as it was begun.
func TestCreateContinues(t *testing.T) {
	ctx := t.Context()
	m, d := newManager(t)
	d.failAt = "create"
	_, err := m.Create(ctx, Container{Name: "web", Driver: "fake", Limits: Limits{Memory: MinMemory}})
	require.ErrorContains(t, err, "power cut")
	require.ErrorContains(t, m.Start(ctx, "web"), "was interrupted")
	require.ErrorContains(t, m.Snapshot(ctx, "web", "one"), "was interrupted")
	_, err = m.Storage(ctx, "web", func(int64) (int64, error) { return 64 << 20, nil })
	require.ErrorContains(t, err, "was interrupted")
	_, err = m.Create(ctx, Container{Name: "web", Driver: "fake"})
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "had other settings: limits", "they would be ignored")
	d.failAt = "start"
	_, err = m.Create(ctx, Container{Name: "web", Driver: "fake", Limits: Limits{Memory: MinMemory}})
	require.ErrorContains(t, err, "power cut")
	c, err := m.Store.Get("web")
	require.NoError(t, err)
	require.Equal(t, Limits{Memory: MinMemory}, c.Limits, "as it was begun")
	require.NoError(t, m.Start(ctx, "web"))
	_, err = m.Create(ctx, Container{Name: "web", Driver: "fake"})
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.Equal(t, "create start", strings.Join(d.done, " "))

	_, err = m.Create(ctx, Container{Name: "Web", Driver: "fake"})
	require.Equal(t, fault.Usage, fault.KindOf(err))
	_, err = m.Create(ctx, Container{Name: "web2", Driver: "docker"})
	require.Equal(t, fault.Usage, fault.KindOf(err))
	_, err = m.Store.Get("web2")
	require.Error(t, err, "nothing is recorded of what is refused")
	_, err = m.Create(ctx, Container{Name: "localhost", Driver: "fake"})
	require.Equal(t, fault.Usage, fault.KindOf(err))
	d.lacks = fault.New(fault.Refused, "", "debootstrap is not installed")
	_, err = m.Create(ctx, Container{Name: "web2", Driver: "fake"})
	require.ErrorContains(t, err, "is not installed")
	_, err = m.Store.Get("web2")
	require.Error(t, err, "nothing is recorded where a tool is missing")
}

// A machine that exists is recorded without a network; one that could not be reached leaves nothing.
func TestCreateOfAMachine(t *testing.T) {
	m, d := newManager(t)
	m.Drivers["full"] = fullMachine{d}
	_, err := m.Create(t.Context(), Container{Name: "db", Driver: "full", Target: "root@host"})
	require.Equal(t, fault.Busy, fault.KindOf(err), "%v", err)
	require.NotContains(t, err.Error(), "there is no container")
	_, err = m.Store.Get("db")
	require.Error(t, err)
	c, err := m.Create(t.Context(), Container{Name: "db", Driver: "fake", Target: "root@host"})
	require.NoError(t, err)
	require.True(t, c.Ready)
	require.Empty(t, d.up)
	require.Equal(t, "create start", strings.Join(d.done, " "))
}

// A machine whose network cannot be made, or that has no room, is told so, and has nothing of the container.
func TestCreateLeavesNothing(t *testing.T) {
	m, d := newManager(t)
	up := m.Up
	m.Up = func(network.Network) error { return fault.New(fault.Refused, "", "no nftables") }
	_, err := m.Create(t.Context(), Container{Name: "web", Driver: "fake"})
	require.ErrorContains(t, err, "no nftables")
	require.Empty(t, d.done)
	require.Equal(t, 1, d.downs)
	left := func() []string {
		left, err := filepath.Glob(filepath.Join(m.Store.Dir, "machines", "*"))
		require.NoError(t, err)
		return left
	}
	require.Empty(t, left())
	m.Up = up
	m.Drivers["full"] = fullMachine{d}
	_, err = m.Create(t.Context(), Container{Name: "web", Driver: "full"})
	require.Equal(t, fault.Busy, fault.KindOf(err))
	require.Empty(t, left())
	require.Equal(t, 2, d.downs, "its network goes, too")
	_, err = m.Create(t.Context(), Container{Name: "web", Driver: "fake"})
	require.NoError(t, err)
	require.Empty(t, left()[1:])
	// A container that is there keeps the network.
	m.Up = func(network.Network) error { return fault.New(fault.Refused, "", "no nftables") }
	_, err = m.Create(t.Context(), Container{Name: "web2", Driver: "fake"})
	require.Error(t, err)
	require.Equal(t, 2, d.downs)
}

// fullMachine is a machine whose file system is full.
type fullMachine struct{ *machine }

func (fullMachine) Create(context.Context, Container, func(string)) error {
	return fault.New(fault.Busy, "", "no room")
}

func TestSnapshots(t *testing.T) {
	ctx := t.Context()
	m, d := newManager(t)
	_, err := m.Create(ctx, Container{Name: "web", Driver: "fake"})
	require.NoError(t, err)
	d.done = nil
	require.NoError(t, m.Snapshot(ctx, "web", "one"))
	require.Equal(t, []string{"stop", "snapshot one", "start"}, d.done, "one that ran runs again")
	d.done, d.failAt = nil, "restore one"
	require.Error(t, m.Restore(ctx, "web", "one"))
	require.Equal(t, []string{"stop", "start"}, d.done, "also where it fails")
	require.NoError(t, m.Stop(ctx, "web"))
	d.done = nil
	require.NoError(t, m.Restore(ctx, "web", "one"))
	require.Equal(t, []string{"restore one"}, d.done, "one that did not run does not")
	require.Equal(t, fault.Refused, fault.KindOf(m.Snapshot(ctx, "web", "one")))
	require.Equal(t, fault.Refused, fault.KindOf(m.Restore(ctx, "web", "two")))
	require.Equal(t, fault.Usage, fault.KindOf(m.Snapshot(ctx, "web", "../one")))
	require.NoError(t, m.Forget(ctx, "web", "one"))
	require.Equal(t, fault.Refused, fault.KindOf(m.Forget(ctx, "web", "one")))
}

// A destroyed container leaves nothing, whenever that is interrupted.
func TestDestroy(t *testing.T) {
	ctx := t.Context()
	m, d := newManager(t)
	for _, at := range []string{"", "stop", "destroy"} {
		_, err := m.Create(ctx, Container{Name: "web", Driver: "fake"})
		require.NoError(t, err)
		if d.failAt = at; at != "" {
			require.ErrorContains(t, m.Destroy(ctx, "web", nil), "power cut")
		}
		require.NoError(t, m.Destroy(ctx, "web", nil))
		list, err := m.Store.List()
		require.NoError(t, err)
		require.Empty(t, list)
		left, err := filepath.Glob(filepath.Join(m.Store.Dir, "machines", "*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
	require.Equal(t, fault.Refused, fault.KindOf(m.Destroy(ctx, "web", nil)))
	require.Equal(t, 3, d.downs, "the network goes with its last container")
}

// A call that was killed after it had removed the record left files without a name: the next one removes them.
func TestDestroyTheRest(t *testing.T) {
	m, _ := newManager(t)
	rest := filepath.Join(m.Store.Dir, "machines", "web.trash", "root")
	require.NoError(t, os.MkdirAll(rest, 0o700))
	require.NoError(t, m.Destroy(t.Context(), "web", nil))
	require.NoDirExists(t, filepath.Dir(rest))
}

// Nothing of a container is removed while another command works on it, and nobody else is told that it is gone.
func TestDestroyBusy(t *testing.T) {
	m, _ := newManager(t)
	_, err := m.Create(t.Context(), Container{Name: "web", Driver: "fake"})
	require.NoError(t, err)
	unlock, err := m.Store.Lock("web")
	require.NoError(t, err)
	require.Equal(t, fault.Busy, fault.KindOf(m.Destroy(t.Context(), "web", func() error { t.Error("told"); return nil })))
	unlock()
	require.ErrorContains(t, m.Destroy(t.Context(), "web", func() error { return errors.New("the node is in use") }), "in use")
	_, err = m.Store.Get("web")
	require.NoError(t, err)
}

// A snapshot, or a change of the volume, was killed while the container was stopped for it: the next one starts it again.
func TestPausedByAnotherCall(t *testing.T) {
	ctx := t.Context()
	m, d := newManager(t)
	_, err := m.Create(ctx, Container{Name: "web", Driver: "fake"})
	require.NoError(t, err)
	d.running = false
	require.NoError(t, m.Snapshot(ctx, "web", "one"))
	require.True(t, d.running)
	d.running = false
	require.Equal(t, fault.Refused, fault.KindOf(m.Snapshot(ctx, "web", "one")), "it was killed just after the snapshot")
	require.True(t, d.running)
	d.running = false
	_, err = m.Storage(ctx, "web", func(int64) (int64, error) { return 0, fault.New(fault.Refused, "", "no volume") })
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.True(t, d.running)
	d.running = false
	_, err = m.Storage(ctx, "web", func(int64) (int64, error) { return 100, nil })
	require.NoError(t, err)
	require.True(t, d.running)
}

// The kernel has what is recorded after each call, also where an earlier one was killed between the two, or somebody removed the rules. A port is switched only to a
// container that answers.
func TestPublished(t *testing.T) {
	ctx := t.Context()
	m, d := newManager(t)
	_, err := m.Create(ctx, Container{Name: "web1", Driver: "fake"})
	require.NoError(t, err)
	_, err = m.Create(ctx, Container{Name: "web2", Driver: "fake"})
	require.NoError(t, err)
	to := func() (out []string) {
		for _, p := range d.up[len(d.up)-1].Ports {
			out = append(out, fmt.Sprintf("%d %s", p.Listen, p.Container))
		}
		return out
	}
	m.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
	require.NoError(t, m.Publish(ctx, "web1", 80, 8080))
	require.Equal(t, []string{"80 web1"}, to())
	d.up = nil
	require.NoError(t, m.Publish(ctx, "web1", 80, 8080))
	require.Equal(t, []string{"80 web1"}, to(), "again")
	err = m.Publish(ctx, "web2", 80, 8080)
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "nothing answers at port 8080 of web2, and port 80 is answered by web1")
	require.Equal(t, []string{"80 web1"}, to())
	m.Dial = func(context.Context, string, string) (net.Conn, error) { a, _ := net.Pipe(); return a, nil }
	require.NoError(t, m.Publish(ctx, "web2", 80, 8080))
	require.Equal(t, []string{"80 web2"}, to())
	require.NoError(t, m.Unpublish(80))
	require.Empty(t, to())
	d.up = nil
	require.Equal(t, fault.Refused, fault.KindOf(m.Unpublish(80)))
	require.Empty(t, to(), "the rule of a call that was killed goes")
	d.running = false
	require.Equal(t, fault.Refused, fault.KindOf(m.Publish(ctx, "web1", 80, 8080)), "it does not run")
	unlock, err := m.Store.Lock("web1")
	require.NoError(t, err)
	require.Equal(t, fault.Busy, fault.KindOf(m.Publish(ctx, "web1", 80, 8080)), "it may be being destroyed")
	unlock()
}

// Two commands do not work on one container.
func TestOneAtATime(t *testing.T) {
	ctx := t.Context()
	m, _ := newManager(t)
	_, err := m.Create(ctx, Container{Name: "web", Driver: "fake"})
	require.NoError(t, err)
	unlock, err := m.Store.Lock("web")
	require.NoError(t, err)
	defer unlock()
	require.Equal(t, fault.Busy, fault.KindOf(m.Stop(ctx, "web")))
}
