package main

import (
	"hash/fnv"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/internal/trap"
)

// watcher sees each file-system call of the server that changes something below its root, and kills the server at one.
//
// A step is what such calls have in common: the phase of the deployment, as the journal tells it, the name of the call, and
// its path without what is drawn by lot. Many calls in a row are one step: a tree that is copied, a trash that is emptied.
type watcher struct {
	root, journal string

	mu    sync.Mutex
	phase string
	// each is at how many calls of one step the server is killed, in as many runs; 0 never.
	each int
	// share of all steps, by a number that is drawn: one in so many.
	share, draw uint32
	// phases are those in which it is killed; nil are all.
	phases []string
	seen   map[string]int // in this run
	died   map[string]int // how often it was killed at a step
	last   string         // the step that it was killed at, "" where it lives
}

func newWatcher(m *crashed, share uint32) *watcher {
	return &watcher{root: m.root.Path(), journal: m.state().Journals(), share: share, draw: m.rng.Uint32(), died: map[string]int{}}
}

// begin starts a run in a phase.
func (w *watcher) begin(phase string, each int, phases ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase, w.each, w.phases, w.seen, w.last = phase, each, phases, map[string]int{}, ""
}

// rest kills no more in this run.
func (w *watcher) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.each = 0
}

// steps are those of the last run, and those that the server was killed at in all.
func (w *watcher) steps() (seen, died []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.seen)), slices.Sorted(maps.Keys(w.died))
}

// fell is the step at which the server was killed in this run.
func (w *watcher) fell() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// drawn reports whether a step is among the share.
func (w *watcher) drawn(step string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(step)) // never fails
	return (h.Sum32()+w.draw)%w.share == 0
}

