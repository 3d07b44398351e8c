package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/draw"
)

// action is something that changes what is live, and dies in the middle.
type action struct {
	cmd          *exec.Cmd
	good         bool   // it goes live if nothing kills it
	code, pillar string // the branches, once it is live
	trees        string // the manifest, once it is live, where it is known beforehand
}

// kinds are the actions to die in. Each makes its own preparations on a server that is up.
var kinds = []struct {
	name string
	make func(m *crashed) action
}{
	{"first", func(m *crashed) action {
		m.commits++
		name := fmt.Sprintf("first%d", m.commits)
		m.create(name)
		m.grant(name)
		c := m.commit("code", false)
		return action{cmd: m.pushCommand("code", "HEAD:master"), good: true, code: c}
	}},
	{"good", func(m *crashed) action {
		c := m.commit("code", false)
		return action{cmd: m.pushCommand("code", "HEAD:master"), good: true, code: c, pillar: m.branch("pillar")}
	}},
	{"failing", func(m *crashed) action {
		m.commit("code", true)
		return action{cmd: m.pushCommand("code", "HEAD:master")}
	}},
	{"waiting", func(m *crashed) action { // waits for a signal that never comes, and goes on; killed meanwhile, it is continued
		m.write("code", ".salt/waits.yaml", "soon: {step: 020_title, timeout: 20ms, on_failure: continue}\n")
		c := m.commit("code", false)
		return action{cmd: m.pushCommand("code", "HEAD:master"), good: true, code: c, pillar: m.branch("pillar")}
	}},
	{"pillar", func(m *crashed) action {
		c := m.commit("pillar", false)
		return action{cmd: m.pushCommand("pillar", "HEAD:master"), good: true, pillar: c, code: m.branch("code")}
	}},
	{"failing pillar", func(m *crashed) action {
		m.commit("pillar", true)
		return action{cmd: m.pushCommand("pillar", "HEAD:master")}
	}},
	{"redeploy", func(m *crashed) action {
		return action{cmd: m.pushCommand("code", m.branch("code")+":refs/deploy/now"), good: true, code: m.branch("code"), pillar: m.branch("pillar")}
	}},
	{"older", func(m *crashed) action { // goes back over the newest release, and undoes what that changed outside of the tree
		was := m.now()
		m.goLive("code")
		return action{cmd: m.pushCommand("code", was.code+":master"), good: true, code: was.code, pillar: was.pillar}
	}},
	{"rollback", func(m *crashed) action {
		was := m.now()
		m.goLive("code")
		// Over ssh: a command on the machine would do it itself if the server died before it was asked.
		host, port, _ := strings.Cut(m.addr, ":")
		cmd := exec.CommandContext(m.t.Context(), "sh", "-c", "exec $GIT_SSH_COMMAND -p "+port+" deploy@"+host+" rollback "+m.project)
		cmd.Env, cmd.Dir = m.env, m.dir
		return action{cmd: cmd, good: true, code: was.code, pillar: was.pillar, trees: was.trees}
	}},
}

func (m *crashed) pushCommand(repo, refspec string) *exec.Cmd {
	return m.gitCommand(repo, "push", "-q", "-f", m.remote(repo), refspec)
}

// goLive pushes a new commit that nothing kills.
func (m *crashed) goLive(repo string) {
	m.t.Helper()
	c := m.commit(repo, false)
	cmd := m.pushCommand(repo, "HEAD:master")
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.fail("a push that nothing disturbs: %v\n%s", err, out)
	}
	if got := m.branch(repo); got != c {
		m.fail("a push that nothing disturbs left the branch at %q", got)
	}
}

// prepare makes a project in which code, pillar and untracked files are live.
func (m *crashed) prepare() {
	m.serve()
	m.goLive("code")
	m.uploads()
	m.goLive("pillar")
}

// act runs an action to its end or to the server's; the output is for a failure's report.
func (m *crashed) start(a action) (wait func() (string, error)) {
	var out bytes.Buffer
	a.cmd.Stdout, a.cmd.Stderr = &out, &out
	require.NoError(m.t, a.cmd.Start())
	return func() (string, error) {
		err := a.cmd.Wait()
		return out.String(), err
	}
}

// clear forgets what earlier actions said.
func (m *crashed) clear() {
	m.disarm()
	for _, name := range []string{"new", "points"} {
		if err := os.Remove(m.hook + "/" + name); err != nil && !os.IsNotExist(err) {
			require.NoError(m.t, err)
		}
	}
}

