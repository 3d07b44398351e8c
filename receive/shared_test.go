package receive_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
	"corpus-git/receive"
)

// Before a client learns that its push is stored, the refs are there to be shared, deployed or not.
func TestShared(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	w.projects.set("app", receive.Settings{StoreOtherBranches: true})
	seen := make(chan string, 10)
	w.service.Shared = func(name project.Name) {
		_, err := os.Stat(filepath.Join(w.service.Root.Project("app").ProjectGit(), "refs/heads/feature"))
		found := "there"
		if err != nil {
			found = "not there"
		}
		seen <- string(name) + " " + found
	}
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	require.Equal(t, "app not there", <-seen)
	require.Zero(t, w.push("marie", dir, "prod", "HEAD:refs/heads/feature").exit)
	require.Equal(t, "app there", <-seen)
	require.Empty(t, seen)
}
