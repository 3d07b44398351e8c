package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"corpus-git/backup"
	"corpus-git/internal/fault"
	"corpus-git/layout"
)

// server is one of two projects, the second of which appears, or goes, while the first is read.
type server struct {
	names  []string
	onHold func(name string)
	copies int
	held   map[string]int
}

func (s *server) Hold(_ context.Context, name string) (backup.Held, error) {
	s.held[name]++
	if s.onHold != nil {
		s.onHold(name)
	}
	return backup.Held{Code: strings.Repeat("1", 40), Release: func() { s.held[name]-- }}, nil
}

func (s *server) Owns(_ context.Context, name, id string) bool { return name+"-1" == id }

func (s *server) Database(_ context.Context, path string, _ map[string]backup.Held) ([]string, error) {
	s.copies++
	return s.names, os.WriteFile(path, []byte("database"), 0o600)
}

// world is a root with projects named names.
func world(t testing.TB, names ...string) (layout.Root, layout.State, *server) {
	root := layout.Root(t.TempDir())
	state := root.DefaultState()
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o640))
	}
	for _, name := range names {
		p := root.Project(name)
		write(filepath.Join(p.ProjectGit(), "refs/heads/master"), "1\n")
		write(filepath.Join(p.ProjectGit(), "refs/heads/master.lock"), "half")
		write(filepath.Join(p.ProjectGit(), "objects/pack/a.pack"), "pack")
		write(filepath.Join(p.ProjectGit(), "objects/incoming-7/a.pack"), "half")
		write(filepath.Join(p.Live(), "page"), name)
		write(filepath.Join(p.Data(), "table"), "rows")
		write(filepath.Join(p.Archives(), "2026", "manifest"), "m")
		write(filepath.Join(p.Archives(), ".spare", "x"), "x")
		write(state.Journal(name), "journal")
		write(filepath.Join(state.Undo(name+"-1"), "log"), "undo")
		write(filepath.Join(state.LiveUndo(name), "00000001-"+name+"-0", "log"), "undo of what is live")
		write(state.Passwords(name), "{}")
		write(state.Extends(name), "[]")
	}
	write(filepath.Join(state.Undo("running"), "log"), "undo")
	write(state.HostKey(), "key")
	write(state.Lock(), "pid")
	write(state.ClusterPosition(), "{}")
	write(state.Database()+"-wal", "wal")
	write(filepath.Join(root.Salt(), "own.sls"), "{}")
	require.NoError(t, os.Symlink("../projects/app/project/.salt", filepath.Join(root.Salt(), "link")))
	return root, state, &server{names: names, held: map[string]int{}}
}

func write(t testing.TB, root layout.Root, state layout.State, s *server, o backup.Options) ([]byte, backup.Contents) {
	o.Program, o.Host, o.Now = "1.0", "host", func() time.Time { return time.Unix(1e9, 0) }
	var out bytes.Buffer
	c, err := backup.Write(t.Context(), &out, s, root, state, o)
	require.NoError(t, err)
	return out.Bytes(), c
}

func restore(t testing.TB, file []byte) (layout.Root, error) {
	root := layout.Root(t.TempDir())
	_, err := backup.Restore(t.Context(), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file)), nil }, root, root.DefaultState(), backup.RestoreOptions{MissingToRoot: true})
	return root, err
}

func files(t testing.TB, dir string) (out []string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, rel)
		}
		return err
	}))
	return out
}

func TestRoundTrip(t *testing.T) {
	root, state, s := world(t, "app")
	file, c := write(t, root, state, s, backup.Options{})
	require.Equal(t, 0, s.held["app"], "it is given back")
	require.Equal(t, []string{"app"}, []string{c.Projects[0].Name})
	got, err := restore(t, file)
	require.NoError(t, err)
	require.Equal(t, []string{
		".corpus-git/corpus-git.db", ".corpus-git/extends/app.json", ".corpus-git/journal/app.journal", ".corpus-git/passwords/app.json", ".corpus-git/ssh_host_ed25519_key", ".corpus-git/undo/app-1/log", ".corpus-git/undo/live/app/00000001-app-0/log",
		"projects/app/git/project.git/objects/pack/a.pack", "projects/app/git/project.git/refs/heads/master", "projects/app/project/page",
		"salt/link", "salt/own.sls",
	}, files(t, got.Path()))
	full, _ := write(t, root, state, s, backup.Options{Archives: true, Data: true})
	got, err = restore(t, full)
	require.NoError(t, err)
	require.Subset(t, files(t, got.Path()), []string{"projects/app/data/table", "projects/app/archives/2026/manifest"})
	require.NotContains(t, files(t, got.Path()), "projects/app/archives/.spare/x")
}

