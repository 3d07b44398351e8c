package units

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// answers is a machine: what each command prints, by the start of its words. "!" before it is exit status 1, on standard error.
type answers struct {
	t   *testing.T
	of  map[string]string
	ran []string
}

func (a *answers) Run(_ context.Context, c execx.Cmd) (execx.Status, error) {
	line := strings.Join(c.Argv, " ")
	a.ran = append(a.ran, line)
	best := ""
	for k := range a.of {
		if strings.HasPrefix(line, k) && len(k) > len(best) {
			best = k
		}
	}
	require.NotEmpty(a.t, best, line)
	if text, bad := strings.CutPrefix(a.of[best], "!"); bad {
		_, err := io.WriteString(c.Stderr, text)
		return execx.Status{Exit: 1}, err
	}
	_, err := io.WriteString(c.Stdout, a.of[best])
	return execx.Status{}, err
}

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func runner(t *testing.T, units []project.Unit, of map[string]string) (*Runner, *answers) {
	a := &answers{t: t, of: of}
	return &Runner{Exec: a, Units: units, Now: func() time.Time { return now }, Uptime: func() time.Duration { return time.Hour },
		Command: func(user, line string, argv []string) (execx.Cmd, error) {
			if line != "" {
				argv = []string{"sh", user, line}
			}
			return execx.Cmd{Argv: argv}, nil
		}}, a
}

func show(load, active, sub, result string, pid, restarts, since int) string {
	return fmt.Sprintf("LoadState=%s\nActiveState=%s\nSubState=%s\nResult=%s\nMainPID=%d\nNRestarts=%d\nStateChangeTimestampMonotonic=%d\n", load, active, sub, result, pid, restarts, since)
}

func all() []project.Unit {
	return []project.Unit{
		{Name: "web", Kind: project.UnitSystemd, Pattern: "app-*.service"}, {Name: "gone", Kind: project.UnitSystemd, Pattern: "gone.service"},
		{Name: "queue", Kind: project.UnitSupervisor, Pattern: "app:*"}, {Name: "own", Kind: project.UnitCommand, Status: "./status", Start: "./start", Stop: "./stop"},
	}
}

func machine() map[string]string {
	return map[string]string{
		"systemctl list-units --all":  "app-web.service loaded active running Web\napp-old.service not-found inactive dead -\n",
		"systemctl list-unit-files":   "app-web.service enabled enabled\napp-idle.service disabled enabled\napp-mail@.service static -\napp-no.service masked enabled\n",
		"systemctl show":              show("loaded", "inactive", "dead", "success", 0, 0, 0) + "\n" + show("loaded", "active", "running", "success", 12, 2, 1_800_000_000) + "\n" + show("not-found", "inactive", "dead", "success", 0, 0, 0),
		"supervisorctl status":        "app:a RUNNING pid 4711, uptime 2 days, 1:00:02\napp:b FATAL Exited too quickly (process log may have details)\nother STOPPED Nov 23\n",
		"sh  ./status":                "first\nrunning fine\n",
		"systemctl restart":           "",
		"systemctl start":             "!Job for app-web.service failed because the control process exited with error code.\n",
		"supervisorctl restart app:a": "app:a: started\n",
		"journalctl":                  "said one\nsaid two\n",
		"supervisorctl tail":          "1\n2\n3\n",
		"sh  ./start":                 "", "sh  ./stop": "",
	}
}

func TestList(t *testing.T) {
	r, _ := runner(t, all(), machine())
	got, err := r.List(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []project.UnitState{
		{Unit: "app-idle.service", Entry: "web", Kind: project.UnitSystemd, State: "inactive"},
		{Unit: "app-web.service", Entry: "web", Kind: project.UnitSystemd, State: "active", Detail: "running", PID: 12, Restarts: 2, Since: now.Add(-30 * time.Minute)},
		{Unit: "gone.service", Entry: "gone", Kind: project.UnitSystemd, State: "unknown", Detail: "there is none"},
		{Unit: "app:a", Entry: "queue", Kind: project.UnitSupervisor, State: "active", Detail: "running", PID: 4711, Since: now.Add(-49*time.Hour - 2*time.Second)},
		{Unit: "app:b", Entry: "queue", Kind: project.UnitSupervisor, State: "failed", Detail: "Exited too quickly (process log may have details)"},
		{Unit: "own", Entry: "own", Kind: project.UnitCommand, State: "active", Detail: "running fine"},
	}, got)
}

