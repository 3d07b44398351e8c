package statetest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/undo"
)

// Machine is a machine of which only what commands say and do is known.
type Machine struct {
	t      *testing.T
	table  *core.Table
	Users  map[string]host.User
	Groups map[string]host.Group
	// Answers are what commands print, by their beginning; those that begin with "!" fail.
	Answers map[string]string
	// On runs when a command does.
	On func(line string)
	// Ran are the commands that change something.
	Ran   []string
	Stdin []string
	Cache map[string]any
	Dir   string
	// Exit is the status of those that fail; 0 is 1.
	Exit   int
	Grains *py.Dict
	// Undo is the undo log of the calls; nil keeps none.
	Undo *undo.Log
}

// NewMachine makes a machine that has the named tools.
func NewMachine(t *testing.T, states func(*core.Table), tools ...string) *Machine {
	m := &Machine{t: t, table: core.NewTable(states), Users: map[string]host.User{}, Groups: map[string]host.Group{}, Answers: map[string]string{},
		Cache: map[string]any{}, Dir: t.TempDir()}
	for _, n := range tools {
		require.NoError(t, os.WriteFile(filepath.Join(m.Dir, n), nil, 0o755))
	}
	return m
}

// Run implements execx.Commander.
func (m *Machine) Run(_ context.Context, c execx.Cmd) (execx.Status, error) {
	line := strings.Join(c.Argv, " ")
	if c.Stdin != nil {
		b, err := io.ReadAll(c.Stdin)
		if err != nil {
			return execx.Status{}, err
		}
		if len(b) > 0 {
			m.Stdin = append(m.Stdin, string(b))
		}
	}
	best := ""
	for k := range m.Answers {
		if strings.HasPrefix(line, k) && len(k) >= len(best) {
			best = k
		}
	}
	text, known := m.Answers[best]
	if !known || best == "" {
		m.Ran = append(m.Ran, line)
	}
	if m.On != nil {
		m.On(line)
	}
	if msg, failed := strings.CutPrefix(text, "!"); failed {
		_, _ = io.WriteString(c.Stderr, msg)
		return execx.Status{Exit: max(m.Exit, 1)}, nil
	}
	_, err := io.WriteString(c.Stdout, text)
	return execx.Status{}, err
}

// User implements host.Users.
func (m *Machine) User(n string) (host.User, error) {
	for _, u := range m.Users {
		if u.Name == n || strconv.Itoa(u.UID) == n {
			return u, nil
		}
	}
	return host.User{}, fmt.Errorf("user %s: %w", n, host.ErrNoAccount)
}

// Group implements host.Users.
func (m *Machine) Group(n string) (host.Group, error) {
	for _, g := range m.Groups {
		if g.Name == n || strconv.Itoa(g.GID) == n {
			return g, nil
		}
	}
	return host.Group{}, fmt.Errorf("group %s: %w", n, host.ErrNoAccount)
}

// UserByID implements host.Users.
func (m *Machine) UserByID(uid int) (host.User, error) { return m.User(strconv.Itoa(uid)) }

// GroupByID implements host.Users.
func (m *Machine) GroupByID(gid int) (host.Group, error) { return m.Group(strconv.Itoa(gid)) }

// GroupsOf implements host.Users.
func (m *Machine) GroupsOf(u host.User) ([]int, error) {
	out := []int{u.GID}
	for _, g := range m.Groups {
		for _, n := range g.Members {
			if n == u.Name && g.GID != u.GID {
				out = append(out, g.GID)
			}
		}
	}
	return out, nil
}

// Call calls a function on the machine, with arguments in pairs, and forgets what ran before.
func (m *Machine) Call(test bool, fun, name string, args ...any) core.Return {
	m.t.Helper()
	m.Ran, m.Stdin = nil, nil
	f, ok := m.table.Lookup(fun)
	require.True(m.t, ok, fun)
	h := host.New(m)
	h.Users, h.Environ, h.ToolDirs, h.EtcDir, h.AptDir = m, []string{"PATH=" + m.Dir, "HOME=/"}, nil, m.Dir, m.Dir
	c := &core.Call{Env: &core.Env{Host: h, Cache: m.Cache, Grains: m.Grains, Undo: m.Undo}, Ctx: context.Background(), Function: fun, Name: name, ID: name, Args: py.NewDict(args...),
		Test: test, Output: func(bool, string) {}}
	for _, k := range c.Args.Keys() {
		require.True(m.t, f.Accepts(k.(string)), "%s does not know %s", fun, k)
	}
	return f.Run(c)
}

// NoteUndo gives the machine an undo log in a folder that does not exist yet.
func (m *Machine) NoteUndo(dir string) {
	m.t.Helper()
	var err error
	m.Undo, err = undo.New(m.commands(), dir)
	require.NoError(m.t, err)
}

// Rollback undoes what was noted; Ran are the commands that it took.
func (m *Machine) Rollback(dir string) undo.Report {
	m.t.Helper()
	require.NoError(m.t, m.Undo.Close())
	listed := m.Undo.Listed()
	m.Undo, m.Ran, m.Stdin = nil, nil, nil
	rep, err := undo.Undo(context.Background(), m.commands(), dir)
	require.NoError(m.t, err)
	last, err := undo.Last(context.Background(), m.commands(), dir)
	require.NoError(m.t, err)
	rep.Undone, rep.Failed = append(rep.Undone, last.Undone...), append(rep.Failed, last.Failed...)
	rep.Manual = append(rep.Manual, listed...)
	return rep
}

func (m *Machine) commands() undo.Machine {
	return undo.Machine{FS: vfs.OS{}, Run: func(ctx context.Context, argv []string, stdin string) (int, string, error) {
		var out strings.Builder
		st, err := m.Run(ctx, execx.Cmd{Argv: argv, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &out})
		return st.Exit, out.String(), err
	}}
}

// Is compares a result with what it should be; changes are JSON.
func (m *Machine) Is(r core.Return, want core.Tri, comment, changes string, ran ...string) {
	m.t.Helper()
	require.Equal(m.t, want, r.Result, r.Comment)
	require.Equal(m.t, comment, r.Comment)
	got := ""
	if r.Changed() {
		var err error
		got, err = py.ToJSON(r.Changes, py.JSONOptions{})
		require.NoError(m.t, err)
	}
	require.Equal(m.t, changes, got)
	require.Equal(m.t, ran, m.Ran)
}
