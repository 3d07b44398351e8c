package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"corpus-git/internal/db"
	"corpus-git/layout"
	"corpus-git/project"
)

// fewProjects and manyProjects are the two numbers of projects that benchProjects compares; CORPUS_GIT_BENCH_PROJECTS makes the second one less or more.
// pushedProjects of them at most are pushed to; the others are copies of one of those. manyPushes is how often it pushes to each server to compare them,
// manyStarts how often it starts each in each way.
const (
	fewProjects, manyProjects = 10, 10_000
	pushedProjects            = 200
	manyPushes, manyStarts    = 15, 5
)

// filledServer is a server with some number of projects.
type filledServer struct {
	*lab
	n    int
	work string
	// next is the commit that comes next in each project.
	next map[int]int
}

// benchProjects compares a server of ten thousand projects, all of which were deployed, with one of ten: how long it takes to start after an orderly
// end, after a kill while nothing went on, after a kill in the middle of four pushes; one push; and the commands that look at all projects.
func benchProjects(l *lab) error {
	if err := l.buildWithKey(); err != nil {
		return err
	}
	many := manyProjects
	if v := os.Getenv("CORPUS_GIT_BENCH_PROJECTS"); v != "" {
		if n, err := fmt.Sscanf(v, "%d", &many); n != 1 || many < fewProjects {
			return fmt.Errorf("CORPUS_GIT_BENCH_PROJECTS is %q and should be a number, %d at least (%w)", v, fewProjects, err)
		}
	}
	works, err := l.loadWorks(loadSize{projects: 1, pushes: 4*manyStarts + manyPushes + 8})
	if err != nil {
		return err
	}
	var both [2]*filledServer
	starts := map[string][2]time.Duration{}
	for i, n := range []int{fewProjects, many} {
		c := &filledServer{lab: &lab{dir: l.path(fmt.Sprint("m", n)), bin: l.bin}, n: n, work: works[0], next: map[int]int{}}
		both[i] = c
		if err := c.fill(l); err != nil {
			return err
		}
		for _, way := range []string{"an orderly end", "a kill", "a kill in four pushes"} {
			t, err := c.starts(way)
			if err != nil {
				return err
			}
			fmt.Printf("%6d projects: start after %-22s %7.1f ms\n", n, way, ms(t))
			d := starts[way]
			d[i] = t
			starts[way] = d
		}
	}
	for _, way := range []string{"an orderly end", "a kill", "a kill in four pushes"} {
		fmt.Printf("start after %-22s ratio %.2f\n", way, starts[way][1].Seconds()/starts[way][0].Seconds())
	}
	var urls [2]string
	for i, c := range both {
		base, pid, stop, err := c.serveBin()
		if err != nil {
			return err
		}
		defer stop()
		urls[i] = base
		if err := c.push(base, 5); err != nil {
			return err
		}
		memory, anon := treeMemory(pid)
		fmt.Printf("%6d projects: memory after one push %s, of it not pages of files %s\n", c.n, mib(memory), mib(anon))
		for _, verb := range [][]string{{"project", "list"}, {"report", "p5"}} {
			t, err := timed(func() error { return c.sh(c.dir, c.bin, verb...) })
			if err != nil {
				return err
			}
			fmt.Printf("%6d projects: %-22s %7.1f ms\n", c.n, strings.Join(verb, " "), ms(t))
		}
	}
	_, err = compare(manyPushes, func(int) error { return nil },
		fmt.Sprintf("a push among %d projects", many), func() error { return both[1].push(urls[1], 5) },
		fmt.Sprintf("a push among %d", fewProjects), func() error { return both[0].push(urls[0], 5) })
	return err
}

// push pushes a project's next commit.
func (c *filledServer) push(base string, p int) error {
	c.next[p]++
	return c.sh(c.work, "git", "push", "-q", fmt.Sprintf("%sp%d/project.git", base, p), fmt.Sprintf("refs/c/%d:refs/heads/master", c.next[p]-1))
}

// fill makes the projects: some are pushed to, the others become what the first one is.
func (c *filledServer) fill(l *lab) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	for _, f := range []string{"key", "key.pub"} {
		if err := os.Link(l.path(f), c.path(f)); err != nil {
			return err
		}
	}
	if err := c.sh(c.dir, c.bin, "key", "add", "bench", "--admin", "--file", c.path("key.pub")); err != nil {
		return err
	}
	base, _, stop, err := c.serveBin("--create-on-push")
	if err != nil {
		return err
	}
	real := min(c.n, pushedProjects)
	for i := range real + 1 {
		if err := c.push(base, i%real); err != nil { // the first one twice: its copies have an archive with something in it
			stop()
			return err
		}
	}
	stop()
	if real == c.n {
		return nil
	}
	if err := c.copies(real); err != nil {
		return err
	}
	// The first start adopts the folders, which is not measured.
	_, _, stop, err = c.serveBin()
	if err != nil {
		return err
	}
	stop()
	return nil
}

