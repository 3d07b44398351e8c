package procedures_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/hooks"
	"corpus-git/internal/draw"
	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/changed"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/project"
)

// onlySome is in the summary of a fixperms that looked only at what had changed.
const onlySome = "the rest as before the steps"

// watchedEnv is a deployment on the real file system that watches its trees, if this machine allows it: can reports that.
func watchedEnv(t *testing.T, n *changed.Notifier, rules *py.Dict) (env *procedures.Env, can bool) {
	t.Helper()
	env = permEnv(t, vfs.OS{}, layout.Root(t.TempDir()), rules, os.Geteuid() == 0)
	p := env.Paths
	for _, d := range []string{p.Live() + "/bin", p.Live() + "/var/up/deep", p.Live() + "/.git", p.Data() + "/pg/base", p.Data() + "/up", p.Pillar()} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	for _, f := range []string{p.Live() + "/page", p.Live() + "/bin/run", p.Live() + "/var/up/a", p.Live() + "/var/up/deep/b", p.Data() + "/pg/conf", p.Data() + "/pg/base/1", p.Data() + "/up/x", p.Pillar() + "/init.sls"} {
		require.NoError(t, os.WriteFile(f, []byte(f), 0o644))
	}
	if os.Geteuid() == 0 {
		require.NoError(t, os.Lchown(p.Data()+"/pg", 33, 33))
	}
	env.Tools.State, env.Unlinked = layout.State(t.TempDir()), true
	env.Deployment.ID, env.Deployment.At = project.NewID(), time.Now()
	env.Deployment.Code, env.Deployment.Pillar = "0123456789abcdef0123456789abcdef01234567", "0123456789abcdef0123456789abcdef01234567"
	store := archive.New(p, archive.Config{FS: vfs.OS{}, Reserve: archive.Reserve{Percent: -1}})
	t.Cleanup(func() { _ = store.Wait() })
	env.Tools.Archives = func(project.Name) *archive.Store { return store }
	env.Tools.Hooks = &hooks.Runner{Exec: execx.OS{}, State: env.Tools.State}
	env.Tools.Repository = func(_ project.Name, repo project.Repo) procedures.Repository {
		return writing{repo: repo, paths: []string{"bin/run", "new/file"}, write: func() {
			for _, f := range []string{"/bin/run", "/new/file", "/.git/index"} {
				require.NoError(t, os.MkdirAll(filepath.Dir(p.Live()+f), 0o755))
				require.NoError(t, vfs.WriteFileAtomic(vfs.OS{}, p.Live()+f, []byte("new"), 0o755))
			}
		}}
	}
	env.Tools.Changes = n
	tools, end := env.Tools.Open()
	t.Cleanup(func() { require.NoError(t, end()) })
	env.Tools = tools
	w, err := changed.New(1).Begin(p.Live())
	if err == nil {
		w.Close()
	}
	return env, err == nil
}

// fixed runs fixperms, and returns its summary.
func fixed(t *testing.T, env *procedures.Env, f procedures.Fixperms) (text string, lines []string) {
	t.Helper()
	require.NoError(t, f.Run(t.Context(), env))
	return env.TakeSummary()
}

// fixedWhole walks everything, whatever is known.
func fixedWhole(t *testing.T, env *procedures.Env, early bool) (text string, lines []string) {
	t.Helper()
	tools, whole := *env.Tools, *env
	tools.Changes = nil
	var end func() error
	whole.Tools, end = tools.Open()
	text, lines = fixed(t, &whole, procedures.Fixperms{Early: early})
	require.NoError(t, end())
	return text, lines
}

// begun runs what comes before the steps.
func begun(t *testing.T, env *procedures.Env, archived bool) {
	t.Helper()
	if archived {
		require.NoError(t, procedures.Archive{}.Run(t.Context(), env))
		require.NoError(t, procedures.ReleaseSync{}.Run(t.Context(), env))
	}
	fixed(t, env, procedures.Fixperms{Early: true, Synced: archived})
}

