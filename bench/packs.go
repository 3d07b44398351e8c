package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"corpus-git/git/store"
)

// packsRounds is how many pairs of pushes benchPacks measures in each state.
const packsRounds = 7

// benchPacks measures one push to a repository that was pushed to every day for so long, with what the pushes left there and after
// maintenance: corpus-git keeps a pack of each push and consolidates them (corpus-git gc, as the server does by itself); git receive-pack
// makes loose objects of small pushes, and git gc packs them. The history before is put there without a deployment.
func benchPacks(l *lab) error {
	if err := l.buildWithKey(); err != nil {
		return err
	}
	type state struct {
		pushes     int
		maintained bool
	}
	states := []state{{1, false}, {100, false}, {100, true}, {365, false}, {365, true}}
	works, err := l.loadWorks(loadSize{projects: 1, pushes: 365 + packsRounds + 2})
	if err != nil {
		return err
	}
	work := works[0]
	peers := l.path("packspeer")
	ours := func(i int) string { return l.path(fmt.Sprintf("srv/projects/p%d/git/project.git", i)) }
	theirs := func(i int) string { return filepath.Join(peers, fmt.Sprintf("p%d.git", i)) }
	begin := func(i, pushes int, maintained bool) error {
		if err := bareRepository(l.path(fmt.Sprintf("srv/projects/p%d/git/pillar.git", i))); err != nil {
			return err
		}
		if err := bareRepository(ours(i)); err != nil {
			return err
		}
		if err := l.sh(l.dir, "git", "init", "-q", "--bare", "-b", "master", theirs(i)); err != nil {
			return err
		}
		if err := l.daily(work, pushes, ours(i), theirs(i)); err != nil {
			return err
		}
		if err := writeFile(theirs(i)+"/hooks/post-receive", deployScript(theirs(i), filepath.Join(peers, fmt.Sprintf("p%d", i)), []string{"true"}), 0o755); err != nil {
			return err
		}
		if maintained {
			return l.sh(theirs(i), "git", "gc", "-q")
		}
		return nil
	}
	for i, s := range states {
		if err := begin(i, s.pushes, s.maintained); err != nil {
			return err
		}
	}
	if err := l.sh(l.dir, l.bin, "key", "add", "bench", "--admin", "--file", l.path("key.pub")); err != nil {
		return err
	}
	base, _, stop, err := l.serveBin("--maintenance-enabled=false")
	if err != nil {
		return err
	}
	defer stop()
	peer, _, stopPeer, err := l.serveSSHD(peers)
	if err != nil {
		return err
	}
	defer stopPeer()
	for i, s := range states {
		name := fmt.Sprintf("p%d", i)
		if s.maintained {
			if err := l.sh(l.dir, l.bin, "gc", name); err != nil {
				return err
			}
		}
		packs, _ := filepath.Glob(filepath.Join(ours(i), "objects/pack/*.pack"))
		loose, _ := filepath.Glob(filepath.Join(theirs(i), "objects/[0-9a-f][0-9a-f]/*"))
		fmt.Printf("-- after %d pushes, maintained %v: %d packs here, %d loose objects there, load %s\n", s.pushes, s.maintained, len(packs), len(loose), load())
		next := []int{s.pushes, s.pushes}
		push := func(side int, url string) func() error {
			return func() error {
				next[side]++
				return l.sh(work, "git", "push", "-q", url, fmt.Sprintf("refs/c/%d:refs/heads/master", next[side]-1))
			}
		}
		if _, err := compare(packsRounds, func(int) error { return nil }, "corpus-git", push(0, base+name+"/project.git"),
			"sshd + git receive-pack + post-receive", push(1, fmt.Sprintf("%s%s", peer, theirs(i)))); err != nil {
			return err
		}
	}
	return nil
}

// daily puts the first n commits of work into two bare repositories as so many pushes of one commit each would.
func (l *lab) daily(work string, n int, ours, theirs string) error {
	db, err := store.Open(ours, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	git := func(dir string, in []byte, args ...string) ([]byte, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env, cmd.Stdin = dir, l.env(), bytes.NewReader(in)
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("git %s: %w", args[0], err)
		}
		return out, nil
	}
	for c := range n {
		revs := fmt.Sprintf("refs/c/%d\n", c)
		if c > 0 {
			revs += fmt.Sprintf("^refs/c/%d\n", c-1)
		}
		data, err := git(work, []byte(revs), "pack-objects", "--thin", "--revs", "--stdout", "--delta-base-offset", "-q")
		if err != nil {
			return err
		}
		if _, err := git(theirs, data, "unpack-objects", "-q"); err != nil {
			return err
		}
		q, err := db.NewQuarantine(fmt.Sprint("day-", c))
		if err != nil {
			return err
		}
		if _, err := q.Ingest(context.Background(), bufio.NewReader(bytes.NewReader(data)), store.IngestOptions{}); err != nil {
			return err
		}
		if err := q.Migrate(); err != nil {
			return err
		}
	}
	tip, err := git(work, nil, "rev-parse", fmt.Sprintf("refs/c/%d", n-1))
	if err != nil {
		return err
	}
	for _, dir := range []string{ours, theirs} {
		if err := os.WriteFile(filepath.Join(dir, "refs/heads/master"), []byte(strings.TrimSpace(string(tip))+"\n"), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(ours, "HEAD"), []byte("ref: refs/heads/master\n"), 0o644)
}