// lot is what a name has by lot or by the clock.
var lot = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}_[0-9]{2}_[0-9]{2}-[0-9]{2}|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{38,64}|[0-9a-f]{16}|\b[0-9a-f]{2}/|[0-9]+`)

// inTree is what is in a tree, however it is called for the moment.
var inTree = regexp.MustCompile(`/(project|pillar|project\.failed|pillar\.failed|data)/.*`)

// step is the name of a step, "" for calls that do not count: the database and event logs, which are told from the journal.
func (w *watcher) step(c trap.Call) string {
	rel, ok := strings.CutPrefix(c.Path, w.root+"/")
	if !ok || strings.Contains(rel, "corpus-git.db") || strings.HasPrefix(rel, ".corpus-git/events/") || rel == ".corpus-git/server.log" {
		return ""
	}
	if c.Name == "mkdirat" || c.Name == "unlinkat" {
		if _, err := os.Lstat(c.Path); (err == nil) == (c.Name == "mkdirat") {
			return "" // there already, gone already: nothing changes
		}
	}
	if rest, ok := strings.CutPrefix(rel, "projects/"); ok {
		_, rel, _ = strings.Cut(rest, "/") // the project's name does not matter
		rel = "/" + rel
		rel = strings.TrimPrefix(inTree.ReplaceAllString(rel, "/$1/…"), "/")
	}
	return c.Name + " " + lot.ReplaceAllString(rel, "*")
}

func (w *watcher) decide(c trap.Call) syscall.Errno {
	w.mu.Lock()
	defer w.mu.Unlock()
	step := w.step(c)
	if step == "" {
		return 0
	}
	phase := w.phase
	if c.Name == "write" && strings.HasPrefix(c.Path, w.journal) {
		// The entry itself belongs to what was before it.
		if data, err := c.Data(); err == nil {
			if e, ok := parseEntry(string(data)); ok {
				w.phase = strings.TrimSpace(string(e.Kind) + " " + e.Procedure)
			}
		}
	}
	if w.each == 0 || (w.phases != nil && !slices.Contains(w.phases, phase)) {
		return 0
	}
	step = phase + ": " + step
	w.seen[step]++
	if w.drawn(step) && w.seen[step] == w.died[step]+1 && w.died[step] < w.each {
		w.died[step]++
		w.last = step
		return trap.Kill
	}
	return 0
}

// work is something that changes files below the root, and dies at each of its calls.
type work struct {
	name string
	// make prepares it on a server that is up.
	make func(m *crashed) action
	// phases are those of interest; nil are all.
	phases []string
	// quiet: it is not a deployment, the trees never change.
	quiet bool
}

// works are the deployments, by what is special about them, and what is done beside deployments.
func works() []work {
	of := func(name string) func(*crashed) action {
		for _, k := range kinds {
			if k.name == name {
				return k.make
			}
		}
		panic("no action " + name)
	}
	tree := []string{"begin sync", "begin release-sync", "begin fixperms", "begin fixperms-after"}
	command := func(args ...string) func(*crashed) action {
		return func(m *crashed) action {
			m.goLive("code")
			m.settled()
			argv := slices.Clone(args)
			for i, a := range argv {
				if a == "PROJECT" {
					argv[i] = m.project
				}
			}
			cmd := exec.CommandContext(m.t.Context(), m.exe, argv...)
			cmd.Env, cmd.Dir = m.env, m.dir
			return action{cmd: cmd, good: true}
		}
	}
	return []work{
		{name: "release-sync", make: of("good"), phases: tree},
		{name: "rolling back", make: of("failing"), phases: []string{"failing install", "rolling-back", "begin rollback"}},
		{name: "compaction", make: of("good"), phases: []string{"ended"}},
		{name: "compaction after a failure", make: of("failing"), phases: []string{"ended"}},
		{name: "going back over a release", make: of("older"), phases: []string{"begin undo", "begin services", "begin install", "committing"}},
		{name: "rolling back by hand", make: of("rollback"), phases: []string{"begin rollback", "begin undo", "begin services", "committing"}},
		{name: "archiving", make: of("good"), phases: []string{"begin archive"}},
		{name: "maintenance", make: command("gc", "PROJECT", "--all"), quiet: true},
		{name: "pruning", make: command("archives", "prune", "PROJECT", "--keep", "1"), quiet: true},
	}
}

// atEveryCall lets the work die at each of its steps, each time at a step at which it has not died often enough, until it
// lives through all of them. each is how many calls of one step it dies at.
func atEveryCall(m *crashed, k work, each int, sum *tally) {
	m.t.Helper()
	for {
		a := k.make(m)
		m.settled() // what is left from before is none of this run's
		before := m.now()
		m.clear()
		m.watch.begin(k.name, each, k.phases...)
		if k.quiet {
			m.watch.begin(k.name, each, k.name)
		}
		out, err := m.start(a)()
		lived := m.rests()
		m.watch.rest()
		if lived {
			if (err == nil) != a.good {
				m.fail("undisturbed, it ended with %v:\n%s", err, out)
			}
			if live := m.recovered(before, k.undisturbed(a)); live != (a.good && !k.quiet) {
				m.fail("undisturbed, live=%v", live)
			}
			break
		}
		m.died(<-m.ended)
		m.server = nil
		sum.calls.Add(1)
		if _, died := m.watch.steps(); len(died) > 300 {
			m.fail("no end of steps: some name is drawn by lot:\n%s", strings.Join(died, "\n"))
		}
		m.serve()
		if m.recovered(before, k.undisturbed(a)) {
			sum.live.Add(1)
		} else {
			sum.old.Add(1)
		}
		if !k.quiet {
			m.fix()
		}
	}
	seen, died := m.watch.steps()
	if len(seen) < 6 {
		m.fail("there were only %d steps: %v", len(seen), seen)
	}
	m.t.Logf("%d steps, killed at:\n%s", len(seen), strings.Join(died, "\n"))
}

// undisturbed is what check may find: an action that deploys nothing never becomes live.
func (k work) undisturbed(a action) action {
	if k.quiet {
		a.good = false
	}
	return a
}

// rests waits until the server has done its work in the background; false reports that it was killed at it.
func (m *crashed) rests() bool {
	m.t.Helper()
	for range 1200 {
		if m.watch.fell() != "" {
			m.note("killed at %s", m.watch.fell())
			return false
		}
		if m.atRest() && m.watch.fell() == "" {
			return true
		}
		time.Sleep(25 * time.Millisecond)
	}
	m.fail("the archives do not come to rest")
	return false
}

// wholeRepositories checks with git itself that each repository has every object that its refs need.
func (m *crashed) wholeRepositories() {
	m.t.Helper()
	for _, dir := range []string{m.paths().ProjectGit(), m.paths().PillarGit()} {
		if m.refs(dir) != "" {
			m.git("code", "--git-dir", dir, "rev-list", "--objects", "--all", "--quiet")
		}
	}
}

// rollBackAgain checks that what was rolled back stays so: a second rollback is a no-op that says so, whatever has gone
// live since.
func (m *crashed) rollBackAgain(store *archive.Store, list []archive.Archive) {
	m.t.Helper()
	for _, a := range list {
		if a.Rollback == nil {
			continue
		}
		before, err := manifest(m.paths().Live())
		require.NoError(m.t, err)
		was, err := manifest(a.Path)
		require.NoError(m.t, err)
		r, err := store.Rollback(m.t.Context(), a.ID)
		if err != nil || !r.Already {
			m.fail("a second rollback of %s is not a no-op: %+v (%v)", a.ID, r, err)
		}
		after, err := manifest(m.paths().Live())
		require.NoError(m.t, err)
		now, err := manifest(a.Path)
		require.NoError(m.t, err)
		if before != after || was != now {
			m.fail("a second rollback of %s changed\n%s\n%s", filepath.Base(a.Path), difference(before, after), difference(was, now))
		}
	}
}