// What is typed selects, and never becomes part of a command line.
func TestSelection(t *testing.T) {
	for want, names := range map[string]string{"web": "app-idle.service app-web.service", "app-web": "app-web.service", "app-web.service": "app-web.service", "app": "app:a app:b", "app:b": "app:b", "own": "own"} {
		r, _ := runner(t, all(), machine())
		found, err := r.find(t.Context(), []string{want, want})
		require.NoError(t, err, want)
		var got []string
		for _, f := range found {
			got = append(got, f.name)
		}
		require.Equal(t, names, strings.Join(got, " "), want)
	}
	for _, want := range []string{"sshd.service", "--all", "app-*", "other", "", "web;id"} {
		r, a := runner(t, all(), machine())
		_, err := r.Act(t.Context(), project.StopUnit, []string{want})
		require.Equal(t, fault.Usage, fault.KindOf(err), want)
		for _, line := range a.ran {
			require.NotContains(t, line, "stop", want)
		}
	}
}

func TestActSaysWhatFailed(t *testing.T) {
	of := machine()
	of["systemctl show"] = show("loaded", "failed", "failed", "exit-code", 0, 5, 0)
	r, _ := runner(t, all(), of)
	states, err := r.Act(t.Context(), project.StartUnit, []string{"app-web"})
	var f *Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.Failed, fault.KindOf(err))
	require.EqualError(t, f, "start failed: app-web.service is failed")
	require.Equal(t, []string{"said one", "said two"}, f.Units[0].Log)
	require.Contains(t, f.Messages[0], "Job for app-web.service failed")
	require.Equal(t, "exit-code", states[0].Detail)

	r, a := runner(t, all(), machine())
	_, err = r.Act(t.Context(), project.RestartUnit, []string{"own", "app:a"})
	require.NoError(t, err)
	require.Subset(t, a.ran, []string{"supervisorctl restart app:a", "sh  ./stop", "sh  ./start"}, "without a command to restart it, it is stopped and started")
}

func TestLogsOfFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		p := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(p, []byte(text), 0o644))
		return p
	}
	put("a.log", "1\n2\n3")
	put("b.log", "")
	put("long.log", strings.Repeat("x", 200_000)+"\nend\n")
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link.log")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo.log"), 0o600))
	r, _ := runner(t, nil, nil)
	read := func(o Opener, n int) (out []string) {
		err := r.Logs(t.Context(), o, []project.LogFiles{{Globs: []string{dir + "/*.log"}}}, LogRequest{Lines: n}, func(source, line string) error {
			if line = strings.ReplaceAll(line, dir, ""); source != "" {
				line = filepath.Base(source) + ": " + line
			}
			out = append(out, line)
			return nil
		})
		require.NoError(t, err)
		return out
	}
	require.Equal(t, []string{"a.log: 2", "a.log: 3", "not shown: /fifo.log: not a regular file", "not shown: /link.log: it is, or is behind, a symbolic link; the key  logs  names files themselves",
		"long.log: end"}, append(read(Opener{Within: dir}, 2)[:4], "long.log: end"))

	// Another user reads what that user may read, and this process continues as its own user.
	if os.Geteuid() != 0 {
		return
	}
	for p := dir; p != "/" && p != os.TempDir(); p = filepath.Dir(p) {
		require.NoError(t, os.Chmod(p, 0o755))
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "a.log"), 0o600))
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	require.Contains(t, read(Opener{User: nobody, Within: dir}, 1), "not shown: /a.log: permission denied")
	require.Contains(t, read(Opener{User: nobody, Within: dir}, 1), "long.log: end")
	require.Contains(t, read(Opener{Within: dir}, 1), "a.log: 3")
	require.NotContains(t, strings.Join(read(Opener{Within: "/elsewhere"}, 1), "\n"), "a.log: 3", "this process reads no closed file outside of the project's folder")
}

