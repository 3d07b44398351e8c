package changed

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTwoFileSystemsWithOneID has a copy of a file system mounted beside it: the ID that events carry is the same, so that only one can be watched.
func TestTwoFileSystemsWithOneID(t *testing.T) {
	if _, err := os.Stat("/dev/loop-control"); err != nil || os.Geteuid() != 0 {
		t.Skip("mounting a file needs root and loop devices")
	}
	dir := t.TempDir()
	run := func(argv ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	run("truncate", "-s", "16M", dir+"/one.img")
	run("mkfs.ext4", "-q", dir+"/one.img")
	run("cp", dir+"/one.img", dir+"/two.img")
	var trees []string
	for _, name := range []string{"one", "two"} {
		at := filepath.Join(dir, name)
		require.NoError(t, os.Mkdir(at, 0o755))
		run("mount", "-o", "loop", at+".img", at)
		t.Cleanup(func() { _ = exec.Command("umount", "-l", at).Run() })
		tree := filepath.Join(at, "tree")
		require.NoError(t, os.Mkdir(tree, 0o755))
		trees = append(trees, tree)
	}
	for range 50 {
		w, ok := begin(t, trees...)
		if !ok {
			return
		}
		require.NoError(t, os.WriteFile(trees[0]+"/f", nil, 0o600))
		require.NoError(t, os.WriteFile(trees[1]+"/g", nil, 0o600))
		err := w.End()
		if elsewhere(err) {
			w.Close()
			continue
		}
		require.NoError(t, err)
		paths, err := w.In(trees[0], slices.Values([]uint64(nil)))
		require.NoError(t, err)
		require.Equal(t, []string{"f"}, paths)
		_, err = w.In(trees[1], slices.Values([]uint64(nil)))
		require.ErrorContains(t, err, "not watched")
		w.Close()
		return
	}
	t.Fatal("other processes mounted something each time")
}