// copies makes the other projects of the first one: its folder with files that are links to its own, its journal, its event logs, its
// records. What holds a path is written again.
func (c *filledServer) copies(from int) error {
	state := layout.Root(c.path("srv")).DefaultState()
	journal, err := os.ReadFile(state.Journal("p0"))
	if err != nil {
		return err
	}
	if err := each(c.n-from, 4, func(i int) error {
		name := fmt.Sprintf("p%d", from+i)
		if err := copyTree(c.path("srv/projects/p0"), c.path("srv/projects/"+name)); err != nil {
			return err
		}
		if err := copyTree(state.Events("p0"), state.Events(name)); err != nil {
			return err
		}
		var lines bytes.Buffer
		for line := range strings.Lines(string(journal)) {
			// Eight digits of CRC-32C, a space, JSON (package pipeline).
			text := strings.TrimSuffix(strings.ReplaceAll(line[9:], `"p0"`, `"`+name+`"`), "\n")
			fmt.Fprintf(&lines, "%08x %s\n", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)), text)
		}
		return os.WriteFile(state.Journal(name), lines.Bytes(), 0o600)
	}); err != nil {
		return err
	}
	return c.records(state, from)
}

// records copies those of the first project, with other names.
func (c *filledServer) records(state layout.State, from int) error {
	ctx := context.Background()
	d, err := db.Open(ctx, state.Database())
	if err != nil {
		return err
	}
	defer d.Close()
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for p := from; p < c.n; p++ {
		name := fmt.Sprintf("p%d", p)
		rows, err := tx.QueryContext(ctx, `SELECT at, trigger, state, facts, result FROM deployments WHERE project = 'p0'`)
		if err != nil {
			return err
		}
		var all [][]any
		for rows.Next() {
			var at int64
			var trigger, st, facts, result string
			if err := rows.Scan(&at, &trigger, &st, &facts, &result); err != nil {
				return err
			}
			id := string(project.NewID())
			var f map[string]any
			if err := json.Unmarshal([]byte(facts), &f); err != nil {
				return err
			}
			f["id"], f["project"] = id, name
			text, err := json.Marshal(f)
			if err != nil {
				return err
			}
			all = append(all, []any{id, name, at, trigger, st, string(text), result})
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		for _, r := range all {
			if _, err := tx.ExecContext(ctx, `INSERT INTO deployments(id, project, at, trigger, state, facts, result) VALUES(?,?,?,?,?,?,?)`, r...); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}

// copyTree makes a tree of links to the files of another. Small files below .git, which hold paths, are written again with the new folder's.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := to + strings.TrimPrefix(path, from)
		switch {
		case e.IsDir():
			return os.MkdirAll(at, 0o755)
		case strings.HasSuffix(path, "/.git/config") || strings.HasSuffix(path, "/.git/objects/info/alternates"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(at, bytes.ReplaceAll(text, []byte(from), []byte(to)), 0o644)
		}
		return os.Link(path, at)
	})
}

// starts returns the median time until the server listens, after the last one ended in some way.
func (c *filledServer) starts(way string) (time.Duration, error) {
	var all []time.Duration
	for range manyStarts + 1 {
		began := time.Now()
		base, pid, stop, err := c.serveBin()
		if err != nil {
			return 0, err
		}
		all = append(all, time.Since(began))
		if err := c.push(base, 5); err != nil {
			stop()
			return 0, err
		}
		var pushes chan struct{}
		if way == "a kill in four pushes" {
			pushes = make(chan struct{}, 4)
			for p := range 4 {
				was := c.next[p]
				go func() {
					_ = c.sh(c.work, "git", "push", "-q", "-f", fmt.Sprintf("%sp%d/project.git", base, p), fmt.Sprintf("refs/c/%d:refs/heads/master", was)) // what becomes of it is not the question
					pushes <- struct{}{}
				}()
			}
			if err := c.busy(4); err != nil {
				stop()
				return 0, err
			}
		}
		if way != "an orderly end" {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				return 0, err
			}
		}
		stop()
		for range cap(pushes) {
			<-pushes
		}
	}
	all = all[1:] // before it the server had ended in another way
	slices.Sort(all)
	return all[len(all)/2], nil
}

// busy waits until something is under way in so many projects.
func (c *filledServer) busy(n int) error {
	dir := layout.Root(c.path("srv")).DefaultState().Underway()
	for range 10_000 {
		list, err := os.ReadDir(dir)
		if err != nil || len(list) >= n {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("nothing is under way in %s", dir)
}
