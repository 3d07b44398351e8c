package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
)

// tree describes everything below a folder, one line each.
func tree(t testing.TB, f vfs.FS, dir string) string {
	t.Helper()
	var b strings.Builder
	var walk func(path string)
	walk = func(path string) {
		names, err := f.ReadDir(path)
		require.NoError(t, err)
		for _, n := range names {
			p := filepath.Join(path, n)
			d, err := openDir(f, path)
			require.NoError(t, err)
			node, err := inspect(d, n, true)
			require.NoError(t, err)
			require.NoError(t, d.Close())
			node.Ino = 0
			if node.Type != file {
				node.Mtime = 0
			}
			fmt.Fprintf(&b, "%s %+v\n", strings.TrimPrefix(p, dir), node)
			if node.Type == folder {
				walk(p)
			}
		}
	}
	walk(dir)
	return b.String()
}

func put1(t testing.TB, f vfs.FS, path, content string, mode uint32) {
	t.Helper()
	require.NoError(t, write1(f, path, content, mode))
}

func write1(f vfs.FS, path, content string, mode uint32) error {
	return vfs.WriteFileAtomic(f, path, []byte(content), mode)
}

// opened is a Place in any file system.
type opened struct {
	fs   vfs.FS
	path string
}

func (o opened) Folder() (vfs.Dir, string, error) {
	dir, err := openDir(o.fs, filepath.Dir(o.path))
	return dir, o.path, err
}

// etc creates what a machine has before a deployment.
func etc(t testing.TB, f vfs.FS, root string) {
	for _, d := range []string{"etc", "etc/nginx", "srv", "srv/app", "log", "state"} {
		require.NoError(t, vfs.MkdirAll(f, filepath.Join(root, d), 0o755))
	}
	put1(t, f, root+"/etc/hosts", "127.0.0.1 localhost\n", 0o644)
	put1(t, f, root+"/etc/nginx/site", "old site\n"+strings.Repeat("# more than the journal takes\n", maxInJournal/29), 0o640)
	put1(t, f, root+"/etc/nginx/gone", "to be removed\n", 0o600)
	require.NoError(t, f.Symlink("../nginx/site", root+"/etc/enabled"))
	put1(t, f, root+"/srv/app/page", "live\n", 0o644)
	require.NoError(t, f.SyncFS(root))
}

// changes are what the states of a deployment do to it, each reported to the log before and after.
func changes(f vfs.FS, root string) []func(l *Log) error {
	at := func(p string) string { return filepath.Join(root, p) }
	return []func(l *Log) error{
		func(l *Log) error { // file.managed
			if err := l.Before(context.Background(), at("etc/nginx/site")); err != nil {
				return err
			}
			return write1(f, at("etc/nginx/site"), "broken site\n", 0o644)
		},
		func(l *Log) error { // file.directory and a file in it
			if err := l.Before(context.Background(), at("etc/new/deep/file")); err != nil {
				return err
			}
			if err := vfs.MkdirAll(f, at("etc/new/deep"), 0o755); err != nil {
				return err
			}
			return write1(f, at("etc/new/deep/file"), "new\n", 0o644)
		},
		func(l *Log) error { // mode alone, then content
			if err := l.BeforeAttributes(context.Background(), opened{f, at("etc/hosts")}); err != nil {
				return err
			}
			return f.Chmod(at("etc/hosts"), 0o600)
		},
		func(l *Log) error {
			if err := l.Before(context.Background(), at("etc/hosts")); err != nil {
				return err
			}
			return write1(f, at("etc/hosts"), "127.0.0.1 app\n", 0o600)
		},
		func(l *Log) error { // file.absent of a folder
			if err := l.BeforeTree(context.Background(), at("etc/nginx")); err != nil {
				return err
			}
			return vfs.RemoveAll(f, at("etc/nginx"))
		},
		func(l *Log) error { // file.symlink in its place
			if err := l.Before(context.Background(), at("etc/nginx")); err != nil {
				return err
			}
			return f.Symlink("new", at("etc/nginx"))
		},
		func(l *Log) error { // a link's target
			if err := l.Before(context.Background(), at("etc/enabled")); err != nil {
				return err
			}
			if err := f.Remove(at("etc/enabled")); err != nil {
				return err
			}
			return f.Symlink("elsewhere", at("etc/enabled"))
		},
		func(l *Log) error { // a clone
			if _, err := l.BeforeWhole(context.Background(), at("opt/clone")); err != nil {
				return err
			}
			if err := vfs.MkdirAll(f, at("opt/clone/.git"), 0o755); err != nil {
				return err
			}
			return write1(f, at("opt/clone/.git/HEAD"), "ref", 0o644)
		},
		func(l *Log) error { // below the archived tree: not recorded
			if err := l.Before(context.Background(), at("srv/app/page")); err != nil {
				return err
			}
			return nil
		},
		func(l *Log) error { // created and removed in one deployment
			if err := l.Before(context.Background(), at("log/x")); err != nil {
				return err
			}
			if err := write1(f, at("log/x"), "x", 0o644); err != nil {
				return err
			}
			return f.Remove(at("log/x"))
		},
	}
}