// Steps change what they like: the fixperms after them, which looks only at that, leaves nothing that a walk of everything would fix.
func TestFixpermsFindsWhatStepsChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(draw.Seed(t), 0)) //nolint:gosec // chooses test cases
	n := changed.New(4)
	rules := []*py.Dict{nil, py.NewDict("project/var", py.NewDict("dirs", "2770", "files", "0660"), "data/up", py.NewDict("files", "0600"))}
	some, all, did, can := 0, 0, 0, false
	for i := range 60 {
		var env *procedures.Env
		env, can = watchedEnv(t, n, rules[i%2])
		if i%5 > 0 { // what the first fixperms fixes has changed, too
			fixedWhole(t, env, false)
		}
		begun(t, env, i%3 == 0)
		var log strings.Builder
		for range r.IntN(10) {
			randomStep(r, env.Paths, &log)
		}
		text, lines := fixed(t, env, procedures.Fixperms{})
		if strings.Contains(text, onlySome) {
			some++
		} else {
			all++
		}
		if strings.Contains(text, "fixed") {
			did++
		}
		after, kept := fixedWhole(t, env, false)
		require.NotContains(t, after, "fixed", "after %q\n%s", text, log.String())
		require.Equal(t, kept, lines, "after %q\n%s", text, log.String())
	}
	if can {
		require.Greater(t, some, 30, "%d times everything was walked", all)
	} else {
		require.Zero(t, some)
	}
	require.Greater(t, did, 10, "the steps changed too little")
}

// randomStep changes something of a project, or beside it.
func randomStep(r *rand.Rand, at layout.Project, log *strings.Builder) {
	outside := filepath.Join(filepath.Dir(at.Live()), "outside")
	_ = os.MkdirAll(outside, 0o755)
	var all, dirs []string
	for _, top := range []string{at.Live(), at.Data(), at.Pillar(), outside} {
		_ = filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
			if err == nil && p != top {
				all = append(all, p)
			}
			if err == nil && d.IsDir() {
				dirs = append(dirs, p)
			}
			return nil
		})
	}
	a, b := all[r.IntN(len(all))], filepath.Join(dirs[r.IntN(len(dirs))], string(rune('a'+r.IntN(9))))
	mode, uid, gid := fs.FileMode(0o700|r.IntN(0o100)), -1, -1
	if os.Geteuid() == 0 {
		uid, gid = []int{0, 33, 1000}[r.IntN(3)], []int{0, 33, 1000}[r.IntN(3)]
	}
	what := []func() error{
		func() error { return os.Chmod(a, mode) },
		func() error { return os.Lchown(a, uid, gid) },
		func() error { return os.Lchown(a, uid, gid) },
		func() error { return os.WriteFile(b, []byte("x"), mode) },
		func() error { return os.MkdirAll(b+"/n", mode) },
		func() error { return os.Rename(a, b) },
		func() error { return os.RemoveAll(a) },
		func() error { return os.Symlink(a, b) },
		func() error {
			l := filepath.Join(outside, "passing")
			return errors.Join(os.Link(a, l), os.Lchown(l, uid, gid), os.Chmod(l, mode), os.Remove(l))
		},
		func() error {
			if r.IntN(5) > 0 {
				return nil
			}
			return os.Link(a, b)
		},
	}
	i := r.IntN(len(what))
	fmt.Fprintf(log, "%d %s %s %o %d:%d: %v\n", i, a, b, mode, uid, gid, what[i]())
}

