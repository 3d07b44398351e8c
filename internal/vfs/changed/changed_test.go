package changed

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/internal/draw"
)

// inodesOf lists what is in a folder, without the folder itself.
func inodesOf(t *testing.T, dir string) []uint64 {
	t.Helper()
	var out []uint64
	require.NoError(t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		if p != dir {
			out = append(out, st.Ino)
		}
		return nil
	}))
	return out
}

// begin watches folders; ok is false where the machine does not allow it, which must be said as that.
func begin(t *testing.T, dirs ...string) (w *Watch, ok bool) {
	t.Helper()
	w, err := New(1).Begin(dirs...)
	if err != nil {
		require.ErrorIs(t, err, ErrUnknown)
		return nil, false
	}
	return w, true
}

// elsewhere reports that what other processes do to the machine made the answer unknown.
func elsewhere(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "mounted") || strings.Contains(err.Error(), "keeps"))
}

// world is a folder "in" with some content, and a folder "out" beside it.
func world(t *testing.T) (in, out string) {
	t.Helper()
	top := t.TempDir()
	in, out = filepath.Join(top, "in"), filepath.Join(top, "out")
	for _, d := range []string{in + "/sub/deep", in + "/other", out + "/box/deep"} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	for _, f := range []string{in + "/a", in + "/b", in + "/sub/f", in + "/sub/deep/g", out + "/x", out + "/box/deep/y"} {
		require.NoError(t, os.WriteFile(f, []byte("text"), 0o644))
	}
	return in, out
}