func TestProjectsComeAndGoMeanwhile(t *testing.T) {
	root, state, s := world(t, "app", "late", "gone")
	s.names = []string{"app", "gone"}
	s.onHold = func(name string) {
		if name == "gone" {
			s.names = []string{"app", "late"}
		}
	}
	file, c := write(t, root, state, s, backup.Options{})
	require.Equal(t, []string{"project gone was destroyed while the backup was made"}, c.Notes)
	require.Equal(t, 3, s.copies, "the database is copied again after each project")
	got, err := restore(t, file)
	require.NoError(t, err)
	require.FileExists(t, got.Project("late").Live()+"/page")
	require.NoDirExists(t, got.Project("gone").Dir())
}

func TestEveryDamageIsFound(t *testing.T) {
	root, state, s := world(t, "app")
	file, _ := write(t, root, state, s, backup.Options{})
	check := func(b []byte) error {
		_, err := backup.Verify(t.Context(), bytes.NewReader(b), t.TempDir(), func(string) error { return nil })
		return err
	}
	require.NoError(t, check(file))
	for n := 0; n < len(file); n += 1 + len(file)/200 {
		require.Equal(t, fault.Refused, fault.KindOf(check(file[:n])), "cut at %d", n)
	}
	// What a compressor's own sums do not see: an entry that was changed before it was compressed.
	plain := unpack(t, file)
	for n := 600; n < len(plain)-2048; n += 1 + len(plain)/150 {
		bad := bytes.Clone(plain)
		bad[n] ^= 1
		_, err := restore(t, pack(t, bad))
		if err == nil {
			// Only what means nothing may differ: the padding between entries.
			require.Zero(t, plain[n], "at %d", n)
		}
	}
}

func unpack(t testing.TB, file []byte) []byte {
	d, err := zstd.NewReader(bytes.NewReader(file))
	require.NoError(t, err)
	defer d.Close()
	b, err := io.ReadAll(d)
	require.NoError(t, err)
	return b
}

func pack(t testing.TB, plain []byte) []byte {
	e, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return e.EncodeAll(plain, nil)
}

// made is a backup of these entries, as somebody else may write one. Its digest is never right: what is wrong must be found before.
func made(t testing.TB, version int, entries ...tar.Header) []byte {
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	head, err := json.Marshal(backup.Head{Version: version, Program: "9.9"})
	require.NoError(t, err)
	require.NoError(t, tw.WriteHeader(&tar.Header{Name: "backup.json", Size: int64(len(head)), Mode: 0o600}))
	_, err = tw.Write(head)
	require.NoError(t, err)
	for _, h := range entries {
		require.NoError(t, tw.WriteHeader(&h))
	}
	require.NoError(t, tw.Close())
	return pack(t, b.Bytes())
}

func TestForeignFiles(t *testing.T) {
	for name, test := range map[string]struct {
		file []byte
		says string
	}{
		"empty":       {nil, "it ends after 0 entries"},
		"no zstd":     {[]byte("PK\x03\x04 and more"), "it can't be read"},
		"another tar": {pack(t, unpack(t, made(t, 1))[1024:]), "cut off"},
		"newer":       {made(t, 2), "written by corpus-git 9.9 in format 2, and this version reads 1"},
		"parent":      {made(t, 1, tar.Header{Name: "projects/../../etc/passwd", Typeflag: tar.TypeReg}), "an entry projects/../../etc/passwd"},
		"absolute":    {made(t, 1, tar.Header{Name: "/etc/passwd", Typeflag: tar.TypeReg}), "an entry /etc/passwd"},
		"elsewhere":   {made(t, 1, tar.Header{Name: "root/bin/sh", Typeflag: tar.TypeReg}), "an entry root/bin/sh"},
		"top":         {made(t, 1, tar.Header{Name: "state", Typeflag: tar.TypeSymlink, Linkname: "/"}), "an entry state"},
		"cut":         {made(t, 1, tar.Header{Name: "state/x", Typeflag: tar.TypeReg}), "it ends after 2 entries, before contents.json: it was cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := restore(t, test.file)
			require.ErrorContains(t, err, test.says)
			require.Empty(t, files(t, root.Path()))
		})
	}
}