// Following continues in the file that took the log's name, and loses no line of the old one.
func TestRotation(t *testing.T) {
	p := filepath.Join(t.TempDir(), "a.log")
	require.NoError(t, os.WriteFile(p, []byte("1\n"), 0o644))
	o := Opener{Within: filepath.Dir(p)}
	f, err := o.openTail(p, 10)
	require.NoError(t, err)
	defer func() { _ = f.f.Close() }()
	var got []string
	emit := func(_, line string) error { got = append(got, line); return nil }
	add := func(name, text string) {
		w, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		require.NoError(t, err)
		_, err = w.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	require.NoError(t, f.follow(t.Context(), o, emit))
	require.NoError(t, os.Rename(p, p+".1"))
	add(p+".1", "2\n")
	require.NoError(t, f.follow(t.Context(), o, emit), "the name is gone for a moment")
	add(p+".1", "3\nhalf")
	add(p, "4\n")
	require.NoError(t, f.follow(t.Context(), o, emit))
	require.NoError(t, os.Truncate(p, 0))
	add(p, "5")
	require.NoError(t, f.follow(t.Context(), o, emit))
	add(p, "5\n")
	require.NoError(t, f.follow(t.Context(), o, emit))
	require.Equal(t, []string{"1", "2", "3", "half", "4", "55"}, got)
}

// The attack: whoever runs the project's programs makes a followed log three terabytes long with one call (ftruncate(2)): the server, which looked for
// the end of the line, used up the memory of the machine.
func TestALogGrowsByTerabytes(t *testing.T) {
	p := filepath.Join(t.TempDir(), "a.log")
	require.NoError(t, os.WriteFile(p, []byte("1\n"), 0o644))
	o := Opener{Within: filepath.Dir(p)}
	f, err := o.openTail(p, 10)
	require.NoError(t, err)
	defer func() { _ = f.f.Close() }()
	var got []string
	longest := 0
	emit := func(_, line string) error {
		longest = max(longest, len(line))
		if strings.Trim(line, "\x00") != "" {
			got = append(got, line)
		}
		return nil
	}
	require.NoError(t, f.follow(t.Context(), o, emit))
	require.NoError(t, os.Truncate(p, 3<<40))
	require.NoError(t, f.follow(t.Context(), o, emit))
	require.Equal(t, []string{"1", fmt.Sprintf("... %d bytes are not shown", 3<<40-2-lastBytes)}, got)
	require.LessOrEqual(t, longest, maxLine+4096)
	w, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer w.Close()
	_, err = w.WriteString("\n2\n")
	require.NoError(t, err)
	require.NoError(t, f.follow(t.Context(), o, emit))
	require.Equal(t, "2", got[len(got)-1])
}

// The attack: new names in the folder of logs at every check, until the server has no descriptor left.
func TestNamesThatComeAndGoCostNoDescriptors(t *testing.T) {
	dir := t.TempDir()
	r, _ := runner(t, nil, nil)
	seen, looks := 0, 0
	enough := errors.New("enough")
	fill := func() error {
		for i := range 150 {
			old, now := filepath.Join(dir, fmt.Sprintf("%d-%d.log", looks-1, i)), filepath.Join(dir, fmt.Sprintf("%d-%d.log", looks, i))
			_ = os.Remove(old)
			if err := os.WriteFile(now, []byte("x\n"), 0o644); err != nil {
				return err
			}
		}
		looks++
		return nil
	}
	descriptors := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(names)
	}
	require.NoError(t, fill())
	before, most := descriptors(), 0
	err := r.Logs(t.Context(), Opener{Within: dir}, []project.LogFiles{{Globs: []string{dir + "/*.log"}}}, LogRequest{Lines: 1, Follow: true, Idle: func() error {
		most = max(most, descriptors())
		if looks == 4 {
			return enough
		}
		return fill()
	}}, func(string, string) error { seen++; return nil })
	require.ErrorIs(t, err, enough)
	require.Equal(t, 600, seen)
	require.LessOrEqual(t, most-before, 2*maxFiles+20)
}

func TestGlobs(t *testing.T) {
	dir := t.TempDir()
	for _, p := range []string{"a/x.log", "a/y.log", "b/x.log", "b/[z].log", "c.log"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, p)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, p), nil, 0o644))
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	for _, g := range []string{"*/*.log", "a/*", "a/x.log", "none/*.log", "*/[xy].log", `b/\[z\].log`, "c.log", "d.log", "*", "?/x.log", "../*/a/x.log"} {
		want, err := filepath.Glob(filepath.Join(dir, g))
		require.NoError(t, err)
		got, err := matchingFiles(t.Context(), filepath.Join(dir, g))
		require.NoError(t, err)
		require.ElementsMatch(t, want, got, g)
	}
	_, err := matchingFiles(t.Context(), dir+"/[")
	require.ErrorIs(t, err, filepath.ErrBadPattern)
}