func run(f vfs.FS, m Machine, root string) error {
	l, err := New(m, root+"/state/undo", root+"/srv/app")
	if err != nil {
		return err
	}
	for i, c := range changes(f, root) {
		l.Enter(State{Step: "010_web", ID: fmt.Sprint(i)})
		if err := c(l); err != nil {
			return err
		}
		if err := l.After(context.Background()); err != nil {
			return err
		}
	}
	return l.Close()
}

func TestUndo(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	f := vfs.OS{}
	etc(t, f, root)
	before := tree(t, f, root)
	m := Machine{FS: f, Boot: "1"}
	require.NoError(t, run(f, m, root))
	require.NotEqual(t, before, tree(t, f, root))
	rep, err := Undo(t.Context(), m, root+"/state/undo")
	require.NoError(t, err)
	require.True(t, rep.Whole(), "%+v", rep)
	var names []string
	for _, i := range rep.Undone {
		names = append(names, i.Noun+" "+strings.TrimPrefix(i.Name, root))
	}
	assert.Equal(t, []string{"folder /opt/clone", "folder /opt", "link /etc/enabled", "folder /etc/nginx", "file /etc/nginx/gone", "file /etc/hosts", "file /etc/new/deep/file", "folder /etc/new/deep",
		"folder /etc/new", "file /etc/nginx/site"}, names)
	again, err := Undo(t.Context(), m, root+"/state/undo")
	require.NoError(t, err)
	assert.Empty(t, again.Undone, "undoing twice is undoing once")
	assert.True(t, again.Whole())
	require.NoError(t, Drop(f, root+"/state/undo"))
	assert.Equal(t, before, tree(t, f, root))
}

func TestSomebodyElsesChangeStays(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	f := vfs.OS{}
	etc(t, f, root)
	m := Machine{FS: f, Boot: "1"}
	require.NoError(t, run(f, m, root))
	put1(t, f, root+"/etc/hosts", "somebody's\n", 0o600)
	put1(t, f, root+"/etc/new/deep/other", "somebody's\n", 0o600)
	rep, err := Undo(t.Context(), m, root+"/state/undo")
	require.NoError(t, err)
	var left []string
	for _, i := range rep.Left {
		left = append(left, strings.TrimPrefix(i.Name, root)+": "+i.Why)
	}
	assert.Equal(t, []string{"/etc/hosts: it has been changed since by somebody else", "/etc/new/deep: it holds what no state made", "/etc/new: it holds what no state made"}, left)
	assert.False(t, rep.Whole())
	data, err := os.ReadFile(root + "/etc/hosts")
	require.NoError(t, err)
	assert.Equal(t, "somebody's\n", string(data))
	data, err = os.ReadFile(root + "/etc/nginx/site")
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(data), "old site\n"))
	// For people: the content of what stays is a file of the log, even if it was kept in the journal.
	copies, err := filepath.Glob(root + "/state/undo/" + filesDir + "/*")
	require.NoError(t, err)
	var kept []string
	for _, c := range copies {
		data, err := os.ReadFile(c)
		require.NoError(t, err)
		kept = append(kept, string(data))
	}
	assert.Contains(t, kept, "127.0.0.1 localhost\n")
}

