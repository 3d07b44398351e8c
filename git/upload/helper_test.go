package upload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/internal/testutil/gittest"
)

const helperEnv = "CORPUS_UPLOAD_TEST_HELPER"

// TestMain lets the test binary stand in for ssh: git runs it as "<binary> [options] host git-upload-pack '<path>'".
func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "" {
		os.Exit(m.Run())
	}
	if err := helper(os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(1)
	}
}

func helper(command string) error {
	dir := strings.Trim(strings.TrimPrefix(command, "git-upload-pack "), "'")
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	var in io.Reader = os.Stdin
	if name := os.Getenv(helperEnv + "_TRACE"); name != "" {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		in = io.TeeReader(in, f)
	}
	return Serve(context.Background(), Request{Objects: db, Refs: &refs.Store{Dir: dir}, Version: Version(os.Getenv("GIT_PROTOCOL"))}, in, os.Stdout)
}

// peer is a source repository, and clients that reach it through Serve with one version of the protocol.
type peer struct {
	t       testing.TB
	src     string
	version int
	env     []string
}

func newPeer(t testing.TB, version int) *peer {
	t.Helper()
	p := &peer{t: t, src: filepath.Join(t.TempDir(), "src"), version: version}
	require.NoError(t, os.Mkdir(p.src, 0o755))
	p.git(p.src, "init", "-q", "-b", "main")
	return p
}

func (p *peer) bare() string { return filepath.Join(p.src, ".git") }
func (p *peer) url() string  { return "ssh://test" + p.bare() }

func (p *peer) command(dir string, args ...string) (string, error) {
	self, err := os.Executable()
	require.NoError(p.t, err)
	cmd := exec.Command("git", append([]string{"-c", fmt.Sprintf("protocol.version=%d", p.version)}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(gittest.Env(), "GIT_SSH_COMMAND="+self, "GIT_SSH_VARIANT=ssh", helperEnv+"=1")
	cmd.Env = append(cmd.Env, p.env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return strings.TrimSuffix(out.String(), "\n"), err
}

func (p *peer) git(dir string, args ...string) string {
	p.t.Helper()
	out, err := p.command(dir, args...)
	require.NoError(p.t, err, "git %s: %s", strings.Join(args, " "), out)
	return out
}

// commit changes some files at time n.
func (p *peer) commit(n int, files ...string) string {
	p.t.Helper()
	for _, f := range files {
		name := filepath.Join(p.src, f)
		require.NoError(p.t, os.MkdirAll(filepath.Dir(name), 0o755))
		text := strings.Repeat(fmt.Sprintf("a line of %s\n", f), 50) + fmt.Sprintf("change %d\n", n)
		require.NoError(p.t, os.WriteFile(name, []byte(text), 0o644))
	}
	when := fmt.Sprintf("%d +0000", 1_700_000_000+n*3600)
	p.env = []string{"GIT_AUTHOR_DATE=" + when, "GIT_COMMITTER_DATE=" + when}
	p.git(p.src, "add", "-A")
	p.git(p.src, "commit", "-q", "--allow-empty", "-m", fmt.Sprint("commit ", n))
	return p.git(p.src, "rev-parse", "HEAD")
}

// sample is a repository with branches, a merge, renames and tags.
func sample(t testing.TB, version int) *peer {
	p := newPeer(t, version)
	for n := 1; n <= 4; n++ {
		p.commit(n, "a", fmt.Sprintf("dir/%d", n), "dir/sub/x")
	}
	p.git(p.src, "tag", "light")
	p.git(p.src, "tag", "-a", "-m", "annotated", "v1")
	p.git(p.src, "tag", "-a", "-m", "a tag of a tag", "v1-again", "v1")
	p.git(p.src, "checkout", "-q", "-b", "side", "HEAD~2")
	p.commit(5, "side", "dir/sub/y")
	p.git(p.src, "checkout", "-q", "main")
	p.git(p.src, "merge", "-q", "-m", "merge", "side")
	p.git(p.src, "mv", "dir", "moved")
	p.commit(6, "a")
	p.commit(7, "b", "moved/sub/x")
	return p
}

// equal checks that a clone has exactly the source's visible refs and that every object is whole.
func (p *peer) equal(clone string) {
	p.t.Helper()
	p.git(clone, "fsck", "--strict", "--no-dangling")
	want := p.git(p.src, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
	got := p.git(clone, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
	require.Equal(p.t, want, got)
}

// each runs a test with every version of the protocol.
func each(t *testing.T, fn func(t *testing.T, p *peer)) {
	for v := range 3 {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) {
			t.Parallel()
			fn(t, sample(t, v))
		})
	}
}
