package early

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/changed"
)

func names() []string { return []string{"pillar", "project"} }

// world is a project's folder with some content.
func world(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, d := range []string{"pillar", "project/a/b/c", "project/a-b", "project/d", "data"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	for _, f := range []string{"pillar/init.sls", "project/x", "project/a/f", "project/a/b/g", "project/a/b/c/h", "project/a-b/i", "data/z"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), []byte(f), 0o644))
	}
	require.NoError(t, os.Link(filepath.Join(dir, "project/a/f"), filepath.Join(dir, "project/a/f2")))
	return dir
}

func open(t *testing.T, dir string) vfs.Dir {
	t.Helper()
	d, err := vfs.OS{}.OpenDir(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func begin(dir string, n *changed.Notifier, now func() time.Time) *Look {
	return beginKnown(dir, n, now, nil)
}

func beginKnown(dir string, n *changed.Notifier, now func() time.Time, known *tree.Known) *Look {
	return Begin(context.Background(), Request{Notifier: n, FS: vfs.OS{}, Dir: dir, Trees: names(), Workers: 2, Now: now, Known: func() *tree.Known { return known }})
}

// told reports whether the machine could say what changed; where it can't, for whatever reason, the caller scans.
func told(t *testing.T, err error) bool {
	t.Helper()
	if err != nil {
		require.ErrorIs(t, err, changed.ErrUnknown)
	}
	return err == nil
}

// change makes one random change below a project's folder, or beside it.
func change(r *rand.Rand, dir string) error {
	var all, dirs []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if strings.Contains(p[len(dir):], "/project/") {
			if all = append(all, p); d.IsDir() {
				dirs = append(dirs, p)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	dirs = append(dirs, dir+"/project", dir+"/project", dir+"/data")
	any := func(of []string) string {
		if len(of) == 0 {
			return dir + "/project/none"
		}
		return of[r.IntN(len(of))]
	}
	fresh := filepath.Join(any(dirs), fmt.Sprintf("n%d", r.IntN(1000)))
	switch r.IntN(11) {
	case 0:
		return os.WriteFile(fresh, []byte("new"), 0o644)
	case 1:
		return os.MkdirAll(fresh+"/below", 0o700)
	case 2:
		return os.Symlink("x", fresh)
	case 3:
		return os.RemoveAll(any(all))
	case 4, 5:
		return os.Rename(any(all), fresh)
	case 6:
		return os.Chmod(any(all), 0o700)
	case 7:
		return os.Link(any(all), fresh)
	case 8:
		return unix.Renameat2(unix.AT_FDCWD, any(all), unix.AT_FDCWD, any(all), unix.RENAME_EXCHANGE)
	case 9:
		return os.WriteFile(dir+"/pillar/init.sls", []byte(fresh), 0o600)
	}
	f, err := os.OpenFile(any(all), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("more")
	return errors.Join(err, f.Close())
}

// Whatever changes before a look, during it and after it, what is taken is what a scan finds; also where the look knows names from a scan before.
func TestHistories(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	known := 0
	var worlds []string
	for range 150 {
		worlds = append(worlds, world(t))
	}
	time.Sleep(2 * tree.RacyWindow) // the folders' names are known only if they did not change just before
	for i, dir := range worlds {
		var was *tree.Known
		if i%4 != 0 {
			at := vfs.FileTime()
			m, err := tree.Scan(context.Background(), open(t, dir), names(), 2)
			require.NoError(t, err)
			tree.MarkRacy(m.Entries, at)
			was = tree.KnownFrom(&tree.Manifest{Entries: m.Entries})
			for range r.IntN(4) {
				_ = change(r, dir)
			}
		}
		l := beginKnown(dir, changed.New(1), time.Now, was)
		if r.IntN(2) == 0 {
			<-l.done
		}
		for range r.IntN(6) {
			_ = change(r, dir) // what can't be done changes nothing
		}
		src := open(t, dir)
		got, begun, err := l.Take(context.Background(), src)
		if !told(t, err) {
			continue
		}
		known++
		require.Equal(t, l.begun, begun)
		want, err := tree.Scan(context.Background(), src, names(), 2)
		require.NoError(t, err)
		require.Equal(t, len(want.Entries), len(got.Entries))
		for i := range want.Entries {
			require.Equal(t, want.Entries[i], got.Entries[i])
		}
	}
	if os.Geteuid() == 0 {
		t.Logf("%d of 150 were known", known)
	}
}

// A look that is too old, of another tree, or whose caller has gone away is not taken, and leaves nothing behind.
func TestWhatIsNotTaken(t *testing.T) {
	n := changed.New(1)
	late := time.Now()
	for name, c := range map[string]func(l *Look, dir string) error{
		"old":      func(*Look, string) error { late = late.Add(3 * MaxAge); return nil },
		"the past": func(*Look, string) error { late = late.Add(-3 * MaxAge); return nil },
		"another tree": func(_ *Look, dir string) error {
			return errors.Join(os.Rename(dir+"/project", dir+"/was"), os.Mkdir(dir+"/project", 0o755))
		},
		"exchanged": func(_ *Look, dir string) error {
			return unix.Renameat2(unix.AT_FDCWD, dir+"/project", unix.AT_FDCWD, dir+"/data", unix.RENAME_EXCHANGE)
		},
		"a tree is gone": func(_ *Look, dir string) error { return os.RemoveAll(dir + "/pillar") },
		"the mode of a tree": func(_ *Look, dir string) error {
			return os.Chmod(dir+"/project", 0o700)
		},
		"ended": func(l *Look, _ string) error { l.stop(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := world(t)
			at := late
			l := begin(dir, n, func() time.Time { return at.Add(late.Sub(at)) })
			if name != "ended" {
				<-l.done
			}
			require.NoError(t, c(l, dir))
			_, _, err := l.Take(context.Background(), open(t, dir))
			if name != "ended" || err != nil { // it may have been there already
				require.Error(t, err)
			}
		})
		idle(t, n)
	}
	// Dropped at any moment.
	dir := world(t)
	for i := range 20 {
		l := begin(dir, n, time.Now)
		if i%2 == 0 {
			<-l.done
		}
		l.Drop()
		idle(t, n)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	l := begin(dir, n, time.Now)
	_, _, err := l.Take(ctx, open(t, dir))
	require.True(t, err == nil || errors.Is(err, context.Canceled) || errors.Is(err, changed.ErrUnknown))
	idle(t, n)
}

// What is found is copied, until the look is taken.
func TestFound(t *testing.T) {
	dir := world(t)
	l := begin(dir, changed.New(1), time.Now)
	a, begun, err := l.Found(context.Background())
	if !told(t, err) {
		l.Drop()
		return
	}
	require.Equal(t, l.begun, begun)
	want := slices.Clone(a.Entries)
	for i := range a.Entries {
		a.Entries[i].Path = "other"
	}
	b, _, err := l.Found(context.Background())
	require.NoError(t, err)
	require.Equal(t, want, b.Entries)
	c, _, err := l.Take(context.Background(), open(t, dir))
	if told(t, err) {
		require.Equal(t, want, c.Entries)
	}
	_, _, err = l.Found(context.Background())
	require.ErrorIs(t, err, errTaken)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	l = begin(dir, changed.New(1), time.Now)
	defer l.Drop()
	_, _, err = l.Found(ctx)
	require.True(t, err == nil || errors.Is(err, context.Canceled) || errors.Is(err, changed.ErrUnknown), "%v", err)
}

// idle waits until no watch is left of a notifier of one, where there can be any.
func idle(t *testing.T, n *changed.Notifier) {
	t.Helper()
	dir := t.TempDir()
	if w, err := changed.New(1).Begin(dir); err != nil {
		return
	} else {
		w.Close()
	}
	require.Eventually(t, func() bool {
		w, err := n.Begin(dir)
		if err == nil {
			w.Close()
		}
		return err == nil
	}, 20*time.Second, time.Millisecond)
}
