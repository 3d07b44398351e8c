package undo

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
)

// TestRepaired checks that a log that only restores what an older log left has nothing more to undo, and that one with further changes has.
func TestRepaired(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	f := vfs.OS{}
	etc(t, f, root)
	m := Machine{FS: f, Boot: "1"}
	write := func(log, path, content string) string {
		t.Helper()
		dir := filepath.Join(root, "state", log)
		l, err := New(m, dir)
		require.NoError(t, err)
		require.NoError(t, l.Before(context.Background(), root+path))
		put1(t, f, root+path, content, 0o644)
		require.NoError(t, l.After(t.Context()))
		require.NoError(t, l.Close())
		return dir
	}
	older := []string{write("second", "/etc/nginx/site", "two\n"), write("first", "/etc/hosts", "one\n")}
	for _, x := range []struct {
		name, path, drift, content string
		want                       bool
	}{
		{"the same again", "/etc/nginx/site", "edited\n", "two\n", true},
		{"of an older one", "/etc/hosts", "edited\n", "one\n", true},
		{"something else", "/etc/hosts", "edited\n", "three\n", false},
		{"a new file", "/etc/nginx/new", "edited\n", "two\n", false},
	} {
		put1(t, f, root+x.path, x.drift, 0o644)
		got, err := Repaired(m, write(x.name, x.path, x.content), older)
		require.NoError(t, err)
		assert.Equal(t, x.want, got, x.name)
	}
	got, err := Repaired(m, root+"/state/none", older)
	require.NoError(t, err)
	assert.False(t, got, "nothing is not repaired")
}

// TestOnce checks that a path in several logs is one change.
func TestOnce(t *testing.T) {
	a, b, c := Item{Noun: file, Name: "/a"}, Item{Noun: link, Name: "/a"}, Item{Noun: "crontab", Name: "www-data"}
	u := Item{Noun: "user", Name: "www-data"}
	got := Report{Undone: []Item{a, b, c, c, u, {Noun: file, Name: "/left"}}, Left: []Item{{Noun: file, Name: "/left"}}, Failed: []Item{u},
		Manual: []Item{{Name: "cmd.run: make", State: State{"010_a", "make"}}, {Name: "cmd.run: make", State: State{"020_b", "make"}}, {Name: "cmd.run: make", State: State{"010_a", "make"}}}}.Once()
	assert.Equal(t, []Item{a, c}, got.Undone)
	assert.Len(t, got.Left, 1)
	assert.Equal(t, []Item{u}, got.Failed)
	assert.Len(t, got.Manual, 2, "a command that each release ran is listed once")
}