func (m *crashed) points() []string {
	text, _ := os.ReadFile(m.hook + "/points")
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// recovered checks after a restart, restarts once more, and sees that this changes nothing.
func (m *crashed) recovered(before moment, a action) (live bool) {
	m.t.Helper()
	live = m.check(before, a)
	once := m.durable()
	m.kill()
	m.kills++
	m.serve()
	if twice := m.durable(); once != twice {
		m.fail("a second restart changed:\n%s", difference(once, twice))
	}
	return live
}

// tally is what the summary says.
type tally struct{ kills, boundaries, recoveries, calls, random, live, old atomic.Int64 }

// TestCrash kills the server and looks at what is left: see check, leaks and recovered. CORPUS_GIT_CRASH_KILLS is how many
// random kills there are (25), CORPUS_GIT_CRASH_SEED what its choices begin with, CORPUS_GIT_CRASH_KEEP names a folder that gets
// the whole state after a failure.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("kills hundreds of servers")
	}
	seed, random, long := crashSettings(t)
	begun := time.Now()
	var sum tally
	t.Run("at", func(t *testing.T) {
		for i, k := range kinds {
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				m := newCrashed(t, seed+uint64(i))
				defer func() { sum.kills.Add(int64(m.kills)) }()
				m.prepare()
				// Each way to end has its recoveries killed; in a long run (100 random kills and more) every action has.
				deep := long || k.name == "good" || k.name == "failing" || k.name == "rollback"
				atEveryBoundary(m, k.make, deep, &sum)

			})
		}
		// In a bounded run a share of the steps.
		each, share := 1, uint32(12)
		if long {
			each, share = 3, 1
		}
		for i, k := range works() {
			t.Run("calls of "+k.name, func(t *testing.T) {
				t.Parallel()
				m := newCrashed(t, seed+50+uint64(i))
				m.watch = newWatcher(m, share)
				m.decide = m.watch.decide
				defer func() { sum.kills.Add(int64(m.kills)) }()
				m.prepare()
				atEveryCall(m, k, each, &sum)
			})
		}
		workers := 2
		if long {
			workers = 4
		}
		for w := range workers {
			t.Run(fmt.Sprintf("random moments %d", w), func(t *testing.T) {
				t.Parallel()
				m := newCrashed(t, seed+100+uint64(w))
				// Maintenance soon after each deployment, and always something to do for it.
				m.env = append(m.env, "CORPUS_GIT_MAINTENANCE_QUIET=100ms", "CORPUS_GIT_MAINTENANCE_MAX_PACKS=2", "CORPUS_GIT_MAINTENANCE_MAX_LOOSE_REFS=2",
					"CORPUS_GIT_MAINTENANCE_PRUNE_AFTER=1s", "CORPUS_GIT_MAINTENANCE_PRUNE_INTERVAL=1s")
				defer func() { sum.kills.Add(int64(m.kills)) }()
				m.prepare()
				atRandomMoments(m, (random+w)/workers, &sum)

			})
		}
	})
	t.Logf("%d kills in %s: %d at journal boundaries, %d at boundaries of recoveries, %d at file-system calls, %d at random moments; afterwards %d times the old tree was live, %d times the new one",
		sum.kills.Load(), time.Since(begun).Round(time.Second), sum.boundaries.Load(), sum.recoveries.Load(), sum.calls.Load(), sum.random.Load(), sum.old.Load(), sum.live.Load())
}

// crashSettings are those of the environment: see TestCrash.
func crashSettings(t *testing.T) (seed uint64, random int, long bool) {
	seed, random = draw.Seed(t), 25
	if s := os.Getenv("CORPUS_GIT_CRASH_KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		random = n
	}
	return seed, random, random >= 100
}

