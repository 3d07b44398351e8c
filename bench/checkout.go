package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/receive/store"
	"corpus-git/receive/worktree"
)

const (
	checkoutFiles  = 70_000
	checkoutRounds = 5
	changeRounds   = 11
)

// benchCheckout brings 70,000 files of a bare repository into a working copy, then one changed file, then nothing; beside git checkout with
// two workers, git reset --hard and git status on a clone that borrows the same packs. Files are in the page cache; root measures on an ext4 of
// its own. What is synced is measured apart: git syncs nothing.
func benchCheckout(l *lab) error {
	disk, release, err := l.privateDisk()
	if err != nil {
		return err
	}
	defer release()
	bare := filepath.Join(disk, "bare.git")
	first, second, err := l.plantCommits(filepath.Join(disk, "src"), bare)
	if err != nil {
		return err
	}
	db, err := store.Open(bare, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	ours, peer := filepath.Join(disk, "ours"), filepath.Join(disk, "peer")
	sync := func(c string, durable bool) error {
		_, err := worktree.Sync(context.Background(), worktree.Request{
			Objects: db, Repo: bare, Commit: plumbing.NewHash(c), Dir: ours, Branch: "refs/heads/master", Workers: 2, NoSync: !durable})
		return err
	}
	git := func(args ...string) error { return l.sh(peer, "git", args...) }
	settle := func() error { return syncFS(disk) }

	fmt.Printf("-- first checkout of %d files, warm cache, load %s\n", checkoutFiles, load())
	fresh := func(int) error {
		if err := os.RemoveAll(ours); err != nil {
			return err
		}
		if err := os.RemoveAll(peer); err != nil {
			return err
		}
		if err := l.sh(disk, "git", "clone", "-q", "-s", "-n", bare, peer); err != nil {
			return err
		}
		return settle()
	}
	checkout := func() error {
		return git("-c", "checkout.workers=2", "-c", "checkout.thresholdForParallelism=1", "checkout", "-q", "-f", first)
	}
	if _, err := compare(checkoutRounds, fresh, "corpus-git", func() error { return sync(first, false) }, "git checkout, 2 workers", checkout); err != nil {
		return err
	}
	if err := sameTrees(ours, peer); err != nil {
		return err
	}
	if err := fresh(0); err != nil {
		return err
	}
	t, err := timed(func() error { return sync(first, true) })
	if err != nil {
		return err
	}
	fmt.Printf("%-44s once   %8.1f ms\n", "corpus-git, durable", ms(t))
	if err := checkout(); err != nil {
		return err
	}

	fmt.Printf("-- one changed file of %d, load %s\n", checkoutFiles, load())
	commits := []string{second, first}
	step := 0
	next := func(i int) error { step = i; return settle() }
	one := func(durable bool) func() error {
		return func() error { return sync(commits[step%2], durable) }
	}
	if _, err := compare(changeRounds, next, "corpus-git", one(false), "git reset --hard", func() error {
		return git("reset", "-q", "--hard", commits[step%2])
	}); err != nil {
		return err
	}
	if _, err := compare(changeRounds, next, "corpus-git, durable", one(true), "git checkout -f", func() error {
		return git("checkout", "-q", "-f", commits[step%2])
	}); err != nil {
		return err
	}
	if err := sameTrees(ours, peer); err != nil {
		return err
	}

	fmt.Printf("-- nothing changed, load %s\n", load())
	_, err = compare(changeRounds, func(int) error { return settle() }, "corpus-git", one(false), "find -printf, which stats each file", func() error {
		return exec.Command("find", ours, "-printf", "%T@").Run()
	})
	if err != nil {
		return err
	}
	_, err = compare(changeRounds, func(int) error { return settle() }, "corpus-git", one(false), "git status", func() error { return git("status", "--porcelain") })
	return err
}

// plantCommits makes a bare repository of one pack with two commits that differ in one file.
func (l *lab) plantCommits(src, bare string) (first, second string, err error) {
	for i := range checkoutFiles {
		text := fmt.Sprintf("file %d\n%s", i, strings.Repeat(fmt.Sprintf("some words of text %d\n", i%977), i%90))
		if err := writeFile(filepath.Join(src, fmt.Sprintf("d%d/e%d/f%d.txt", i%23, i%701, i)), text, 0o644); err != nil {
			return "", "", err
		}
	}
	steps := [][]string{{"init", "-q", "-b", "master"}, {"add", "-A"}, {"commit", "-qm", "first"}}
	for _, args := range steps {
		if err := l.sh(src, "git", args...); err != nil {
			return "", "", err
		}
	}
	if err := writeFile(filepath.Join(src, "d7/e7/f7.txt"), "changed\n", 0o644); err != nil {
		return "", "", err
	}
	for _, args := range [][]string{{"commit", "-qam", "second"}, {"repack", "-qad", "--threads=2"}} {
		if err := l.sh(src, "git", args...); err != nil {
			return "", "", err
		}
	}
	if err := l.sh(src, "git", "clone", "-q", "--bare", src, bare); err != nil {
		return "", "", err
	}
	cmd := exec.Command("git", "rev-parse", "master~1", "master")
	cmd.Dir, cmd.Env = bare, l.env()
	out, err := cmd.Output()
	if err != nil {
		return "", "", err
	}
	if err := os.RemoveAll(src); err != nil {
		return "", "", err
	}
	first, second, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return first, second, nil
}

// sameTrees compares two working copies.
func sameTrees(a, b string) error {
	out, err := exec.Command("diff", "-rq", "--no-dereference", "-x", ".git", a, b).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s and %s differ: %w\n%.500s", a, b, err, out)
	}
	return nil
}