// TestLinksOnTheWay checks that nothing is written through a link that replaced a folder since it was recorded.
func TestLinksOnTheWay(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	f := vfs.OS{}
	etc(t, f, root)
	m := Machine{FS: f, Boot: "1"}
	l, err := New(m, root+"/state/undo")
	require.NoError(t, err)
	require.NoError(t, l.Before(context.Background(), root+"/etc/nginx/site"))
	put1(t, f, root+"/etc/nginx/site", "new\n", 0o644)
	require.NoError(t, l.After(t.Context()))
	require.NoError(t, l.Close())
	require.NoError(t, os.Rename(root+"/etc/nginx", root+"/etc/nginx.old"))
	require.NoError(t, os.Mkdir(root+"/victim", 0o755))
	require.NoError(t, os.Symlink(root+"/victim", root+"/etc/nginx"))
	rep, err := Undo(t.Context(), m, root+"/state/undo")
	require.NoError(t, err)
	assert.Len(t, append(rep.Failed, rep.Left...), 1, "%+v", rep)
	names, err := f.ReadDir(root + "/victim")
	require.NoError(t, err)
	assert.Empty(t, names)
}

// TestNothingNoted checks that a deployment that changes nothing outside leaves no trace.
func TestNothingNoted(t *testing.T) {
	root := t.TempDir()
	l, err := New(Machine{FS: vfs.OS{}}, root+"/undo", root+"/srv")
	require.NoError(t, err)
	require.NoError(t, l.Before(context.Background(), root+"/srv/app/file"))
	require.NoError(t, l.After(t.Context()))
	assert.True(t, l.Empty())
	require.NoError(t, l.Close())
	assert.NoDirExists(t, root+"/undo")
	rep, err := Undo(t.Context(), Machine{FS: vfs.OS{}}, root+"/undo")
	require.NoError(t, err)
	assert.Equal(t, Report{}, rep)
	require.NoError(t, Drop(vfs.OS{}, root+"/undo"))
	var none *Log
	require.NoError(t, none.Before(context.Background(), "/etc/hosts"))
	require.NoError(t, none.After(t.Context()))
}

// TestLastActions checks that each last action runs once, after the files that it concerns are restored.
func TestLastActions(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	f := vfs.OS{}
	etc(t, f, root)
	var seen []string
	m := Machine{FS: f, Run: func(_ context.Context, argv []string, _ string) (int, string, error) {
		data, err := os.ReadFile(root + "/etc/hosts")
		seen = append(seen, strings.Join(argv, " ")+": "+string(data))
		return 0, "", err
	}}
	l, err := New(m, root+"/state/undo")
	require.NoError(t, err)
	restart := func(name string) Action {
		return Action{Noun: "service", Name: name, Undo: []string{"restart", name}, Last: true}
	}
	require.NoError(t, l.BeforeAction(t.Context(), restart("a")))
	require.NoError(t, l.Before(context.Background(), root+"/etc/hosts"))
	put1(t, f, root+"/etc/hosts", "new\n", 0o644)
	require.NoError(t, l.BeforeAction(t.Context(), restart("b")))
	require.NoError(t, l.BeforeAction(t.Context(), restart("a")))
	require.NoError(t, l.After(t.Context()))
	require.NoError(t, l.Close())
	_, err = Undo(t.Context(), m, root+"/state/undo")
	require.NoError(t, err)
	assert.Empty(t, seen)
	_, err = Last(t.Context(), m, root+"/state/undo")
	require.NoError(t, err)
	assert.Equal(t, []string{"restart a: 127.0.0.1 localhost\n", "restart b: 127.0.0.1 localhost\n"}, seen)
}

