package store

import (
	"bufio"
	"bytes"
	"context"
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

// git runs the real git, the oracle of these tests.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return string(gitIn(t, dir, nil, args...))
}

func gitIn(t testing.TB, dir string, in []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "git %s: %s", strings.Join(args, " "), errs.String())
	return out.Bytes()
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

// history makes a repository of n commits that change a few files of several folders.
func history(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "master")
	more(t, dir, 0, n)
	return dir
}

func more(t testing.TB, dir string, from, n int) {
	t.Helper()
	rnd := rand.New(rand.NewSource(int64(from + 1)))
	for i := from; i < from+n; i++ {
		for range 3 {
			name := fmt.Sprintf("d%d/e%d/f%d", rnd.Intn(4), rnd.Intn(3), rnd.Intn(5))
			old, err := os.ReadFile(filepath.Join(dir, name))
			for k := 0; err != nil && k < 40; k++ {
				old = fmt.Appendf(old, "%d: %x\n", k, rnd.Int63())
			}
			write(t, dir, name, string(old)+fmt.Sprintf("line %d of %s: %x\n", i, name, rnd.Int63()))
		}
		write(t, dir, "count", fmt.Sprint(i))
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-q", "-m", fmt.Sprintf("commit %d", i))
	}
}

func head(t testing.TB, dir, rev string) plumbing.Hash {
	t.Helper()
	return plumbing.NewHash(strings.TrimSpace(git(t, dir, "rev-parse", rev)))
}

// packOf packs revs, as rev-list takes them.
func packOf(t testing.TB, dir string, revs []string, args ...string) []byte {
	t.Helper()
	return gitIn(t, dir, []byte(strings.Join(revs, "\n")+"\n"), append([]string{"pack-objects", "--revs", "--stdout", "-q"}, args...)...)
}

func newDB(t testing.TB) *DB {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r.git")
	require.NoError(t, Init(dir))
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func ingest(t testing.TB, db *DB, id string, data []byte) (*Quarantine, *Ingested) {
	t.Helper()
	q, err := db.NewQuarantine(id)
	require.NoError(t, err)
	in, err := q.Ingest(context.Background(), bufio.NewReaderSize(bytes.NewReader(data), 64<<10), IngestOptions{})
	require.NoError(t, err)
	return q, in
}

// objectsOf lists all objects that are reachable from revs.
func objectsOf(t testing.TB, dir string, revs ...string) []plumbing.Hash {
	t.Helper()
	var out []plumbing.Hash
	for line := range strings.Lines(git(t, dir, append([]string{"rev-list", "--objects"}, revs...)...)) {
		out = append(out, plumbing.NewHash(line[:40]))
	}
	return out
}

// same compares every object with what git reads.
func same(t testing.TB, r Reader, dir string, list []plumbing.Hash) {
	t.Helper()
	for _, h := range list {
		typ, data, err := r.Get(h)
		require.NoError(t, err)
		require.Equal(t, h, plumbing.ComputeHash(typ, data))
		typ2, size, err := r.Header(h)
		require.NoError(t, err)
		require.Equal(t, typ, typ2)
		require.EqualValues(t, len(data), size)
	}
}
