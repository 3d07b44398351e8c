package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"corpus-git/layout"
	"corpus-git/pipeline/journal"
	"corpus-git/project"
	"corpus-git/project/status"
)

// loadSize is how much benchLoad does. CORPUS_GIT_BENCH_LOAD=PROJECTSxPUSHES makes it less or more, PROJECTSxPUSHESxPUSHES has the peer take
// another number of them.
type loadSize struct{ projects, pushes, peer int }

// loadFiles is how many files each project has.
const loadFiles = 20

// benchLoad pushes to many projects at once, several times each: to corpus-git, and to OpenSSH sshd with git receive-pack and a
// post-receive script that does the same work. Every branch and every live tree is compared with what was pushed last.
func benchLoad(l *lab) error {
	for _, p := range []string{"git", "ssh", "ssh-keygen", "sshd", "rsync"} {
		if _, err := lookup(p); err != nil {
			return fmt.Errorf("%w: install git, openssh-client, openssh-server and rsync", err)
		}
	}
	size := loadSize{100, 20, 20}
	if v := os.Getenv("CORPUS_GIT_BENCH_LOAD"); v != "" {
		n, _ := fmt.Sscanf(v, "%dx%dx%d", &size.projects, &size.pushes, &size.peer)
		if n == 2 {
			size.peer = size.pushes
		}
		if n < 2 || min(size.projects, size.pushes, size.peer) < 1 || size.peer > size.pushes {
			return fmt.Errorf("CORPUS_GIT_BENCH_LOAD is %q and should be like 100x20", v)
		}
	}
	if err := l.buildWithKey(); err != nil {
		return err
	}
	works, err := l.loadWorks(size)
	if err != nil {
		return err
	}
	var rates []float64
	for _, side := range []struct {
		name  string
		serve func() (*loadServer, error)
	}{{"corpus-git", func() (*loadServer, error) { return l.loadCorpus(size) }}, {"sshd + git receive-pack + post-receive", func() (*loadServer, error) { return l.loadPeer(size) }}} {
		if os.Getenv("CORPUS_GIT_BENCH_PEER") == "off" && side.name != "corpus-git" {
			continue
		}
		s, err := side.serve()
		if err != nil {
			return err
		}
		if side.name != "corpus-git" {
			size.pushes = size.peer
		}
		rate, err := s.load(l, side.name, size, works)
		s.stop()
		if err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
		rates = append(rates, rate)
	}
	if len(rates) == 2 {
		fmt.Printf("ratio of throughput %.2f (above 1: corpus-git takes more pushes a second)\n", rates[0]/rates[1])
	}
	return nil
}

// loadServer is a server with one repository for each project.
type loadServer struct {
	pid  int
	url  func(project int) string
	live func(project int) string
	bare func(project int) string
	stop func()
	// history looks whether what is recorded of a project is what was pushed, commit by commit; nil if nothing is recorded.
	history func(project int, commits []string) error
}

// loadWorks makes a repository for each project with the commits that will be pushed: refs/c/0, refs/c/1, …
func (l *lab) loadWorks(size loadSize) ([]string, error) {
	var works []string
	for p := range size.projects {
		dir := l.path(fmt.Sprintf("work/p%d", p))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if err := l.sh(dir, "git", "init", "-q", "--bare", "-b", "master"); err != nil {
			return nil, err
		}
		var in bytes.Buffer
		for c := range size.pushes + 1 {
			fmt.Fprintf(&in, "commit refs/c/%d\ncommitter b <b@x> %d +0000\ndata 1\nx\n", c, 1700000000+c)
			if c > 0 {
				fmt.Fprintf(&in, "from refs/c/%d\n", c-1)
			}
			file := func(name, text string) {
				fmt.Fprintf(&in, "M 644 inline %s\ndata %d\n%s\n", name, len(text), text)
			}
			file("index.html", loadPage(p, c))
			if c == 0 {
				file(".salt/100_step.sls", "step:\n  test.nop: []\n")
				for f := range loadFiles {
					file(fmt.Sprintf("static/f%d.txt", f), strings.Repeat(fmt.Sprintf("project %d file %d\n", p, f), 50))
				}
			}
		}
		cmd := exec.Command("git", "fast-import", "--quiet")
		cmd.Dir, cmd.Env, cmd.Stdin = dir, l.env(), &in
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("fast-import: %w\n%s", err, out)
		}
		works = append(works, dir)
	}
	return works, nil
}