func TestActions(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	f := vfs.OS{}
	etc(t, f, root)
	table := "old\n"
	m := Machine{FS: f, Run: func(_ context.Context, argv []string, stdin string) (int, string, error) {
		switch strings.Join(argv, " ") {
		case "crontab -l":
			return 0, table, nil
		case "crontab -":
			table = stdin
			return 0, "", nil
		case "false":
			return 1, "it would not\nmore", nil
		}
		return 0, "", errors.New("not found")
	}}
	cron := Action{Noun: "crontab", Name: "app", Probe: []string{"crontab", "-l"}, Undo: []string{"crontab", "-"}, Stdin: table}
	l, err := New(m, root+"/state/undo")
	require.NoError(t, err)
	l.Enter(State{"010_cron", "job"})
	require.NoError(t, l.BeforeAction(t.Context(), cron))
	table = "new\n"
	require.NoError(t, l.After(t.Context()))
	require.NoError(t, l.BeforeAction(t.Context(), Action{Noun: "service", Name: "web", Undo: []string{"false"}}))
	require.NoError(t, l.Manual("cmd.run: make migrate"))
	require.NoError(t, l.ManualStep("executable .salt/020_x"))
	require.NoError(t, l.Close())
	rep, err := Undo(t.Context(), m, root+"/state/undo")
	require.NoError(t, err)
	job := State{"010_cron", "job"}
	assert.Equal(t, Report{
		Undone: []Item{{Noun: "crontab", Name: "app", State: job}},
		Failed: []Item{{Noun: "service", Name: "web", State: job, Why: "false: exit status 1: it would not"}},
		Manual: []Item{{Name: "executable .salt/020_x"}, {Name: "cmd.run: make migrate", State: job}},
	}, rep)
	assert.Equal(t, "old\n", table)

	// The steps of the release that is live again may have changed it since: the change is not another program's, and stays.
	table = "newest\n"
	rep, err = Undo(t.Context(), m, root+"/state/undo")
	require.NoError(t, err)
	assert.Empty(t, rep.Left)
	assert.Len(t, rep.Failed, 1, "what could not be taken back is still told")
	assert.Equal(t, "newest\n", table)
}

func TestSomebodyElsesActionStays(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	f := vfs.OS{}
	etc(t, f, root)
	table := "old\n"
	m := Machine{FS: f, Run: func(_ context.Context, argv []string, stdin string) (int, string, error) {
		if len(argv) == 2 && argv[1] == "-" {
			table = stdin
		}
		return 0, table, nil
	}}
	l, err := New(m, root+"/state/undo")
	require.NoError(t, err)
	require.NoError(t, l.BeforeAction(t.Context(), Action{Noun: "crontab", Name: "app", Probe: []string{"crontab", "-l"}, Undo: []string{"crontab", "-"}, Stdin: table}))
	table = "new\n"
	require.NoError(t, l.After(t.Context()))
	require.NoError(t, l.Close())
	table = "somebody's\n"
	rep, err := Undo(t.Context(), m, root+"/state/undo")
	require.NoError(t, err)
	assert.Equal(t, "it has been changed since by somebody else", rep.Left[0].Why)
	assert.Equal(t, "somebody's\n", table)
}

// TestAnyCrash kills the deployment at every call, cuts the power, and also kills Undo at a call. After that a run
// without interruption leaves everything as it was.
func TestAnyCrash(t *testing.T) {
	root := "/m"
	fresh := func() *vfstest.Mem {
		mem := vfstest.NewMem(time.Unix(1e9, 0))
		require.NoError(t, mem.FS().Mkdir(root, 0o755))
		etc(t, mem.FS(), root)
		return mem
	}
	mem := fresh()
	before := tree(t, mem.FS(), root)
	count := vfstest.New(mem.FS(), nil)
	require.NoError(t, run(count, Machine{FS: count, Boot: "1"}, root))
	total := count.Count()
	require.Greater(t, total, 100)
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range total + 1 {
		for _, cut := range []bool{false, true} {
			mem := fresh()
			boot := "1"
			crashing := vfstest.New(mem.FS(), vfstest.CrashAt(n))
			err := run(crashing, Machine{FS: crashing, Boot: boot}, root)
			require.True(t, err == nil || errors.Is(err, vfstest.ErrCrash), "%v", err)
			if cut {
				mem, boot = mem.Crash(rng), "2"
			}
			half := vfstest.New(mem.FS(), vfstest.CrashAt(rng.IntN(400)))
			_, _ = Undo(t.Context(), Machine{FS: half, Boot: boot}, root+"/state/undo")
			if cut && rng.IntN(2) == 0 {
				mem, boot = mem.Crash(rng), "3"
			}
			rep, err := Undo(t.Context(), Machine{FS: mem.FS(), Boot: boot}, root+"/state/undo")
			require.NoError(t, err, "call %d", n)
			require.True(t, rep.Whole(), "call %d, power cut %t: %+v", n, cut, rep)
			require.NoError(t, Drop(mem.FS(), root+"/state/undo"))
			require.Equal(t, before, withoutTemps(tree(t, mem.FS(), root)), "call %d, power cut %t", n, cut)
		}
	}
}

