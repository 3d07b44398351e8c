// Package gittest runs the real git for tests of the git engine: it makes the repositories that they read, and verifies what they write.
//
// Only tests import it. It reads no configuration of the machine or of the user, and all commits have the same author and date, so that
// object names are the same everywhere.
package gittest

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

// Env returns the environment that git runs with.
func Env() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ann Author", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_AUTHOR_DATE=1700000000 +0130",
		"GIT_COMMITTER_NAME=Carl", "GIT_COMMITTER_EMAIL=carl@example.org", "GIT_COMMITTER_DATE=1700000060 +0000",
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
}

// Git runs git in dir and returns what it prints, without the last line feed. A failure fails the test.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return GitIn(t, dir, nil, args...)
}

// GitIn is Git with in on its standard input.
func GitIn(t testing.TB, dir string, in []byte, args ...string) string {
	t.Helper()
	return strings.TrimSuffix(string(Output(t, dir, in, args...)), "\n")
}

// Output is GitIn with every byte of the output.
func Output(t testing.TB, dir string, in []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(in)
	cmd.Env = Env()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "git %s: %s", strings.Join(args, " "), errs.String())
	return out.Bytes()
}

// Hash returns the object that a revision names.
func Hash(t testing.TB, dir, rev string) plumbing.Hash {
	t.Helper()
	return plumbing.NewHash(Git(t, dir, "rev-parse", "--verify", rev))
}

// Pack packs what revs lead to, as rev-list accepts them.
func Pack(t testing.TB, dir string, revs []string, args ...string) []byte {
	t.Helper()
	return Output(t, dir, []byte(strings.Join(revs, "\n")+"\n"), append([]string{"pack-objects", "--revs", "--stdout", "-q"}, args...)...)
}

// Objects returns the names of all objects that revs lead to.
func Objects(t testing.TB, dir string, revs ...string) []plumbing.Hash {
	t.Helper()
	var out []plumbing.Hash
	for line := range strings.Lines(Git(t, dir, append([]string{"rev-list", "--objects"}, revs...)...)) {
		out = append(out, plumbing.NewHash(line[:40]))
	}
	return out
}

// WriteFile writes a file and the folders above it.
func WriteFile(t testing.TB, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

// Repo is a repository with a work tree.
type Repo struct {
	T testing.TB
	// Dir is the work tree.
	Dir string
}

// NewRepo creates an empty repository, whose branch is master, in a folder that is removed with the test.
func NewRepo(t testing.TB) *Repo {
	t.Helper()
	r := &Repo{T: t, Dir: filepath.Join(t.TempDir(), "src")}
	require.NoError(t, os.Mkdir(r.Dir, 0o755))
	r.Git("init", "-q", "-b", "master")
	return r
}

// Bare returns the repository itself.
func (r *Repo) Bare() string { return filepath.Join(r.Dir, ".git") }

// Git runs git in the work tree.
func (r *Repo) Git(args ...string) string {
	r.T.Helper()
	return Git(r.T, r.Dir, args...)
}

// Write writes a file of the work tree.
func (r *Repo) Write(name, text string) {
	r.T.Helper()
	WriteFile(r.T, filepath.Join(r.Dir, name), text)
}

// Commit commits all of the work tree.
func (r *Repo) Commit(msg string) plumbing.Hash {
	r.T.Helper()
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", msg)
	return Hash(r.T, r.Dir, "HEAD")
}

// MakeTree writes a tree object of entries "MODE NAME", or "MODE NAME=HASH", unchanged: git would not make some of them.
func (r *Repo) MakeTree(entries ...string) plumbing.Hash {
	r.T.Helper()
	blob := plumbing.NewHash(GitIn(r.T, r.Dir, []byte("evil"), "hash-object", "-w", "--stdin"))
	var b []byte
	for _, e := range entries {
		mode, name, _ := strings.Cut(e, " ")
		h := blob
		if name, of, ok := strings.Cut(name, "="); ok {
			h = plumbing.NewHash(of)
			e = mode + " " + name
		}
		b = append(b, e...)
		b = append(append(b, 0), h[:]...)
	}
	return plumbing.NewHash(GitIn(r.T, r.Dir, b, "hash-object", "-t", "tree", "--literally", "-w", "--stdin"))
}

// CommitTree makes a commit of a tree, without parents.
func (r *Repo) CommitTree(tree plumbing.Hash) plumbing.Hash {
	r.T.Helper()
	return plumbing.NewHash(r.Git("commit-tree", "-m", "hostile", tree.String()))
}

// AddCommits makes n commits, the first of them number from, that change some files of several folders.
func (r *Repo) AddCommits(from, n int) {
	r.T.Helper()
	rnd := rand.New(rand.NewSource(int64(from + 1)))
	for i := from; i < from+n; i++ {
		for range 3 {
			name := fmt.Sprintf("d%d/e%d/f%d", rnd.Intn(4), rnd.Intn(3), rnd.Intn(5))
			old, err := os.ReadFile(filepath.Join(r.Dir, name))
			for k := 0; err != nil && k < 40; k++ {
				old = fmt.Appendf(old, "%d: %x\n", k, rnd.Int63())
			}
			r.Write(name, string(old)+fmt.Sprintf("line %d of %s: %x\n", i, name, rnd.Int63()))
		}
		r.Write("count", fmt.Sprint(i))
		r.Commit(fmt.Sprintf("commit %d", i))
	}
}
