package oldprocs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
	"corpus-git/internal/redact"
	"corpus-git/layout"
)

func TestOldProcesses(t *testing.T) {
	proc := t.TempDir()
	root := layout.Root("/srv")
	at := root.Project("app")
	process := func(pid, cwd, exe, cmdline string) {
		dir := filepath.Join(proc, pid)
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.Symlink(cwd, filepath.Join(dir, "cwd")))
		require.NoError(t, os.Symlink(exe, filepath.Join(dir, "exe")))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cmdline"), []byte(cmdline), 0o600))
	}
	process("2", at.Live(), "/usr/bin/python3", "live\x00")
	process("3", at.Archives()+"/2026/project.failed", "/usr/bin/python3", "gunicorn\x00--token\x00s3cret\x00\x1b[31m\x00")
	process("4", "/", at.Live()+"/bin/worker (deleted)", "worker\x00")
	process("5", root.Project("application").Archives()+"/x", "/bin/sh", "another\x00")
	process("self", at.Archives()+"/x", "/bin/sh", "no number\x00")
	hide := redact.New([]redact.Secret{{Label: "token", Value: "s3cret"}}).String
	lines := List(proc, at, func(s string) string { return hide(event.ScrubText(s)) })
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0]+lines[1], "4  worker  in "+at.Live()+"/bin/worker (deleted)")
	assert.Contains(t, lines[0]+lines[1], "3  gunicorn --token [pillar:token] ")
	assert.NotContains(t, lines[0]+lines[1], "\x1b")
	assert.Empty(t, List(filepath.Join(proc, "none"), at, hide))
}
