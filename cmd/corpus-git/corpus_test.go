package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/project/status"
)

// corpusList is what is known of the public projects of the Salt-based corpus: repository, commit, and how many of its steps and tasks run built in
// (decided when they run included), go to Salt and are refused; the folder of corpusPillars with the values that its PILLAR.sample lacks, as its
// operators have them in a pillar; where any is refused the reason.
const (
	corpusList    = "../../testdata/corpus/projects.tsv"
	corpusPillars = "../../testdata/corpus/pillars"
)

type corpusProject struct {
	repository, commit           string
	steps, native, salt, refused int
	pillar, reason               string
}

func readCorpusList(t *testing.T) (out []corpusProject) {
	text, err := os.ReadFile(corpusList)
	require.NoError(t, err)
	r := csv.NewReader(strings.NewReader(string(text)))
	r.Comma, r.Comment, r.LazyQuotes = '\t', '#', true
	rows, err := r.ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"repository", "commit", "steps", "native", "salt", "refused", "pillar", "reason"}, rows[0])
	for _, row := range rows[1:] {
		p := corpusProject{repository: row[0], commit: row[1], pillar: row[6], reason: row[7]}
		for i, n := range []*int{&p.steps, &p.native, &p.salt, &p.refused} {
			*n, err = strconv.Atoi(row[i+2])
			require.NoError(t, err, row)
		}
		out = append(out, p)
	}
	return out
}

func TestCorpusListIsWhole(t *testing.T) {
	seen, pillars := map[string]bool{}, map[string]bool{}
	for _, p := range readCorpusList(t) {
		require.Regexp(t, `^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$`, p.repository)
		require.Regexp(t, `^[0-9a-f]{40}$`, p.commit, p.repository)
		require.False(t, seen[p.repository], p.repository)
		seen[p.repository] = true
		require.Equal(t, p.steps, p.native+p.salt+p.refused, p.repository)
		require.False(t, (p.refused > 0 || p.steps == 0) && p.reason == "", "%s: no reason", p.repository)
		if p.pillar != "" {
			pillars[p.pillar] = true
			require.FileExists(t, filepath.Join(corpusPillars, p.pillar, "init.sls"))
		}
	}
	require.NotEmpty(t, seen)
	folders, err := os.ReadDir(corpusPillars)
	require.NoError(t, err)
	for _, f := range folders {
		require.True(t, pillars[f.Name()], "%s: no project of the list has this pillar", f.Name())
	}
}

// TestCorpusProjects looks over checkouts that somebody has: $CORPUS_DIR/<owner>/<name> or <owner>+<name> at any commit; of one at the listed commit
// the counts must be the listed ones.
func TestCorpusProjects(t *testing.T) {
	dir := os.Getenv("CORPUS_DIR")
	if dir == "" {
		t.Skip("CORPUS_DIR names no checkouts:  make corpus DIR=…")
	}
	exe := filepath.Join(t.TempDir(), "corpus-git")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", exe, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	whole, found := 0, 0
	for _, want := range readCorpusList(t) {
		var checkout string
		for _, form := range []string{want.repository, strings.Replace(want.repository, "/", "+", 1), filepath.Base(want.repository)} {
			for _, below := range []string{"", "repo"} {
				if git := exec.CommandContext(t.Context(), "git", "-C", filepath.Join(dir, form, below), "rev-parse", "HEAD"); checkout == "" && git.Run() == nil {
					checkout = filepath.Join(dir, form, below)
				}
			}
		}
		if checkout == "" {
			fmt.Printf("%-45s not there\n", want.repository)
			continue
		}
		found++
		abs, err := filepath.Abs(checkout)
		require.NoError(t, err)
		head, err := exec.CommandContext(t.Context(), "git", "-C", abs, "rev-parse", "HEAD").Output()
		require.NoError(t, err)
		name := strings.TrimPrefix(strings.TrimPrefix(filepath.Base(want.repository), "corpus-"), "setups.")
		args := []string{"import", "--json", "--project", strings.ReplaceAll(strings.ToLower(name), "_", "-")}
		if want.pillar != "" {
			args = append(args, "--pillar", filepath.Join(corpusPillars, want.pillar))
		}
		cmd := exec.CommandContext(t.Context(), exe, append(args, "file://"+abs)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
		text, err := cmd.Output()
		var doc status.Import
		require.NoError(t, json.Unmarshal(text, &doc), "%s: %v", want.repository, err)
		got := corpusProject{repository: want.repository, commit: strings.TrimSpace(string(head)), steps: len(doc.Files), native: doc.Builtin + doc.Deferred, salt: doc.Salt, refused: doc.Refused + len(doc.Problems)}
		got.steps += len(doc.Problems)
		fmt.Printf("%-45s %2d steps and tasks: %2d built in, %2d to Salt, %2d refused\n", want.repository, got.steps, got.native, got.salt, got.refused)
		if got.steps > 0 && got.refused == 0 {
			whole++
		}
		if got.commit != want.commit {
			continue
		}
		got.pillar, got.reason = want.pillar, want.reason
		require.Equal(t, want, got)
	}
	fmt.Printf("%d of %d plan whole\n", whole, found)
}