func loadPage(project, commit int) string {
	return fmt.Sprintf("<h1>project %d, version %d</h1>\n", project, commit)
}

// load pushes the first commit to each project, which is not measured, and then the others, all projects at once.
func (s *loadServer) load(l *lab, name string, size loadSize, works []string) (perSecond float64, err error) {
	push := func(p, c int) error {
		return l.sh(works[p], "git", "push", "-q", s.url(p), fmt.Sprintf("refs/c/%d:refs/heads/master", c))
	}
	if err := each(size.projects, 4, func(p int) error { return push(p, 0) }); err != nil {
		return 0, err
	}
	idle, _ := treeMemory(s.pid)
	done := make(chan struct{})
	peak := make(chan [2]int64, 1)
	go func() {
		var most [2]int64
		for {
			all, anon := treeMemory(s.pid)
			most[0], most[1] = max(most[0], all), max(most[1], anon)
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	var mu sync.Mutex
	var waits []time.Duration
	began := time.Now()
	err = each(size.projects, size.projects, func(p int) error {
		for c := 1; c <= size.pushes; c++ {
			t, err := timed(func() error { return push(p, c) })
			if err != nil {
				return fmt.Errorf("project %d, push %d: %w", p, c, err)
			}
			mu.Lock()
			waits = append(waits, t)
			mu.Unlock()
		}
		return nil
	})
	took := time.Since(began)
	close(done)
	most := <-peak
	if err != nil {
		return 0, err
	}
	for p := range size.projects {
		if err := s.verify(l, p, size.pushes, works[p]); err != nil {
			return 0, err
		}
	}
	slices.Sort(waits)
	rate := float64(len(waits)) / took.Seconds()
	fmt.Printf("%-44s %d pushes to %d projects at once in %.1f s: %.1f a second, median %.0f ms, 99 of 100 below %.0f ms; memory %s idle, %s at most, without files %s; none lost, none mixed up\n",
		name, len(waits), size.projects, took.Seconds(), rate, ms(waits[len(waits)/2]), ms(waits[len(waits)*99/100]), mib(idle), mib(most[0]), mib(most[1]))
	return rate, nil
}

// verify compares the branch and the live tree with what was pushed last.
func (s *loadServer) verify(l *lab, p, last int, work string) error {
	rev := func(dir, ref string) (string, error) {
		cmd := exec.Command("git", "-c", "safe.directory=*", "rev-parse", ref)
		cmd.Dir, cmd.Env = dir, l.env()
		out, err := cmd.Output()
		return string(out), err
	}
	want, err := rev(work, fmt.Sprintf("refs/c/%d", last))
	if err != nil {
		return err
	}
	got, err := rev(s.bare(p), "refs/heads/master")
	if err != nil || got != want {
		return fmt.Errorf("project %d: the branch is at %q, and %q was pushed (%w)", p, got, want, err)
	}
	page, err := os.ReadFile(filepath.Join(s.live(p), "index.html"))
	if err != nil || string(page) != loadPage(p, last) {
		return fmt.Errorf("project %d: the live page is %q (%w)", p, page, err)
	}
	for f := range loadFiles {
		text, err := os.ReadFile(filepath.Join(s.live(p), "static", fmt.Sprintf("f%d.txt", f)))
		if err != nil || !strings.HasPrefix(string(text), fmt.Sprintf("project %d file %d\n", p, f)) {
			return fmt.Errorf("project %d: file %d is another's (%w)", p, f, err)
		}
	}
	if s.history == nil {
		return nil
	}
	var commits []string
	for c := range last + 1 {
		h, err := rev(work, fmt.Sprintf("refs/c/%d", c))
		if err != nil {
			return err
		}
		commits = append(commits, strings.TrimSpace(h))
	}
	return s.history(p, commits)
}

// loadHistory looks at what corpus-git keeps of a project: the journal has an end for each deployment, and they brought these commits, in
// their order; there are as many records; the archives are of these deployments, and hold earlier pages, the newest but one among them.
func (l *lab) loadHistory(p int, commits []string) error {
	name := fmt.Sprintf("p%d", p)
	text, err := os.ReadFile(layout.Root(l.path("srv")).DefaultState().Journal(name))
	if err != nil {
		return err
	}
	var brought []string
	ids, ended := map[string]bool{}, 0
	for line := range strings.Lines(string(text)) {
		var e journal.Entry
		if err := json.Unmarshal([]byte(line[min(9, len(line)):]), &e); err != nil {
			return fmt.Errorf("project %d: journal: %w", p, err)
		}
		switch e.Kind {
		case journal.Accepted:
			brought = append(brought, string(e.Facts.Code))
			ids[string(e.Deployment)] = true
		case journal.Ended:
			if e.Result.State != project.Live || !ids[string(e.Deployment)] {
				return fmt.Errorf("project %d: deployment %s ended as %s", p, e.Deployment, e.Result.State)
			}
			ended++
		}
	}
	if !slices.Equal(brought, commits) || ended != len(commits) {
		return fmt.Errorf("project %d: the journal has %d deployments, %d of them ended, and %d commits were pushed", p, len(brought), ended, len(commits))
	}
	cmd := exec.Command(l.bin, "deployments", name, "--json", "--limit", "1000000")
	cmd.Env = l.env()
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var records status.Deployments
	if err := json.Unmarshal(out, &records); err != nil {
		return err
	}
	live := 0
	for _, r := range records.Deployments {
		if r.State == project.Live && ids[string(r.ID)] {
			live++
		}
	}
	if live != len(commits) || len(records.Deployments) != live {
		return fmt.Errorf("project %d: %d of %d deployments are recorded as live, and %d were pushed", p, live, len(records.Deployments), len(commits))
	}
	list, err := os.ReadDir(l.path("srv/projects/" + name + "/archives"))
	if err != nil {
		return err
	}
	newest := -1
	for _, e := range list {
		i := strings.LastIndexByte(e.Name(), '_')
		if strings.HasPrefix(e.Name(), ".") || i < 0 {
			continue
		}
		if !ids[e.Name()[i+1:]] {
			return fmt.Errorf("project %d: archive %s is of no deployment of it", p, e.Name())
		}
		page, err := os.ReadFile(l.path("srv/projects/" + name + "/archives/" + e.Name() + "/project/index.html"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // packed, or of the first deployment, before which there was nothing
		}
		at := -1
		for c := range commits {
			if string(page) == loadPage(p, c) {
				at = c
			}
		}
		if err != nil || at < 0 {
			return fmt.Errorf("project %d: archive %s holds the page %q (%w)", p, e.Name(), page, err)
		}
		newest = max(newest, at)
	}
	if newest != len(commits)-2 {
		return fmt.Errorf("project %d: the newest archive holds version %d, and %d was live before the last push", p, newest, len(commits)-2)
	}
	return nil
}

// each calls f for 0 to n-1, at most wide at a time.
func each(n, wide int, f func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	slots := make(chan struct{}, wide)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(i)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (l *lab) loadCorpus(size loadSize) (*loadServer, error) {
	if err := l.sh(l.dir, l.bin, "key", "add", "bench", "--admin", "--file", l.path("key.pub")); err != nil {
		return nil, err
	}
	base, pid, stop, err := l.serveBin("--create-on-push", "--limits-max-connections-per-source", "4096", "--limits-max-unauthenticated", "4096",
		"--limits-max-unauthenticated-per-source", "4096", "--limits-max-connections", "4096")
	if err != nil {
		return nil, err
	}
	at := func(p int, sub string) string { return l.path(fmt.Sprintf("srv/projects/p%d/%s", p, sub)) }
	return &loadServer{
		pid: pid, stop: stop,
		url:     func(p int) string { return fmt.Sprintf("%sp%d/project.git", base, p) },
		live:    func(p int) string { return at(p, "project") },
		bare:    func(p int) string { return at(p, "git/project.git") },
		history: l.loadHistory,
	}, nil
}

func (l *lab) loadPeer(size loadSize) (*loadServer, error) {
	dir := l.path("loadpeer")
	for p := range size.projects {
		bare := filepath.Join(dir, fmt.Sprintf("p%d.git", p))
		if err := l.sh(l.dir, "git", "init", "-q", "--bare", "-b", "master", bare); err != nil {
			return nil, err
		}
		if err := writeFile(bare+"/hooks/post-receive", deployScript(bare, filepath.Join(dir, fmt.Sprintf("p%d", p)), []string{"true"}), 0o755); err != nil {
			return nil, err
		}
	}
	base, pid, stop, err := l.serveSSHD(dir)
	if err != nil {
		return nil, err
	}
	return &loadServer{
		pid: pid, stop: stop,
		url:  func(p int) string { return fmt.Sprintf("%s%s/p%d.git", base, dir, p) },
		live: func(p int) string { return filepath.Join(dir, fmt.Sprintf("p%d/project", p)) },
		bare: func(p int) string { return filepath.Join(dir, fmt.Sprintf("p%d.git", p)) },
	}, nil
}

// treeMemory returns the proportional memory of a process and all that it started, in bytes (proc(5), smaps_rollup), and that of it that is not
// the pages of files, such as programs, which the kernel can drop and read again.
func treeMemory(root int) (sum, anon int64) {
	parents := map[int]int{}
	list, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, 0
	}
	for _, name := range list {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it ended meanwhile
		}
		// The program's name is in parentheses and may hold anything.
		i := bytes.LastIndexByte(text, ')')
		f := strings.Fields(string(text[i+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || len(f) < 2 {
			continue
		}
		parents[pid], _ = strconv.Atoi(f[1])
	}
	for pid := range parents {
		for p := pid; p > 1; p = parents[p] {
			if p != root {
				continue
			}
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
			if err != nil {
				break
			}
			for line := range strings.Lines(string(text)) {
				for to, key := range map[*int64]string{&sum: "Pss:", &anon: "Pss_Anon:"} {
					if v, ok := strings.CutPrefix(line, key); ok {
						n, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
						*to += n << 10
					}
				}
			}
			break
		}
	}
	return sum, anon
}

func mib(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

// bareRepository makes an empty one without starting a program.
func bareRepository(dir string) error {
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tbare = true\n"), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/master\n"), 0o644)
}

// idleConnections is how many benchIdle holds open.
const idleConnections = 1000

// benchIdle holds a thousand connections open that never log in, and pushes meanwhile: memory, and the time of a push.
func benchIdle(l *lab) error {
	if err := l.buildWithKey(); err != nil {
		return err
	}
	works, err := l.loadWorks(loadSize{projects: 1, pushes: 60})
	if err != nil {
		return err
	}
	if err := l.sh(l.dir, l.bin, "key", "add", "bench", "--admin", "--file", l.path("key.pub")); err != nil {
		return err
	}
	base, pid, stop, err := l.serveBin("--create-on-push", "--limits-max-unauthenticated", "2000", "--limits-max-unauthenticated-per-source", "2000",
		"--limits-max-connections", "3000", "--limits-max-connections-per-source", "3000", "--limits-auth-timeout", "10m")
	if err != nil {
		return err
	}
	defer stop()
	next := 0
	push := func() error {
		next++
		return l.sh(works[0], "git", "push", "-q", base+"p0/project.git", fmt.Sprintf("refs/c/%d:refs/heads/master", next-1))
	}
	median := func() (time.Duration, error) {
		var all []time.Duration
		for range 15 {
			t, err := timed(push)
			if err != nil {
				return 0, err
			}
			all = append(all, t)
		}
		slices.Sort(all)
		return all[len(all)/2], nil
	}
	if err := push(); err != nil {
		return err
	}
	quiet, err := median()
	if err != nil {
		return err
	}
	before, _ := treeMemory(pid)
	addr := strings.TrimSuffix(strings.TrimPrefix(base, "ssh://deploy@"), "/")
	for range idleConnections {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return err
		}
	}
	after, _ := treeMemory(pid)
	crowded, err := median()
	if err != nil {
		return err
	}
	fmt.Printf("%d idle connections: memory %s before, %s with them, %.0f KiB each; a push %.0f ms before, %.0f ms with them, ratio %.2f\n",
		idleConnections, mib(before), mib(after), float64(after-before)/idleConnections/1024, ms(quiet), ms(crowded), crowded.Seconds()/quiet.Seconds())
	return nil
}