// atEveryBoundary lets the action die at its first boundary, at its second, and so on, until it lives through all of them.
// Where deep is wanted each recovery dies at its first boundary, the next at its second, and so on.
func atEveryBoundary(m *crashed, prepare func(*crashed) action, deep bool, sum *tally) {
	m.t.Helper()
	for n := 0; ; n++ {
		a := prepare(m)
		before := m.now()
		m.clear()
		m.arm(n)
		out, err := m.start(a)()
		armed := m.armed()
		if armed {
			// It came to its end.
			m.disarm()
			if (err == nil) != a.good {
				m.fail("undisturbed, it ended with %v:\n%s", err, out)
			}
			if live := m.recovered(before, a); live != a.good {
				m.fail("undisturbed, live=%v", live)
			}
			if n < 7 {
				m.fail("there were only %d boundaries", n)
			}
			return
		}
		m.died(<-m.ended)
		m.server = nil
		sum.boundaries.Add(1)
		points := m.points()
		m.note("killed at boundary %d, %s", n, points[len(points)-1])
		why := reason(points)
		for r := 0; ; r++ {
			if deep {
				m.arm(r)
			}
			m.begin()
			if m.up() {
				break
			}
			sum.recoveries.Add(1)
			points := m.points()
			m.note("recovery killed at its boundary %d, %s", r, points[len(points)-1])
		}
		m.disarm()
		if m.recovered(before, a) {
			sum.live.Add(1)
		} else {
			if points[len(points)-1] == "waiting" && !deep {
				m.fail("it waited, and was not continued")
			}
			sum.old.Add(1)
			// However often the recovery died, the record says where the deployment did.
			if got := m.records()[0].Result.Reason; !strings.Contains(got, why) {
				m.fail("the record says %q, not %q", got, why)
			}
		}
		m.fix()
	}
}

// reason is what the record must say of a deployment that died at the last of these boundaries.
func reason(points []string) string {
	last := points[len(points)-1]
	switch name, begin := strings.CutPrefix(last, "begin "); {
	case last == "ended":
		return "failed in 030_check"
	case slices.Contains(points, "failing install"):
		return "the server stopped after it had failed in 030_check, state check"
	case slices.Contains(points, "waiting"): // its continuation died where it did
		return "the server stopped "
	case begin:
		return "the server stopped in " + name
	case last == "ready":
		return "the server stopped before the branch moved"
	}
	return "the server stopped before it began"
}

// fix is the next push: it works and goes live.
func (m *crashed) fix() {
	m.t.Helper()
	if m.branch("pillar") != "" && m.git("pillar", "rev-parse", "HEAD") != m.branch("pillar") {
		m.goLive("pillar")
	}
	m.goLive("code")
}

func (m *crashed) armed() bool {
	_, err := os.Stat(m.hook + "/arm")
	return err == nil
}

// atRandomMoments kills the server n times while it works, or while it recovers.
func atRandomMoments(m *crashed, n int, sum *tally) {
	m.t.Helper()
	usual := map[string]time.Duration{}
	ready := 300 * time.Millisecond
	for done := 0; done < n; {
		k := kinds[m.rng.IntN(len(kinds))]
		if k.name == "first" && m.rng.IntN(3) > 0 {
			continue
		}
		back := m.project
		a := k.make(m)
		before := m.now()
		m.clear()
		if usual[k.name] == 0 {
			usual[k.name] = 700 * time.Millisecond
		}
		after := time.Duration(m.rng.Int64N(int64(usual[k.name] * 5 / 4)))
		begun := time.Now()
		wait := m.start(a)
		ended := make(chan error, 1)
		var out string
		go func() {
			text, err := wait()
			out = text
			ended <- err
		}()
		whole := false
		select {
		case err := <-ended:
			whole = true
			usual[k.name] = (usual[k.name]*3 + time.Since(begun)*5/4) / 4
			if (err == nil) != a.good {
				m.fail("undisturbed, it ended with %v:\n%s", err, out)
			}
		case <-time.After(after):
		}
		if whole && m.rng.IntN(2) == 0 {
			// What goes on in the background: archives are packed and removed, repositories are maintained.
			time.Sleep(time.Duration(m.rng.Int64N(int64(600 * time.Millisecond))))
		}
		m.kill()
		m.kills++
		done++
		sum.random.Add(1)
		m.note("%s killed %s after it began (usually %s)", k.name, time.Since(begun), usual[k.name])
		if !whole {
			<-ended
			usual[k.name] = usual[k.name] * 21 / 20
		}
		for done < n && m.rng.IntN(3) > 0 {
			begun := time.Now()
			m.begin()
			up := make(chan bool, 1)
			after := time.Duration(m.rng.Int64N(int64(ready)))
			go func() { time.Sleep(after); up <- true }()
			<-up
			m.kill()
			m.kills++
			done++
			sum.random.Add(1)
			m.note("restart killed after %s", time.Since(begun))
		}
		started := time.Now()
		m.serve()
		ready = (ready*3 + time.Since(started)) / 4
		live := m.recovered(before, a)
		if whole && live != a.good {
			m.fail("undisturbed, live=%v", live)
		}
		if live {
			sum.live.Add(1)
		} else {
			sum.old.Add(1)
		}
		m.fix()
		if back != m.project {
			m.must("project", "destroy", m.project, "--yes")
			m.use(back)
		}
	}
}
