package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"corpus-git/internal/event"
	"corpus-git/layout"
	"corpus-git/pipeline/journal"
	"corpus-git/procedures"
)

// burstSize is how large the project is and how many pushes come at once: CORPUS_GIT_BENCH_BURST=<files>x<pushes>.
const burstSize = "5000x10"

// benchBurst pushes a project for the first time and then changes of one file of it, back to back: each push begins when the one before has its answer. First all of them to
// corpus-git, then (unless CORPUS_GIT_BENCH_PEER is off) all of them to OpenSSH sshd with git receive-pack and a post-receive script (as in benchPush), and, where SALT_CALL names one, to the same sshd with a script that
// does what the original does: an archive by rsync, a checkout, permissions by find, and one salt-call for each step. CORPUS_GIT_BENCH_BURST_ORIGINAL is how many pushes that one gets (3).
func benchBurst(l *lab) error {
	files, pushes, err := filesAndPushes("CORPUS_GIT_BENCH_BURST", burstSize, 2, 2)
	if err != nil {
		return err
	}
	if err := l.buildWithKey(); err != nil {
		return err
	}
	work := l.path("work")
	if err := makeProject(work, files); err != nil {
		return err
	}
	if err := l.commitAll(work); err != nil {
		return err
	}
	if err := l.sh(work, "git", "update-ref", "refs/c/1", "HEAD"); err != nil {
		return err
	}
	for i := 2; i <= pushes; i++ {
		if err := writeFile(filepath.Join(work, "index.html"), fmt.Sprintf("<h1>version %d</h1>\n", i), 0o644); err != nil {
			return err
		}
		if err := errors.Join(l.sh(work, "git", "commit", "-qam", "change"), l.sh(work, "git", "update-ref", fmt.Sprintf("refs/c/%d", i), "HEAD")); err != nil {
			return err
		}
	}
	ours, stop, err := l.serveCorpus()
	if err != nil {
		return err
	}
	mine, err := l.burst(work, ours, l.path("srv/projects/app/project"), pushes)
	stop()
	if err != nil {
		return fmt.Errorf("corpus-git: %w", err)
	}
	if os.Getenv("CORPUS_GIT_BENCH_PEER") == "off" {
		return l.sayPhases("app")
	}
	peer, stopPeer, err := l.servePeer()
	if err != nil {
		return err
	}
	defer stopPeer()
	theirs, err := l.burst(work, peer, l.path("peer/project"), pushes)
	if err != nil {
		return fmt.Errorf("sshd: %w", err)
	}
	sayBurst("sshd + git receive-pack + post-receive", mine, theirs)
	if err := l.sayPhases("app"); err != nil {
		return err
	}
	salt := os.Getenv("SALT_CALL")
	if salt == "" {
		fmt.Println("SALT_CALL is not set: the original's stack is left out")
		return nil
	}
	few := 3
	if v := os.Getenv("CORPUS_GIT_BENCH_BURST_ORIGINAL"); v != "" {
		if n, err := fmt.Sscanf(v, "%d", &few); n != 1 || err != nil || few < 2 {
			return fmt.Errorf("CORPUS_GIT_BENCH_BURST_ORIGINAL=%s is not a number, 2 at least", v)
		}
	}
	few = min(few, pushes)
	dir := l.path("original")
	if err := l.createOriginal(dir, salt); err != nil {
		return err
	}
	base, _, stopOriginal, err := l.serveSSHD(dir)
	if err != nil {
		return err
	}
	defer stopOriginal()
	saltTimes, err := l.burst(work, base+dir+"/app.git", dir+"/project", few)
	if err != nil {
		return fmt.Errorf("original: %w", err)
	}
	sayBurst("sshd + git + rsync + one salt-call a step", mine[:few], saltTimes)
	slices.Sort(mine[1:])
	slices.Sort(saltTimes[1:])
	fmt.Printf("median of the pushes after the first: %.0f times faster than the original's stack\n", median(saltTimes[1:]).Seconds()/median(mine[1:]).Seconds())
	return nil
}