func TestWhatChanges(t *testing.T) {
	const several = "several names"
	for name, c := range map[string]struct {
		before func(in, out string) error
		do     func(in, out string) error
		want   []string
		why    string // part of the error, where what changed is not known
	}{
		"nothing":              {do: func(string, string) error { return nil }},
		"content only":         {do: func(in, _ string) error { return os.WriteFile(in+"/a", []byte("other"), 0o644) }},
		"a mode":               {do: func(in, _ string) error { return os.Chmod(in+"/a", 0o600) }, want: []string{"a"}},
		"an owner":             {do: func(in, _ string) error { return os.Lchown(in+"/sub/f", os.Getuid(), os.Getgid()) }, want: []string{"sub/f"}},
		"an attribute":         {do: func(in, _ string) error { return unix.Lsetxattr(in+"/sub/f", "user.x", []byte("y"), 0) }, want: []string{"sub/f"}},
		"a mode of a folder":   {do: func(in, _ string) error { return os.Chmod(in+"/sub", 0o700) }, want: []string{"sub"}},
		"a mode of the folder": {do: func(in, _ string) error { return os.Chmod(in, 0o700) }, want: []string{"."}},
		"a new file":           {do: func(in, _ string) error { return os.WriteFile(in+"/sub/new", nil, 0o600) }, want: []string{"sub/new"}},
		"a new link":           {do: func(in, _ string) error { return os.Symlink("x", in+"/sub/new") }, want: []string{"sub/new"}},
		"a new fifo":           {do: func(in, _ string) error { return unix.Mkfifo(in+"/new", 0o600) }, want: []string{"new"}},
		"a new folder":         {do: func(in, _ string) error { return os.MkdirAll(in+"/new/b/c", 0o700) }, want: []string{"new"}},
		"moved in":             {do: func(in, out string) error { return os.Rename(out+"/box", in+"/sub/box") }, want: []string{"sub/box"}},
		"moved within":         {do: func(in, _ string) error { return os.Rename(in+"/sub/deep", in+"/other/deep") }, want: []string{"other/deep"}},
		"moved out":            {do: func(in, out string) error { return os.Rename(in+"/sub", out+"/sub") }},
		"removed":              {do: func(in, _ string) error { return os.RemoveAll(in + "/sub") }},
		"changed and removed":  {do: func(in, _ string) error { return errors.Join(os.Chmod(in+"/sub", 0o700), os.RemoveAll(in+"/sub")) }},
		"elsewhere": {do: func(_, out string) error {
			return errors.Join(os.Chmod(out+"/x", 0o600), os.WriteFile(out+"/z", nil, 0o600))
		}},
		"replaced by a rename": {do: func(in, out string) error { return os.Rename(out+"/x", in+"/a") }, want: []string{"a"}},
		"moved out, changed, and back": {do: func(in, out string) error {
			return errors.Join(os.Rename(in+"/sub", out+"/sub"), os.Chmod(out+"/sub/deep/g", 0o600), os.Rename(out+"/sub", in+"/sub"))
		}, want: []string{"sub", "sub/deep/g"}},
		"changed, then moved": {do: func(in, _ string) error {
			return errors.Join(os.Chmod(in+"/sub/f", 0o600), os.Rename(in+"/sub", in+"/sub2"))
		}, want: []string{"sub2", "sub2/f"}},
		"exchanged": {do: func(in, out string) error {
			return unix.Renameat2(unix.AT_FDCWD, in+"/sub", unix.AT_FDCWD, out+"/box", unix.RENAME_EXCHANGE)
		}, want: []string{"sub"}},
		"exchanged with a file within": {do: func(in, _ string) error {
			return unix.Renameat2(unix.AT_FDCWD, in+"/sub", unix.AT_FDCWD, in+"/a", unix.RENAME_EXCHANGE)
		}, want: []string{"a", "sub"}},
		"by a name outside that is gone": {do: func(in, out string) error {
			return errors.Join(os.Link(in+"/sub/f", out+"/l"), os.Chmod(out+"/l", 0o600), os.Remove(out+"/l"))
		}, want: []string{"sub/f"}},
		"by a name outside that stays": {do: func(in, out string) error {
			return errors.Join(os.Link(in+"/sub/f", out+"/l"), os.Chmod(out+"/l", 0o600))
		}, why: several},
		"by a name within that is gone": {
			before: func(in, _ string) error { return os.Link(in+"/sub/f", in+"/l") },
			do:     func(in, _ string) error { return errors.Join(os.Chmod(in+"/l", 0o600), os.Remove(in+"/l")) },
			want:   []string{"l", "sub/f"},
		},
		"by a descriptor of a file that was moved": {do: func(in, _ string) error {
			f, err := os.Open(in + "/sub/f")
			if err != nil {
				return err
			}
			defer f.Close()
			return errors.Join(os.Rename(in+"/sub/f", in+"/other/h"), f.Chmod(0o600))
		}, want: []string{"other/h"}},
		"a file without a name gets one": {do: func(in, _ string) error {
			fd, err := unix.Open(in, unix.O_TMPFILE|unix.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, in+"/sub/new", unix.AT_SYMLINK_FOLLOW)
		}, want: []string{"sub/new"}},
		"the folder is another one": {do: func(in, out string) error {
			return errors.Join(os.Rename(in, out+"/in"), os.Rename(out+"/box", in))
		}, why: "another folder"},
		"the folder is gone": {do: func(in, _ string) error { return os.RemoveAll(in) }, why: "no such file"},
		"the folder is a link": {do: func(in, out string) error {
			return errors.Join(os.Rename(in, out+"/in"), os.Symlink(out+"/in", in))
		}, why: "open"},
		"a folder above is another one": {do: func(in, _ string) error {
			top := filepath.Dir(in)
			return errors.Join(os.Rename(top, top+".old"), os.MkdirAll(in, 0o755))
		}, why: "another folder"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				in, out := world(t)
				if c.before != nil {
					require.NoError(t, c.before(in, out))
				}
				w, ok := begin(t, in)
				if !ok {
					return
				}
				defer w.Close()
				inodes := inodesOf(t, in)
				require.NoError(t, c.do(in, out))
				var got []string
				err := w.End()
				if elsewhere(err) {
					continue
				}
				if err == nil {
					got, err = w.In(in, slices.Values(inodes))
				}
				if c.why != "" {
					require.ErrorIs(t, err, ErrUnknown)
					require.ErrorContains(t, err, c.why)
					return
				}
				require.NoError(t, err)
				require.ElementsMatch(t, c.want, got)
				return
			}
			t.Fatal("other processes mounted something each time")
		})
	}
}

