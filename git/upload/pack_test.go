package upload

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/store"
)

// A pack holds what is missing, and git completes it; nothing is written for a client that has everything.
func TestPack(t *testing.T) {
	p := newPeer(t, 2)
	p.commit(1, "a", "b/c")
	old := p.git(p.src, "rev-parse", "HEAD")
	p.commit(2, "a")
	want := p.git(p.src, "rev-parse", "HEAD")
	db, err := store.Open(p.bare(), store.Options{})
	require.NoError(t, err)
	defer db.Close()
	hashes := func(names ...string) (out []plumbing.Hash) {
		for _, n := range names {
			out = append(out, plumbing.NewHash(n))
		}
		return out
	}
	for name, have := range map[string]string{"nothing": "", "the parent": old, "what we do not know": "1234567890123456789012345678901234567890"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p.git(dir, "init", "-q", "--bare")
			if have == old {
				p.git(dir, "fetch", "-q", p.bare(), old)
			}
			var b bytes.Buffer
			n, err := Pack(t.Context(), db, hashes(want), hashes(have), &b)
			require.NoError(t, err)
			if have == old {
				require.Equal(t, 3, n, "commit, tree, blob")
			}
			cmd := exec.Command("git", "-C", dir, "index-pack", "--fix-thin", "--stdin")
			cmd.Stdin = &b
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			p.git(dir, "update-ref", "refs/heads/x", want)
			p.git(dir, "fsck", "--full", "--strict")
			require.Equal(t, p.git(p.src, "rev-list", "--objects", "--no-object-names", want), p.git(dir, "rev-list", "--objects", "--no-object-names", want))
		})
	}
	var b bytes.Buffer
	n, err := Pack(t.Context(), db, hashes(want), hashes(want), &b)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Zero(t, b.Len())
}