// withoutTemps removes what a crash may leave: temporary files of killed processes.
func withoutTemps(s string) string {
	var out strings.Builder
	for line := range strings.Lines(s) {
		if !strings.Contains(line, "/.tmp-") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// TestEveryCallFails checks that, whichever call of a deployment fails, the state gets the error, and what it did not change is undone.
func TestEveryCallFails(t *testing.T) {
	root := "/m"
	for n := 1; ; n++ {
		mem := vfstest.NewMem(time.Unix(1e9, 0))
		require.NoError(t, mem.FS().Mkdir(root, 0o755))
		etc(t, mem.FS(), root)
		before := tree(t, mem.FS(), root)
		failing := vfstest.New(mem.FS(), vfstest.FailNth("", n, 28))
		err := run(failing, Machine{FS: failing, Boot: "1"}, root)
		if err == nil && failing.Count() < n {
			return
		}
		rep, err := Undo(t.Context(), Machine{FS: mem.FS(), Boot: "1"}, root+"/state/undo")
		require.NoError(t, err)
		require.True(t, rep.Whole(), "call %d: %+v", n, rep)
		require.NoError(t, Drop(mem.FS(), root+"/state/undo"))
		require.Equal(t, before, withoutTemps(tree(t, mem.FS(), root)), "call %d", n)
	}
}

// A state whose change could not be recorded fails, and those that do not depend on it still run: After, which was called then, ended the server.
func TestOtherStatesGoOnAfterAnyFailure(t *testing.T) {
	root := "/m"
	for n := 1; ; n++ {
		mem := vfstest.NewMem(time.Unix(1e9, 0))
		require.NoError(t, mem.FS().Mkdir(root, 0o755))
		etc(t, mem.FS(), root)
		before := tree(t, mem.FS(), root)
		failing := vfstest.New(mem.FS(), vfstest.FailNth("", n, 28))
		failed := false
		l, err := New(Machine{FS: failing, Boot: "1"}, root+"/state/undo", root+"/srv/app")
		if err != nil {
			continue
		}
		for i, c := range changes(failing, root) {
			l.Enter(State{Step: "010_web", ID: fmt.Sprint(i)})
			failed = c(l) != nil || failed
			failed = l.After(t.Context()) != nil || failed
		}
		failed = l.Close() != nil || failed
		if !failed && failing.Count() < n {
			return
		}
		rep, err := Undo(t.Context(), Machine{FS: mem.FS(), Boot: "1"}, root+"/state/undo")
		require.NoError(t, err, "call %d", n)
		require.Empty(t, rep.Failed, "call %d", n)
		require.NoError(t, Drop(mem.FS(), root+"/state/undo"))
		require.Equal(t, before, withoutTemps(tree(t, mem.FS(), root)), "call %d: %+v", n, rep)
	}
}

// The attack: the project's user makes a file that a state removes three terabytes long without a byte in it. The undo log read it for an hour, with the
// server's permissions, and neither cancel nor a stop ended that.
func TestAFileOfHolesIsNotKept(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(p, nil, 0o600))
	require.NoError(t, os.Truncate(p, 3<<40))
	l, err := New(Machine{FS: vfs.OS{}}, filepath.Join(dir, "state", "undo"))
	require.NoError(t, err)
	require.ErrorContains(t, l.Before(context.Background(), p), "bytes of it are holes")
	require.NoError(t, l.After(t.Context()))
	require.NoError(t, l.Close())
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"seq":1,"kind":"before","path":"/a","node":{"type":"file","saved":"1"}}` + "\n"))
	f.Add([]byte(`{"seq":1,"kind":"before","path":{"bytes":"L2H/"},"node":{"type":"absent"}}` + "\n" + `{"se`))
	f.Fuzz(func(t *testing.T, data []byte) {
		recs, err := parse(data)
		if err != nil {
			return
		}
		for _, r := range recs {
			if r.Node != nil && (strings.ContainsRune(r.Node.Saved, '/') || r.Path != "" && !filepath.IsAbs(string(r.Path))) {
				t.Fatalf("%+v", r)
			}
		}
		_ = changesOf(recs)
	})
}

func TestDamagedJournal(t *testing.T) {
	for text, says := range map[string]string{
		"x\n{}\n": "line 1",
		`{"seq":1,"kind":"before","path":"a","node":{"type":"file"}}` + "\n":                 "line 1: a path or what stood there is missing",
		`{"seq":1,"kind":"before","path":"/a","node":{"type":"file","saved":"../x"}}` + "\n": "line 1: the name of a copy leads elsewhere",
		`{"seq":1,"kind":"before","path":"/a","node":{"type":"file","saved":"/"}}` + "\n":    "line 1: the name of a copy leads elsewhere",
		`{"seq":1,"kind":"odd"}` + "\n":                                                      `line 1: kind "odd" is not known`,
		`{"seq":1,"kind":"action","action":{"noun":"a","name":"b","undo":[]}}` + "\n":        "line 1: an action without a command",
	} {
		_, err := parse([]byte(text))
		require.ErrorContains(t, err, says)
	}
	recs, err := parse([]byte(`{"seq":1,"kind":"manual","what":"x"}` + "\n" + `{"seq":2,"ki`))
	require.NoError(t, err)
	require.Len(t, recs, 1)
	var text text
	require.NoError(t, text.UnmarshalJSON([]byte(`{"bytes":"L2H/"}`)))
	b, err := text.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"bytes":"L2H/"}`, string(b))
}

// The content of small files is kept in the journal, as long as the journal is small, that of others as copies; both are restored.
func TestSmallFilesAreKeptInTheJournal(t *testing.T) {
	dir := t.TempDir()
	m := Machine{FS: vfs.OS{}}
	l, err := New(m, filepath.Join(dir, "state", "undo"))
	require.NoError(t, err)
	for size, copies := range map[int]bool{0: false, 1: false, maxInJournal: false, maxInJournal + 1: true} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(size)), bytes.Repeat([]byte{0xff}, size), 0o600))
		before, _ := os.ReadDir(filepath.Join(dir, "state", "undo", filesDir))
		require.NoError(t, l.Before(context.Background(), filepath.Join(dir, fmt.Sprint(size))))
		after, _ := os.ReadDir(filepath.Join(dir, "state", "undo", filesDir))
		require.Equal(t, copies, len(after) > len(before), size)
	}
	l.size = maxSmall + 1
	require.NoError(t, os.WriteFile(filepath.Join(dir, "late"), []byte("x"), 0o600))
	require.NoError(t, l.Before(context.Background(), filepath.Join(dir, "late")))
	copies, err := os.ReadDir(filepath.Join(dir, "state", "undo", filesDir))
	require.NoError(t, err)
	require.Len(t, copies, 2)
	want := tree(t, vfs.OS{}, dir)
	for _, name := range []string{"0", "1", fmt.Sprint(maxInJournal), fmt.Sprint(maxInJournal + 1), "late"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("another"), 0o600))
	}
	require.NoError(t, l.After(t.Context()))
	require.NoError(t, l.Close())
	rep, err := Undo(t.Context(), m, filepath.Join(dir, "state", "undo"))
	require.NoError(t, err)
	require.True(t, rep.Whole(), "%+v", rep)
	require.Equal(t, withoutState(want), withoutState(tree(t, vfs.OS{}, dir)))
}

// withoutState removes the log itself.
func withoutState(s string) string {
	var out strings.Builder
	for line := range strings.Lines(s) {
		if !strings.Contains(line, "state") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// Content in the journal that differs from what was recorded is not restored.
func TestDamagedContentInTheJournal(t *testing.T) {
	dir := t.TempDir()
	m := Machine{FS: vfs.OS{}}
	p, log := filepath.Join(dir, "file"), filepath.Join(dir, "state", "undo")
	require.NoError(t, os.WriteFile(p, []byte("old"), 0o600))
	l, err := New(m, log)
	require.NoError(t, err)
	require.NoError(t, l.Before(context.Background(), p))
	require.NoError(t, os.WriteFile(p, []byte("new"), 0o600))
	require.NoError(t, l.After(t.Context()))
	require.NoError(t, l.Close())
	b, err := os.ReadFile(filepath.Join(log, journalFile))
	require.NoError(t, err)
	at := bytes.Index(b, []byte(`"content":"`))
	require.Positive(t, at)
	b[at+len(`"content":"`)] ^= 1
	require.NoError(t, os.WriteFile(filepath.Join(log, journalFile), b, 0o600))
	rep, err := Undo(t.Context(), m, log)
	require.NoError(t, err)
	require.Len(t, rep.Failed, 1)
	require.Contains(t, fmt.Sprint(rep.Failed), "the copy in the undo log is damaged")
	got, err := os.ReadFile(p)
	require.NoError(t, err)
	require.Equal(t, "new", string(got))
}

