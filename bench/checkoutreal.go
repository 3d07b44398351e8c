package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// plantReal makes a bare repository of the packs of real ones, as they are, with two commits that differ in one file. Each repository's newest tree is a folder of the
// first; files whose content is in none of the packs (a partial clone) and submodules are left out, and counted.
func (l *lab) plantReal(bare string, repos []string) (first, second string, files int, err error) {
	fail := func(err error) (string, string, int, error) { return "", "", 0, err }
	if err := l.sh(filepath.Dir(bare), "git", "init", "-q", "--bare", "-b", "master", bare); err != nil {
		return fail(err)
	}
	env := append(l.env(), "GIT_DIR="+bare, "GIT_WORK_TREE="+l.dir, "GIT_INDEX_FILE="+l.path("real.index"),
		"GIT_AUTHOR_NAME=b", "GIT_AUTHOR_EMAIL=b@x", "GIT_COMMITTER_NAME=b", "GIT_COMMITTER_EMAIL=b@x")
	git := func(in io.Reader, args ...string) (string, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stderr = bare, env, in, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", args[0], err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	var parents []string
	var list []string
	for i, repo := range repos {
		if dir := filepath.Join(repo, ".git"); isDir(dir) {
			repo = dir
		}
		packs, err := filepath.Glob(filepath.Join(repo, "objects", "pack", "pack-*.pack"))
		if err != nil || len(packs) == 0 {
			return fail(fmt.Errorf("%s has no packs (%v)", repo, err))
		}
		for _, p := range packs {
			for _, file := range []string{p, strings.TrimSuffix(p, "pack") + "idx"} {
				if err := copyInto(file, filepath.Join(bare, "objects", "pack")); err != nil {
					return fail(err)
				}
			}
		}
		head, err := git(nil, "--git-dir="+repo, "rev-parse", "HEAD^{commit}")
		if err != nil {
			return fail(err)
		}
		all, err := git(nil, "ls-tree", "-r", "-z", "--full-tree", head)
		if err != nil {
			return fail(err)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(all, "\x00"), "\x00") {
			fact, path, _ := strings.Cut(line, "\t")
			list = append(list, fmt.Sprintf("%s\tr%d/%s", fact, i, path))
		}
		parents = append(parents, "-p", head)
	}
	if list, err = withContent(list, git); err != nil {
		return fail(err)
	}
	steps := func(info string, parents ...string) (string, error) {
		if _, err := git(strings.NewReader(info), "update-index", "-z", "--index-info"); err != nil {
			return "", err
		}
		tree, err := git(nil, "write-tree")
		if err != nil {
			return "", err
		}
		return git(nil, append([]string{"commit-tree", "-m", "real", tree}, parents...)...)
	}
	if first, err = steps(strings.Join(list, "\x00")+"\x00", parents...); err != nil {
		return fail(err)
	}
	blob, err := git(strings.NewReader("changed\n"), "hash-object", "-w", "--stdin")
	if err != nil {
		return fail(err)
	}
	_, path, _ := strings.Cut(list[len(list)/2], "\t")
	if second, err = steps("100644 blob "+blob+"\t"+path+"\x00", "-p", first); err != nil {
		return fail(err)
	}
	_, err = git(nil, "update-ref", "refs/heads/master", second)
	return first, second, len(list), err
}

// withContent leaves out the lines of ls-tree whose objects are not there.
func withContent(list []string, git func(io.Reader, ...string) (string, error)) ([]string, error) {
	var names bytes.Buffer
	for _, line := range list {
		fmt.Fprintln(&names, strings.Fields(line)[2])
	}
	out, err := git(&names, "cat-file", "--batch-check")
	if err != nil {
		return nil, err
	}
	kept, at := list[:0:0], 0
	for fact := range strings.Lines(out) {
		if strings.Contains(fact, " blob ") {
			kept = append(kept, list[at])
		}
		at++
	}
	if at != len(list) || at == 0 {
		return nil, errors.New("git cat-file --batch-check did not answer for each file")
	}
	fmt.Printf("%d files of real repositories; %d more are submodules, or their content is in none of the packs\n", len(kept), at-len(kept))
	return kept, nil
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

func copyInto(file, dir string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(dir, filepath.Base(file)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
