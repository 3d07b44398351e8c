package permissions

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/layout"
)

func TestReset(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	top := filepath.Join(dir, "top")
	require.NoError(t, os.MkdirAll(filepath.Join(top, "sub", "skip"), 0o700))
	for _, f := range []string{outside, filepath.Join(top, "a"), filepath.Join(top, "sub", "b"), filepath.Join(top, "sub", "skip", "c")} {
		require.NoError(t, os.WriteFile(f, nil, 0o600))
	}
	require.NoError(t, os.Symlink(outside, filepath.Join(top, "link")))
	mode := func(p string) os.FileMode {
		st, err := os.Stat(p)
		require.NoError(t, err)
		return st.Mode().Perm()
	}
	r := &Reset{UID: os.Geteuid(), GID: os.Getegid(), DirMode: 0o750, FileMode: 0o640,
		Paths: []string{top, filepath.Join(dir, "nowhere", "x"), filepath.Join(dir, "no")}, Excludes: []*regexp.Regexp{regexp.MustCompile("sk.p")}}
	require.NoError(t, r.Run(context.Background()))
	require.Equal(t, 4, r.Changed)
	require.Equal(t, os.FileMode(0o750), mode(top))
	require.Equal(t, os.FileMode(0o640), mode(filepath.Join(top, "sub", "b")))
	require.Equal(t, os.FileMode(0o700), mode(filepath.Join(top, "sub", "skip")))
	require.Equal(t, os.FileMode(0o600), mode(filepath.Join(top, "sub", "skip", "c")))
	require.Equal(t, os.FileMode(0o600), mode(outside), "a link was followed")

	again := *r
	again.Changed, again.OneLevel, again.DirMode = 0, true, 0o755
	require.NoError(t, again.Run(context.Background()))
	require.Equal(t, 1, again.Changed)
	require.Equal(t, os.FileMode(0o750), mode(filepath.Join(top, "sub")))
}

func TestWriteProgram(t *testing.T) {
	state := layout.State(t.TempDir())
	for _, program := range []string{"/opt/it's/corpus-git", "/opt/it's/corpus-git", "/usr/bin/corpus-git"} {
		require.NoError(t, WriteProgram(state, program))
	}
	b, err := os.ReadFile(state.ResetPerms())
	require.NoError(t, err)
	require.Equal(t, "#!/bin/sh\nexec '/usr/bin/corpus-git' reset-perms \"$@\"\n", string(b))
}
