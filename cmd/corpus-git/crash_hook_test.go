package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"corpus-git/cmd/corpus-git/app"
	"corpus-git/internal/trap"
	"corpus-git/layout"
)

// crashable is the program as the tests run it: main, but for a server in whose environment CRASH_HOOK_DIR names a
// folder. At each journal boundary such a server
//
//   - adds the boundary's name to the file  points ;
//   - at "committing", when the new tree is complete, writes its manifest to  new ;
//   - counts down the number in  arm , if that file is there, and kills itself with SIGKILL where it finds 0.
//
// The file  project  says which project is meant. What it does beside deployments is added to the file  upkeep . The
// environment may trap the server, too (trap.Start).
func crashable() {
	if err := trap.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, "crash hook:", err)
		os.Exit(99)
	}
	dir := os.Getenv("CRASH_HOOK_DIR")
	if dir == "" {
		main()
		return
	}
	os.Exit(app.Main(app.Process{
		Boot: os.Getenv("CRASH_BOOT"),
		Args: os.Args[1:], Environment: app.Environment{Env: os.Environ(), UID: os.Geteuid()}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Boundary: func(point string) {
			if err := atBoundary(dir, point); err != nil {
				fmt.Fprintln(os.Stderr, "crash hook:", err)
				os.Exit(99)
			}
		},
	}))
}

func atBoundary(dir, point string) error {
	if point == "ended" || point == "told" || point == "recovered" || strings.HasPrefix(point, "upkeep ") {
		if err := addLine(filepath.Join(dir, "upkeep"), point); err != nil || point != "ended" {
			return err
		}
	}
	if point == "committing" {
		name, err := os.ReadFile(filepath.Join(dir, "project"))
		if err != nil {
			return err
		}
		text, err := trees(layout.Root(os.Getenv("CORPUS_GIT_ROOT")).Project(string(name)))
		if err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(dir, "new"), text); err != nil {
			return err
		}
	}
	if err := addLine(filepath.Join(dir, "points"), point); err != nil {
		return err
	}
	arm := filepath.Join(dir, "arm")
	text, err := os.ReadFile(arm)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	if n > 0 {
		return replaceFile(arm, strconv.Itoa(n-1))
	}
	if err := os.Remove(arm); err != nil {
		return err
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		return err
	}
	select {}
}

func addLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

func replaceFile(path, text string) error {
	if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+"~", path)
}

// trees is the manifest of both trees of a project. What locks leave in .git is not a part of a tree.
func trees(p layout.Project) (string, error) {
	code, err := manifest(p.Live())
	if err != nil {
		return "", err
	}
	pillar, err := manifest(p.Pillar())
	return "[project]\n" + code + "[pillar]\n" + pillar, err
}