// What makes it unknown what steps changed: then everything is walked.
func TestFixpermsWalksWhatItDoesNotKnow(t *testing.T) {
	root := os.Geteuid() == 0
	for name, c := range map[string]struct {
		limit    int
		archived bool
		rules    *py.Dict
		before   func(t *testing.T, env *procedures.Env)
		between  func(t *testing.T, env *procedures.Env)
		some     bool
	}{
		"nothing does":               {limit: 4, some: true},
		"nothing does, archived":     {limit: 4, archived: true, some: true},
		"too many watches":           {limit: 0},
		"too many watches, archived": {limit: 0, archived: true},
		"a rule names an account that a step creates": {
			limit: 4, rules: py.NewDict("project", py.NewDict("user", "later"), "data", py.NewDict("user", "later"), "pillar", py.NewDict("user", "later")),
			between: func(_ *testing.T, env *procedures.Env) { env.Tools.Host.Users.(someUsers)["later"] = 77 },
		},
		"hard links in all trees": {limit: 4, before: func(t *testing.T, env *procedures.Env) {
			for _, f := range []string{env.Paths.Live() + "/page", env.Paths.Data() + "/up/x", env.Paths.Pillar() + "/init.sls"} {
				require.NoError(t, os.Link(f, f+"2"))
			}
		}},
		"one of several names comes under another rule": {
			limit: 4, archived: true, some: true, rules: py.NewDict("project/bin", py.NewDict("files", "0640")),
			before: func(t *testing.T, env *procedures.Env) {
				require.NoError(t, os.Link(env.Paths.Live()+"/page", env.Paths.Live()+"/page2"))
			},
			between: func(t *testing.T, env *procedures.Env) {
				require.NoError(t, os.Rename(env.Paths.Live()+"/page", env.Paths.Live()+"/bin/page"))
			},
		},
		"all trees are others": {limit: 4, between: func(t *testing.T, env *procedures.Env) {
			for _, d := range []string{env.Paths.Live(), env.Paths.Data(), env.Paths.Pillar()} {
				require.NoError(t, os.Rename(d, d+".old"))
				require.NoError(t, os.Mkdir(d, 0o755))
			}
		}},
		"without the first fixperms": {limit: 4, between: func(_ *testing.T, env *procedures.Env) {
			fixedWhole(t, env, false)
			env.Tools, _ = env.Tools.Open()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for try := range 50 {
				env, can := watchedEnv(t, changed.New(c.limit), c.rules)
				if c.before != nil {
					c.before(t, env)
				}
				fixedWhole(t, env, true)
				begun(t, env, c.archived)
				if c.between != nil {
					c.between(t, env)
				}
				require.NoError(t, os.WriteFile(env.Paths.Pillar()+"/new", nil, 0o644))
				text, _ := fixed(t, env, procedures.Fixperms{})
				if c.some && can && try < 49 && !strings.Contains(text, onlySome) {
					continue // something was mounted by another process
				}
				require.Contains(t, text, "fixed")
				require.Equal(t, c.some && can, strings.Contains(text, onlySome), text)
				st, err := os.Lstat(env.Paths.Pillar() + "/new")
				require.NoError(t, err)
				require.Zero(t, st.Mode().Perm()&0o007, "the new file of the pillar is as its rule says")
				after, _ := fixedWhole(t, env, false)
				require.NotContains(t, after, "fixed")
				if root && c.rules == nil {
					require.Zero(t, st.Sys().(*syscall.Stat_t).Uid)
				}
				return
			}
		})
	}
}

// The archive has looked at a tree before it was watched: what happened between is not known.
func TestFixpermsDoesNotTrustAnOlderScan(t *testing.T) {
	n := changed.New(1)
	env, can := watchedEnv(t, n, nil)
	fixedWhole(t, env, false)
	other := t.TempDir()
	held, err := n.Begin(other)
	if !can {
		require.Error(t, err)
		return
	}
	require.NoError(t, err)
	require.NoError(t, procedures.Archive{}.Run(t.Context(), env))
	require.NoError(t, procedures.ReleaseSync{}.Run(t.Context(), env))
	require.NoError(t, os.Lchown(env.Paths.Live()+"/page", 0, 0))
	held.Close()
	fixed(t, env, procedures.Fixperms{Early: true, Synced: true})
	text, _ := fixed(t, env, procedures.Fixperms{})
	require.NotContains(t, text, onlySome)
	st, err := os.Lstat(env.Paths.Live() + "/page")
	require.NoError(t, err)
	require.Equal(t, uint32(1000), st.Sys().(*syscall.Stat_t).Uid)
}
