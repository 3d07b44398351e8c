//go:build fleet

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/layout"
)

// check compares every node, and the hub, with what should be live.
func (f *crashedFleet) check() {
	f.t.Helper()
	for _, root := range append([]layout.Root{f.root}, f.roots()...) {
		paths := root.Project("app")
		f.until(fmt.Sprintf("%s is not %d: it is %s", root, f.live, f.holds(paths)), func() bool { return f.holds(paths) == fmt.Sprint(f.live) })
		if text, err := os.ReadFile(filepath.Join(root.Path(), "wrong")); err == nil {
			f.fail("%s: %s", root, text)
		}
		text, _ := os.ReadFile(filepath.Join(root.Path(), "began"))
		begun := map[string]int{}
		for line := range strings.Lines(string(text)) {
			if begun[line]++; begun[line] > 1 {
				f.fail("%s: began twice: %s", root, line)
			}
		}
	}
}

// holds is which version a machine holds, or what is wrong with its tree.
func (f *crashedFleet) holds(paths layout.Project) string {
	tree := paths.Live()
	version := func(name string) string {
		text, err := os.ReadFile(filepath.Join(tree, name))
		if err != nil {
			return "no " + name
		}
		return strings.TrimSpace(string(text))
	}
	v := version("version")
	for i := range 20 {
		if got := version(fmt.Sprintf("files/%d", i)); got != fmt.Sprintf("%d of %s", i, v) {
			return fmt.Sprintf("version %s with files/%d of %q", v, i, got)
		}
	}
	only, err := os.ReadDir(filepath.Join(tree, "only"))
	if err != nil || len(only) != 1 || only[0].Name() != v {
		return fmt.Sprintf("version %s with only/%v (%v)", v, only, err)
	}
	branch, err := f.command(f.dir, "git", "--git-dir", paths.ProjectGit(), "log", "-1", "--format=%s", "master").Output()
	if err != nil || strings.TrimSpace(string(branch)) != v {
		return fmt.Sprintf("version %s with branch %s (%v)", v, branch, err)
	}
	return v
}
