package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
)

// settled waits until the server has done in the background what it does to archives: see atRest.
func (m *crashed) settled() {
	m.t.Helper()
	for range 1200 {
		if m.atRest() {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	m.fail("the archives do not come to rest")
}

// atRest reports whether nothing goes on in the background: all projects were due at the start, each deployment that has ended
// was told to what packs and removes archives, that was seen to, nothing waits to be deleted, and all archives but the newest are packed.
func (m *crashed) atRest() bool {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.hook, "upkeep"))
	require.NoError(m.t, err)
	all, ended, told, due := false, 0, 0, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		what, name, _ := strings.Cut(strings.TrimPrefix(line, "upkeep "), " ")
		switch {
		case line == "upkeep all due":
			all = true
		case line == "ended" && all:
			ended++
		case line == "told" && all:
			told++
		case what == "due" || what == "idle":
			due[name] = what == "due"
		}
	}
	if !all || told < ended || due[m.project] {
		return false
	}
	names, err := os.ReadDir(m.paths().Archives())
	require.NoError(m.t, err)
	if slices.ContainsFunc(names, func(d fs.DirEntry) bool { return half.MatchString(d.Name()) }) {
		return false
	}
	list, err := archive.New(m.paths(), archive.Config{}).List()
	require.NoError(m.t, err)
	plain := 0
	for _, a := range list {
		if a.Whole && a.Packed == nil && len(a.Trees) > 0 {
			plain++
		}
	}
	if plain > 1 {
		m.fail("the server is done, and %d archives are folders", plain)
	}
	return true
}

// durable is everything that a second restart must leave as it is.
func (m *crashed) durable() string {
	m.t.Helper()
	var b strings.Builder
	m.settled()
	text, err := trees(m.paths())
	require.NoError(m.t, err)
	b.WriteString(text)
	for _, dir := range []string{m.paths().ProjectGit(), m.paths().PillarGit()} {
		b.WriteString("[refs]\n" + m.refs(dir) + "\n")
		head, err := os.ReadFile(filepath.Join(dir, "HEAD"))
		require.NoError(m.t, err)
		b.Write(head)
	}
	for _, dir := range []string{m.state().Journals(), m.state().Events(m.project), m.paths().Archives()} {
		b.WriteString("[" + filepath.Base(dir) + "]\n")
		if _, err := os.Stat(dir); err == nil {
			text, err := manifest(dir)
			require.NoError(m.t, err)
			b.WriteString(text)
		}
	}
	b.WriteString("[records]\n" + m.must("deployments", m.project, "--json", "--limit", "1000"))
	return b.String()
}

// difference shows the lines that only one of two manifests has.
func difference(a, b string) string {
	count := map[string]int{}
	for line := range strings.Lines(a) {
		count[line]++
	}
	for line := range strings.Lines(b) {
		count[line]--
	}
	var out []string
	for line, n := range count {
		switch {
		case n > 0:
			out = append(out, line[:len(line)-1]+"   <- gone")
		case n < 0:
			out = append(out, line[:len(line)-1]+"   <- came")
		}
	}
	sort.Strings(out)
	if len(out) > 40 {
		out = append(out[:40], "…")
	}
	return strings.Join(out, "\n")
}