func TestNotOverAServer(t *testing.T) {
	root, state, s := world(t, "app")
	file, _ := write(t, root, state, s, backup.Options{})
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file)), nil }
	_, err := backup.Restore(t.Context(), open, root, state, backup.RestoreOptions{})
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "is not empty")
	// What a restore that died left is not a server.
	fresh := layout.Root(t.TempDir())
	require.NoError(t, os.MkdirAll(filepath.Join(fresh.RestoreTemp(), "projects/half"), 0o700))
	_, err = backup.Restore(t.Context(), open, fresh, fresh.DefaultState(), backup.RestoreOptions{MissingToRoot: true})
	require.NoError(t, err)
	require.NoDirExists(t, fresh.RestoreTemp())
	require.NoDirExists(t, fresh.Project("half").Dir())
}

func FuzzVerify(f *testing.F) {
	root, state, s := world(f, "app")
	file, _ := write(f, root, state, s, backup.Options{})
	f.Add(unpack(f, file))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, plain []byte) {
		if len(plain) > 1<<20 {
			return
		}
		packed := pack(t, plain)
		c, err := backup.Verify(t.Context(), bytes.NewReader(packed), t.TempDir(), func(string) error { return nil })
		if err != nil {
			require.Equal(t, fault.Refused, fault.KindOf(err), "%v", err)
			return
		}
		// What verifies can be restored.
		if _, err := restore(t, packed); err != nil {
			require.NotContains(t, err.Error(), "damaged", "%d entries verified", c.Entries)
		}
	})
}

func TestAccountsThatAreNotHere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("owners are root's to set")
	}
	root, state, s := world(t, "app")
	require.NoError(t, os.Chown(filepath.Join(root.Project("app").Live(), "page"), 1, 1)) // daemon
	// The attack: the project's user makes a file set-user-ID, which is nobody's harm but his own, and waits for a restore that gives it to root.
	require.NoError(t, os.Chmod(filepath.Join(root.Project("app").Live(), "page"), 0o755|os.ModeSetuid|os.ModeSetgid))
	file, _ := write(t, root, state, s, backup.Options{})
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file)), nil }
	mode := func(root layout.Root) os.FileMode {
		fi, err := os.Stat(filepath.Join(root.Project("app").Live(), "page"))
		require.NoError(t, err)
		return fi.Mode()
	}
	known := map[string]int{"root": 0, "daemon": 4711}
	o := backup.RestoreOptions{Account: func(name string, _ bool) (int, bool) { id, ok := known[name]; return id, ok }}
	owner := func(root layout.Root) int {
		fi, err := os.Stat(filepath.Join(root.Project("app").Live(), "page"))
		require.NoError(t, err)
		return int(fi.Sys().(*syscall.Stat_t).Uid)
	}
	fresh := func() layout.Root { return layout.Root(t.TempDir()) }
	got := fresh()
	_, err := backup.Restore(t.Context(), open, got, got.DefaultState(), o)
	require.NoError(t, err)
	require.Equal(t, 4711, owner(got), "by its name, whatever its number here")
	require.Equal(t, 0o755|os.ModeSetuid|os.ModeSetgid, mode(got))
	delete(known, "daemon")
	got = fresh()
	_, err = backup.Restore(t.Context(), open, got, got.DefaultState(), o)
	require.ErrorContains(t, err, "files of the backup belong to the groups daemon and the users daemon, who are not on this machine")
	require.Contains(t, fault.HintOf(err), "useradd --system")
	require.Empty(t, files(t, got.Path()))
	o.MissingToRoot = true
	_, err = backup.Restore(t.Context(), open, got, got.DefaultState(), o)
	require.NoError(t, err)
	require.Equal(t, 0, owner(got))
	require.Equal(t, os.FileMode(0o755), mode(got))
}