// No more than the kernel keeps is read: then nothing is known.
func TestMoreThanTheKernelKeeps(t *testing.T) {
	in, out := world(t)
	w, ok := begin(t, in)
	if !ok {
		return
	}
	defer w.Close()
	text, err := os.ReadFile("/proc/sys/fs/fanotify/max_queued_events")
	require.NoError(t, err)
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	for i := range most + 1 {
		l := fmt.Sprintf("%s/%d", out, i)
		require.NoError(t, os.Symlink("x", l))
		require.NoError(t, os.Remove(l))
	}
	if err := w.End(); err == nil || !strings.Contains(err.Error(), "mounted") { // by another process: then nothing is known, either
		require.ErrorContains(t, err, "more changes than the kernel keeps")
	}
	_, err = w.In(in, slices.Values([]uint64(nil)))
	require.ErrorIs(t, err, ErrUnknown)
}

func TestNotWatched(t *testing.T) {
	in, _ := world(t)
	n := New(1)
	_, err := n.Begin("/proc/self", filepath.Join(in, "missing"))
	require.ErrorIs(t, err, ErrUnknown)
	w, err := n.Begin(in, filepath.Join(in, "missing"))
	if err != nil {
		require.ErrorIs(t, err, ErrUnknown)
		return
	}
	_, err = n.Begin(in)
	require.ErrorContains(t, err, "1 watches already")
	_, err = w.In(in, slices.Values([]uint64(nil)))
	require.ErrorIs(t, err, ErrUnknown, "before End")
	if err := w.End(); !elsewhere(err) {
		require.NoError(t, err)
	}
	_, err = w.In(filepath.Join(in, "missing"), slices.Values([]uint64(nil)))
	require.ErrorContains(t, err, "not watched")
	require.ErrorIs(t, w.End(), ErrUnknown, "once only")
	w.Close()
	w.Close()
	n.free <- struct{}{} // the closed one has left its place
}

// Below a mount nothing is known, whenever it was made; through another mount of the same files everything is.
func TestMounts(t *testing.T) {
	in, out := world(t)
	w, ok := begin(t, in)
	if !ok {
		return
	}
	mount := func(from, to string) func() {
		require.NoError(t, unix.Mount(from, to, "", unix.MS_BIND, ""))
		gone := false
		end := func() {
			if !gone {
				gone = true
				require.NoError(t, unix.Unmount(to, unix.MNT_DETACH))
			}
		}
		t.Cleanup(end)
		return end
	}
	end := mount(out, in+"/other")
	require.ErrorContains(t, w.End(), "mounted")
	w.Close()
	_, err := New(1).Begin(in)
	require.ErrorContains(t, err, "is a mount")
	w, ok = begin(t, out)
	require.True(t, ok)
	end()
	require.ErrorContains(t, w.End(), "mounted", "it is gone, but was there")
	w.Close()
	mount(in, out+"/box")
	for range 50 {
		w, ok = begin(t, in)
		require.True(t, ok)
		inodes := inodesOf(t, in)
		require.NoError(t, os.Chmod(out+"/box/sub/f", 0o600))
		err := w.End()
		if elsewhere(err) {
			w.Close()
			continue
		}
		require.NoError(t, err)
		got, err := w.In(in, slices.Values(inodes))
		w.Close()
		require.NoError(t, err)
		require.Equal(t, []string{"sub/f"}, got)
		return
	}
	t.Fatal("other processes mounted something each time")
}

// entry is what must stay the same in what is left out.
type entry struct {
	mode, uid, gid uint32
	attr           string
}

// entries lists a folder by inode, with all names.
func entries(t *testing.T, dir string) (byInode map[uint64]entry, names map[string]uint64) {
	t.Helper()
	byInode, names = map[uint64]entry{}, map[string]uint64{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		attr := make([]byte, 10)
		n, err := unix.Lgetxattr(p, "user.x", attr)
		if err != nil {
			n = 0
		}
		rel, err := filepath.Rel(dir, p)
		byInode[st.Ino], names[rel] = entry{st.Mode, st.Uid, st.Gid, string(attr[:n])}, st.Ino
		return err
	}))
	return byInode, names
}