// burst pushes all commits in turn and gives the time of each.
func (l *lab) burst(work, url, live string, pushes int) ([]time.Duration, error) {
	if err := syncFS(l.dir); err != nil {
		return nil, err
	}
	var out []time.Duration
	for i := 1; i <= pushes; i++ {
		t, err := timed(func() error {
			return l.sh(work, "git", "push", "-q", url, fmt.Sprintf("refs/c/%d:refs/heads/master", i))
		})
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	got, err := os.ReadFile(filepath.Join(live, "index.html"))
	if err != nil || string(got) != fmt.Sprintf("<h1>version %d</h1>\n", pushes) {
		return nil, fmt.Errorf("%s is not what was pushed last: %q (%w)", live, got, err)
	}
	return out, nil
}

func median(d []time.Duration) time.Duration { return d[len(d)/2] }

func sayBurst(peer string, ours, theirs []time.Duration) {
	var ratios []float64
	for i := range theirs {
		r := ours[i].Seconds() / theirs[i].Seconds()
		fmt.Printf("push %2d   corpus-git %8.1f ms   %s %8.1f ms   ratio %.3f\n", i+1, ms(ours[i]), peer, ms(theirs[i]), r)
		if i > 0 {
			ratios = append(ratios, r)
		}
	}
	slices.Sort(ratios)
	fmt.Printf("after the first: median ratio %.3f, at most %.3f (load %s)\n", ratios[len(ratios)/2], ratios[len(ratios)-1], load())
}

// createOriginal makes a repository in dir that deploys as the original does.
func (l *lab) createOriginal(dir, salt string) error {
	bare := filepath.Join(dir, "app.git")
	if err := l.sh(l.dir, "git", "init", "-q", "--bare", "-b", "master", bare); err != nil {
		return err
	}
	if _, err := exec.LookPath(salt); err != nil {
		return err
	}
	for _, d := range []string{"conf", "roots/makina-projects", "cache", "pki", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink(dir+"/project/.salt", dir+"/roots/makina-projects/app"); err != nil {
		return err
	}
	minion := fmt.Sprintf("root_dir: %[1]s\nfile_client: local\nfile_roots:\n  base:\n    - %[1]s/roots\nlog_level: error\nlog_level_logfile: quiet\nms_project:\n  name: app\n  project_root: %[1]s/project\n", dir)
	if err := writeFile(dir+"/conf/minion", minion, 0o644); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(deployScript(bare, dir, nil))
	for i := range steps() {
		fmt.Fprintf(&b, "%s --local -c %s/conf --retcode-passthrough --out=quiet state.sls makina-projects.app.%d00_step\n", salt, dir, i+1)
	}
	return writeFile(bare+"/hooks/post-receive", b.String(), 0o755)
}

// aloneRuns is how often the commands of the steps are run by sh alone.
const aloneRuns = 50

// alone returns how long the commands of the steps take when sh runs them, one after the other, in the live tree of a project, and nothing else.
func (l *lab) alone(live string) ([]time.Duration, error) {
	var out []time.Duration
	for range aloneRuns {
		t, err := timed(func() error {
			for _, s := range steps() {
				if err := l.sh(live, "sh", "-c", s); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	slices.Sort(out)
	return out, nil
}

// sayPhases prints where the server's time of each deployment went, from its journal and its event logs, of all but the first; a phase lasts until the next one's journal entry. The time before the first phase, in
// which the pack is read and checked, is not in them. The server's share is all of it but what the steps' commands take alone.
func (l *lab) sayPhases(name string) error {
	state := layout.Root(l.path("srv")).DefaultState()
	text, err := os.ReadFile(state.Journal(name))
	if err != nil {
		return err
	}
	took := map[string][]time.Duration{}
	order := []string{}
	add := func(phase string, d time.Duration) {
		if took[phase] == nil {
			order = append(order, phase)
		}
		took[phase] = append(took[phase], d)
	}
	n, phase := 0, ""
	var began, last time.Time
	for line := range strings.Lines(string(text)) {
		var e journal.Entry
		if err := json.Unmarshal([]byte(line[min(9, len(line)):]), &e); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		if e.Kind == journal.Accepted {
			n++
			began, last, phase = e.Facts.At, e.Facts.At, "read and compile"
		}
		if n > 1 {
			add(phase, e.Time.Sub(last))
		}
		last = e.Time
		switch e.Kind {
		case journal.Accepted:
			phase = "record"
		case journal.Begin:
			installed := phase == procedures.NameInstall
			phase = e.Procedure
			switch {
			case installed:
				phase += ", after the steps"
			case phase == procedures.NameArchive:
				phase += ", publish what was pushed"
			}
		case journal.Ready:
			phase = "sync before the branch moves"
		case journal.Committing:
			phase = "move the branch"
		case journal.Ended:
			verdict, ok, err := event.Last(state.EventLog(name, string(e.Deployment)))
			if err != nil || !ok {
				return fmt.Errorf("event log of %s: %w", e.Deployment, err)
			}
			if n > 1 {
				add("rotate, record, verdict", verdict.Time.Sub(e.Time))
				add("all, from the place in line to the verdict", verdict.Time.Sub(began))
			}
		}
	}
	for _, p := range order {
		slices.Sort(took[p])
		fmt.Printf("%-44s least %6.1f ms   median %6.1f ms\n", p, ms(took[p][0]), ms(median(took[p])))
	}
	all := took[order[len(order)-1]]
	commands, err := l.alone(layout.Root(l.path("srv")).Project(name).Live())
	if err != nil {
		return err
	}
	fmt.Printf("%-44s least %6.1f ms   median %6.1f ms\n", "the steps' commands alone, by sh", ms(commands[0]), ms(median(commands)))
	fmt.Printf("%-44s least %6.1f ms   median %6.1f ms\n", "the server's share", ms(all[0]-commands[0]), ms(median(all)-median(commands)))
	return nil
}
