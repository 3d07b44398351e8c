package remote_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/remote"
)

func greeting() remote.Hello { return remote.Hello{Protocol: remote.Protocol} }

// resumable responds as a session would, and notes its starts. It ends when it is greeted again if the file quit is there; with the file old it is of an older release.
const resumable = `#!/bin/sh
echo start >>starts
echo '{"hello":{"protocol":2,"release":"1"}}'
while read -r request; do
	case $request in
	*hello*)
		[ ! -e quit ] || exit 0
		if [ -e old ]; then echo '{"error":{"exit":3,"text":"an unknown request"},"done":true}'; else echo '{"hello":{"protocol":2,"release":"2"},"done":true}'; fi;;
	*trust*) echo '{"done":true}';;
	*tips*) echo '{"tips":{"code":["c"]},"done":true}';;
	esac
done
`

// A session that is kept is the next one's, as long as it responds, and the same program runs with the same root.
func TestASessionIsKept(t *testing.T) {
	h := host(t)
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte(resumable), 0o755))
	release, err := remote.ReadRelease(program)
	require.NoError(t, err)
	starts := func() int {
		text, err := os.ReadFile(filepath.Join(h.Dir, "starts"))
		require.NoError(t, err)
		return strings.Count(string(text), "start")
	}
	open := func(root string) *remote.Node {
		n := &remote.Node{Host: h, Release: release, Root: root, Project: "app"}
		_, err := n.Open(t.Context(), "k")
		require.NoError(t, err)
		require.NotEmpty(t, n.Program)
		require.Equal(t, 2, n.Protocol)
		return n
	}
	keep := func(n *remote.Node) { require.NoError(t, n.Keep()) }
	flag := func(name string, on bool) {
		if on {
			require.NoError(t, os.WriteFile(filepath.Join(h.Dir, name), nil, 0o600))
			return
		}
		require.NoError(t, os.Remove(filepath.Join(h.Dir, name)))
	}
	first := open("/r")
	require.Equal(t, "1", first.Hello.Release)
	second := open("/r") // the first is in use
	require.Equal(t, 2, starts())
	keep(first)
	keep(first)
	keep(second) // in place of the first

	n := open("/r")
	require.Equal(t, 2, starts())
	require.Equal(t, "2", n.Hello.Release)
	other := open("/other")
	require.Equal(t, 3, starts())
	require.NoError(t, other.Close())
	keep(other)
	keep(n)

	flag("old", true)
	n = open("/r")
	require.Equal(t, 3, starts())
	require.Equal(t, "2", n.Hello.Release) // what it said before
	flag("old", false)
	keep(n)

	flag("quit", true)
	n = open("/r")
	require.Equal(t, 4, starts())
	flag("quit", false)
	keep(n)

	require.NoError(t, h.Close())
	require.NoError(t, open("/r").Close())
	require.Equal(t, 5, starts())
}