// Random changes in a folder and beside it: whatever In does not name is as it was at Begin.
func TestHistories(t *testing.T) {
	r := rand.New(rand.NewPCG(draw.Seed(t), 0)) //nolint:gosec // chooses test cases
	known, left := 0, 0
	for range 150 {
		in, out := world(t)
		h := &history{r: r, in: in, out: out}
		for range 5 + r.IntN(20) {
			h.step()
		}
		w, ok := begin(t, in)
		if !ok {
			return
		}
		before, _ := entries(t, in)
		h.open()
		for range 1 + r.IntN(12) {
			h.step()
		}
		err := w.End()
		var paths []string
		if err == nil {
			paths, err = w.In(in, maps.Keys(before))
		}
		w.Close()
		h.close()
		if err != nil {
			require.ErrorIs(t, err, ErrUnknown)
			continue
		}
		known++
		after, names := entries(t, in)
		for p, ino := range names {
			if slices.ContainsFunc(paths, func(c string) bool { return c == "." || p == c || strings.HasPrefix(p, c+"/") }) {
				continue
			}
			left++
			was, there := before[ino]
			require.True(t, there, "%s is new, but %q does not name it\n%s", p, paths, h.log.String())
			require.Equal(t, was, after[ino], "%s, but %q does not name it\n%s", p, paths, h.log.String())
		}
	}
	require.Greater(t, known, 50, "hardly any history was known")
	require.Greater(t, left, 200, "hardly anything was left out")
}

// history makes random changes in two folders.
type history struct {
	r       *rand.Rand
	in, out string
	held    []*os.File
	log     strings.Builder
}

// all lists everything below both folders.
func (h *history) all(folders bool) []string {
	var out []string
	for _, top := range []string{h.in, h.out} {
		_ = filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
			if err == nil && (!folders || d.IsDir()) && (p != top || folders) {
				out = append(out, p)
			}
			return nil
		})
	}
	return out
}

func (h *history) pick(folders bool) string {
	all := h.all(folders)
	if len(all) == 0 {
		return h.in
	}
	return all[h.r.IntN(len(all))]
}

// fresh returns a name in some folder, which may exist.
func (h *history) fresh() string {
	return filepath.Join(h.pick(true), string(rune('a'+h.r.IntN(8))))
}

// open holds some files open, so that later changes go through their descriptors.
func (h *history) open() {
	for range 3 {
		if f, err := os.OpenFile(h.pick(false), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0); err == nil {
			h.held = append(h.held, f)
		}
	}
}

func (h *history) close() {
	for _, f := range h.held {
		_ = f.Close()
	}
	h.held = nil
}

// step makes one change, or fails to.
func (h *history) step() {
	a, b := h.pick(false), h.fresh()
	mode := fs.FileMode(0o700 | h.r.IntN(0o100))
	uid := os.Getuid()
	if uid == 0 {
		uid = h.r.IntN(3)
	}
	steps := []struct {
		name string
		do   func() error
	}{
		{"chmod", func() error { return os.Chmod(a, mode) }},
		{"chmod", func() error { return os.Chmod(a, mode) }},
		{"chown", func() error { return os.Lchown(a, uid, os.Getgid()) }},
		{"setxattr", func() error { return unix.Lsetxattr(a, "user.x", []byte(strconv.Itoa(h.r.IntN(9))), 0) }},
		{"write", func() error { return os.WriteFile(b, []byte("x"), mode) }},
		{"mkdir", func() error { return os.MkdirAll(b+"/n/m", mode) }},
		{"symlink", func() error { return os.Symlink("nowhere", b) }},
		{"rename", func() error { return os.Rename(a, b) }},
		{"rename", func() error { return os.Rename(a, b) }},
		{"rename a folder", func() error { return os.Rename(h.pick(true), b) }},
		{"exchange", func() error {
			return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, h.pick(false), unix.RENAME_EXCHANGE)
		}},
		{"remove", func() error { return os.Remove(a) }},
		{"remove all", func() error {
			if h.r.IntN(3) > 0 || a == h.in {
				return nil
			}
			return os.RemoveAll(a)
		}},
		{"link, chmod, unlink", func() error {
			l := filepath.Join(h.out, "passing")
			return errors.Join(os.Link(a, l), os.Chmod(l, mode), os.Remove(l))
		}},
		{"link", func() error {
			if h.r.IntN(4) > 0 {
				return nil
			}
			return os.Link(a, b)
		}},
		{"by a descriptor", func() error {
			if len(h.held) == 0 {
				return nil
			}
			return h.held[h.r.IntN(len(h.held))].Chmod(mode)
		}},
		{"truncate", func() error { return os.Truncate(a, 3) }},
	}
	s := steps[h.r.IntN(len(steps))]
	err := s.do()
	fmt.Fprintf(&h.log, "%s %s %s %o: %v\n", s.name, a, b, mode, err)
}