// A file of gigabytes is copied until the deployment is cancelled, and no longer; the state fails, nothing of it is recorded, and the log can continue.
func TestASaveEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(p, bytes.Repeat([]byte("x"), 2*maxInJournal), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	f := vfstest.New(vfs.OS{}, func(_ int, o vfstest.Op) error {
		if o.Name == "copy" {
			cancel()
		}
		return nil
	})
	l, err := New(Machine{FS: f}, filepath.Join(dir, "state", "undo"))
	require.NoError(t, err)
	require.ErrorIs(t, l.Before(ctx, p), context.Canceled)
	require.Empty(t, l.noted)
	require.NoError(t, l.Before(t.Context(), p))
	require.NoError(t, os.WriteFile(p, []byte("another"), 0o600))
	require.NoError(t, l.After(t.Context()))
	require.NoError(t, l.Close())
	rep, err := Undo(t.Context(), Machine{FS: vfs.OS{}}, filepath.Join(dir, "state", "undo"))
	require.NoError(t, err)
	require.True(t, rep.Whole(), "%+v", rep)
	st, err := os.Stat(p)
	require.NoError(t, err)
	require.EqualValues(t, 2*maxInJournal, st.Size())
}

// TestReverseKilledAnywhere checks that Reverse of a release's changes records them in its own log. Wherever it is killed, or fails, or the
// power is cut, undoing its own log restores everything that the release had left; without interruption, the result is the state before the release.
func TestReverseKilledAnywhere(t *testing.T) {
	root, older, newer := "/m", "/m/state/undo", "/m/state/newer"
	fresh := func() *vfstest.Mem {
		mem := vfstest.NewMem(time.Unix(1e9, 0))
		require.NoError(t, mem.FS().Mkdir(root, 0o755))
		etc(t, mem.FS(), root)
		return mem
	}
	released := func() *vfstest.Mem {
		mem := fresh()
		require.NoError(t, run(mem.FS(), Machine{FS: mem.FS(), Boot: "1"}, root))
		require.NoError(t, mem.FS().SyncFS(root))
		return mem
	}
	reverse := func(f vfs.FS, boot string) error {
		m := Machine{FS: f, Boot: boot}
		into, err := New(m, newer, root+"/srv/app")
		if err != nil {
			return err
		}
		rep, err := Reverse(t.Context(), m, older, into)
		if err == nil && len(rep.Failed) > 0 {
			err = errors.New(rep.Failed[0].Why)
		}
		if cerr := into.Close(); err == nil {
			err = cerr
		}
		return err
	}
	outside := func(f vfs.FS) string {
		var out strings.Builder
		for line := range strings.Lines(tree(t, f, root)) {
			if !strings.HasPrefix(line, "/state") {
				out.WriteString(line)
			}
		}
		return out.String()
	}
	before, after := outside(fresh().FS()), outside(released().FS())
	require.NotEqual(t, before, after)
	mem := released()
	count := vfstest.New(mem.FS(), nil)
	require.NoError(t, reverse(count, "1"))
	require.Equal(t, before, outside(mem.FS()))
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range count.Count() {
		for _, how := range []string{"killed", "power cut", "fails"} {
			mem, boot := released(), "1"
			decide := vfstest.CrashAt(n)
			if how == "fails" {
				decide = vfstest.FailNth("", n+1, 28)
			}
			if err := reverse(vfstest.New(mem.FS(), decide), boot); err == nil {
				require.Equal(t, before, outside(mem.FS()), "call %d, %s", n, how)
				continue
			}
			if how == "power cut" {
				mem, boot = mem.Crash(rng), "2"
			}
			rep, err := Undo(t.Context(), Machine{FS: mem.FS(), Boot: boot}, newer)
			require.NoError(t, err, "call %d, %s", n, how)
			require.True(t, rep.Whole(), "call %d, %s: %+v", n, how, rep)
			require.Equal(t, after, outside(mem.FS()), "call %d, %s", n, how)
		}
	}
}
