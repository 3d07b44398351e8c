package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/trap"
	"corpus-git/pipeline/journal"
)

// powerCut is what a disk held at some moment of a deployment.
type powerCut struct {
	image, says string
	// reported reports that the client had its answer by then.
	reported bool
}

// cutter takes power cuts of a server's disk at its file-system calls.
type cutter struct {
	m    *crashed
	disk *trap.Disk

	mu    sync.Mutex
	calls int
	at    map[int]bool // at which calls
	// entry is the kind of the journal's entry that was just written, synced that it is durable, or that a ref has moved since.
	entry  journal.Kind
	synced bool
	cuts   []powerCut
	err    error
}

func (c *cutter) decide(call trap.Call) syscall.Errno {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !strings.HasPrefix(call.Path, c.m.root.Path()) {
		return 0
	}
	c.calls++
	// What the journal says must be true as soon as it says so durably.
	moment := c.synced && c.at != nil
	if moment || c.at[c.calls] {
		c.take(fmt.Sprintf("before call %d, %s, after %q", c.calls, call, c.entry), false)
	}
	c.synced = false
	if strings.HasPrefix(call.Path, c.m.state().Journals()) {
		if data, err := call.Data(); err == nil {
			if e, ok := parseEntry(string(data)); ok {
				c.entry = e.Kind
			}
		}
		c.synced = call.Name == "fsync" || call.Name == "fdatasync"
	}
	switch c.entry {
	case journal.Ready:
		c.synced = call.Name == "syncfs"
	case journal.Committing:
		c.synced = c.synced || strings.HasSuffix(call.Path, "/refs/heads/master") && call.Name != "openat" // has moved, has moved durably
	}
	return 0
}

// take takes two cuts: with nothing of what was not synced, and with its names.
func (c *cutter) take(says string, reported bool) {
	for _, names := range []bool{false, true} {
		image, err := c.disk.Cut(names)
		if err != nil {
			c.err = err
			return
		}
		c.cuts = append(c.cuts, powerCut{image, fmt.Sprintf("power fails %s, names=%v", says, names), reported})
	}
}

// begin forgets earlier calls and takes cuts at n of the next among calls many, and where the journal has become durable.
func (c *cutter) begin(n, among int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.at, c.synced = 0, map[int]bool{}, false
	for range n {
		c.at[1+c.m.rng.IntN(among)] = true
	}
}

// end takes no more cuts, and reports how many calls there were.
func (c *cutter) end() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = nil
	return c.calls
}

// TestPowerCut cuts the power of a server's disk, a real ext4 of its own, while a deployment runs and after it was reported,
// and starts the server upon what is left: see check. What was reported as live must be.
func TestPowerCut(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("starts many servers, and mounts file systems as root")
	}
	seed, _, long := crashSettings(t)
	n := 3
	if long {
		n = 30
	}
	for i, k := range kinds {
		if k.name != "good" && k.name != "failing" && k.name != "waiting" && k.name != "pillar" && k.name != "rollback" {
			continue
		}
		if !long && k.name != "good" && k.name != "failing" && k.name != "waiting" {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			disk, err := trap.NewDisk(t.TempDir(), 96)
			if err != nil {
				t.Skipf("no loop mounts here: %v", err)
			}
			t.Cleanup(func() { require.NoError(t, disk.Close()) })
			m := newCrashedAt(t, seed+uint64(i), t.TempDir(), disk.Dir+"/srv")
			m.env = append(m.env, "CORPUS_GIT_DISK_RESERVE=0", "CORPUS_GIT_DISK_RESERVE_PERCENT=0")
			c := &cutter{m: m, disk: disk}
			m.decide = c.decide
			m.prepare()
			// The same once before reports how many calls there are.
			_, _ = m.start(k.make(m))()
			m.settled()
			calls := c.end()
			a := k.make(m)
			m.settled()
			before := m.now()
			m.clear()
			c.begin(n, calls)
			out, err := m.start(a)()
			if (err == nil) != a.good {
				m.fail("undisturbed, it ended with %v:\n%s", err, out)
			}
			c.mu.Lock()
			c.take("after the report", true)
			c.mu.Unlock()
			require.NoError(t, c.err)
			c.end()
			m.kill()
			m.decide = nil
			live := 0
			for i, cut := range c.cuts {
				m.env = append(m.env, fmt.Sprintf("CRASH_BOOT=%d", i)) // the last of a name counts
				end, err := disk.Boot(cut.image)
				require.NoError(t, err)
				m.note("%s", cut.says)
				m.serve()
				is := m.check(before, a)
				if is {
					live++
				}
				if cut.reported && is != a.good {
					m.fail("it was reported, and after a power cut live=%v", is)
				}
				m.kill()
				require.NoError(t, end())
			}
			t.Logf("%d power cuts, %d calls; afterwards the new tree was live %d times", len(c.cuts), calls, live)
		})
	}
}
