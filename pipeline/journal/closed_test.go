package journal

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

// A journal that is known is not read, and is continued as one that was.
func TestClosed(t *testing.T) {
	dir := t.TempDir()
	var known Closed
	path, other := filepath.Join(dir, "app.journal"), filepath.Join(dir, "other.journal")
	ended := func(id project.ID) []Entry { return append(sample(id), Entry{Kind: Ended, Deployment: id}) }
	for _, id := range []project.ID{"one", "two", "three"} {
		j, got, err := known.Open(path)
		require.NoError(t, err)
		require.False(t, OpenEnded(got))
		require.Equal(t, id != "one", j.size > 0 && j.ended)
		for _, e := range ended(id) {
			require.NoError(t, j.Append(e))
		}
		require.NoError(t, j.Close())
		require.Contains(t, known.of, path)
		write(t, other, ended(id)...) // reads each time
	}
	want, err := os.ReadFile(other)
	require.NoError(t, err)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	_, entries, err := Open(path)
	require.NoError(t, err)
	require.Equal(t, ended("three"), entries)
}

// A journal that was changed since it was closed is read, and so is one in which a deployment is open.
func TestClosedReadsWhatHasChanged(t *testing.T) {
	whole := func(t *testing.T, path string) []byte {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return data
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, path string)
		open   bool
		bad    bool
	}{
		"another deployment is open": {open: true, change: func(t *testing.T, path string) { write(t, path, sample("two")...) }},
		"a torn entry": {change: func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, append(whole(t, path), "deadbe"...), 0o600))
		}},
		"its end is gone": {open: true, change: func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, int64(len(whole(t, path))-1))) }},
		"damage, with the same size and time": {bad: true, change: func(t *testing.T, path string) {
			st, err := os.Stat(path)
			require.NoError(t, err)
			data := whole(t, path)
			data[20] ^= 1
			require.NoError(t, os.WriteFile(path, data, 0o600))
			require.NoError(t, os.Chtimes(path, time.Now(), st.ModTime()))
		}},
		"another file": {open: true, change: func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+".old"))
			write(t, path, sample("two")...)
		}},
		"it is gone": {change: func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.journal")
			var known Closed
			j, _, err := known.Open(path)
			require.NoError(t, err)
			for _, e := range append(sample("one"), Entry{Kind: Ended, Deployment: "one"}) {
				require.NoError(t, j.Append(e))
			}
			require.NoError(t, j.Close())
			time.Sleep(20 * time.Millisecond) // more than a tick of the kernel's clock, within which two changes have the same time
			c.change(t, path)
			j, got, err := known.Open(path)
			require.NotContains(t, known.of, path)
			if c.bad {
				require.ErrorContains(t, err, "damaged")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.open, OpenEnded(got))
			require.NoError(t, j.Close())
			_, ok := known.of[path]
			require.Equal(t, !c.open, ok)
		})
	}
}
