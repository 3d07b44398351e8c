package procedures_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/hooks"
	"corpus-git/internal/execx"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/project"
	"corpus-git/sls/host"
)

// asked remembers what checkouts were asked for.
type asked struct {
	procedures.Repository
	of []project.Checkout
}

func (a *asked) Checkout(_ context.Context, req project.Checkout) (project.CheckoutStats, error) {
	a.of = append(a.of, req)
	return project.CheckoutStats{}, nil
}

// archiveEnv is the environment of procedures of a project that archives; its archives use f.
func archiveEnv(t *testing.T, f vfs.FS, clock func() time.Time) *procedures.Env {
	t.Helper()
	root := layout.Root(t.TempDir())
	paths, state := root.Project("app"), root.DefaultState()
	cfg, err := project.BuildCfg(t.Context(), project.CfgInputs{Name: "app", Layout: paths, Retention: project.DefaultRetention()})
	require.NoError(t, err)
	store := archive.New(paths, archive.Config{FS: f, Reserve: archive.Reserve{Percent: -1}, Now: clock})
	t.Cleanup(func() { _ = store.Wait() })
	const commit = "0123456789abcdef0123456789abcdef01234567"
	return &procedures.Env{
		Tools: &procedures.Tools{
			Root: root, State: state, Archives: func(project.Name) *archive.Store { return store }, FS: vfs.OS{}, Now: clock,
			Hooks: &hooks.Runner{Exec: execx.OS{}, State: state}, Host: host.New(execx.OS{}),
		},
		Paths: paths, Prepared: &procedures.Prepared{Cfg: cfg}, Report: &heard{},
		Deployment: project.Deployment{ID: project.NewID(), Project: "app", At: clock(), Code: commit, Pillar: commit},
	}
}

// What the archive's walk saw is handed to the checkouts, unless something ran since that may have changed it, or it is too old.
func TestCheckoutsAreToldWhatTheArchiveSaw(t *testing.T) {
	for name, c := range map[string]struct {
		point string // of a hook
		later time.Duration
		told  bool
	}{
		"at once":                   {told: true},
		"after a pre-archive hook":  {point: "pre-archive", told: true},
		"after a post-archive hook": {point: "post-archive"},
		"after a pre-deploy hook":   {point: "pre-deploy"},
		"late":                      {later: 3 * time.Second},
		"the clock went back":       {later: -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			repos := &asked{}
			env := archiveEnv(t, vfs.OS{}, func() time.Time { return now })
			env.Tools.Repository = always(repos)
			paths := env.Paths
			require.NoError(t, os.MkdirAll(filepath.Join(paths.Live(), "dir"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(paths.Live(), "dir/file"), []byte("text"), 0o640))
			require.NoError(t, os.Symlink("file", filepath.Join(paths.Live(), "dir/link")))
			require.NoError(t, os.WriteFile(filepath.Join(paths.Live(), "dir-b"), nil, 0o600))
			if c.point != "" {
				require.NoError(t, os.MkdirAll(env.Tools.State.Hooks(c.point), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(env.Tools.State.Hooks(c.point), "hook"), []byte("#!/bin/sh\nexit 0\n"), 0o755))
			}
			require.NoError(t, procedures.Archive{}.Run(t.Context(), env))
			require.NoError(t, procedures.PreDeploy().Run(t.Context(), env))
			now = now.Add(c.later)
			require.NoError(t, procedures.ReleaseSync{}.Run(t.Context(), env))
			require.Len(t, repos.of, 2)
			require.Equal(t, paths.Pillar(), repos.of[1].Dir)
			if !c.told {
				require.Nil(t, repos.of[0].Snapshot)
				require.Nil(t, repos.of[1].Snapshot)
				return
			}
			var names []string
			for path, f := range repos.of[0].Snapshot.Each {
				names = append(names, path)
				st, err := vfs.OS{}.Lstat(filepath.Join(paths.Live(), path))
				require.NoError(t, err)
				if st.IsDir() {
					f.Size = st.Size
				}
				require.Equal(t, vfs.FileFacts{Mode: st.Mode, UID: st.UID, GID: st.GID, Dev: st.Dev, Ino: st.Ino, Size: st.Size, Mtime: st.Mtime, Ctime: st.Ctime}, f)
			}
			require.Equal(t, []string{"dir", "dir-b", "dir/file", "dir/link"}, names)
			for range repos.of[1].Snapshot.Each {
				t.Fatal("the pillar is empty")
			}
			// Once only: what is there now is another tree.
			require.NoError(t, procedures.ReleaseSync{}.Run(t.Context(), env))
			require.Nil(t, repos.of[2].Snapshot)
		})
	}
}

// What is written has the owner and the permissions that fixperms wants at once.
func TestCheckoutsHaveTheOwnerOfFixperms(t *testing.T) {
	const folder, file = true, false
	for asRoot, want := range map[bool]struct {
		code, pillar [2]int // user and group
		perms        [2][2]uint32
	}{
		true:  {[2]int{1000, 1000}, [2]int{0, 1000}, [2][2]uint32{{0o2755, 0o644}, {0o770, 0o660}}},
		false: {[2]int{-1, -1}, [2]int{-1, -1}, [2][2]uint32{{0o755, 0o644}, {0o700, 0o600}}},
	} {
		env := permEnv(t, vfs.OS{}, layout.Root(t.TempDir()), nil, asRoot)
		repos := &asked{}
		env.Tools.Repository = always(repos)
		env.Deployment.Code, env.Deployment.Pillar = "0123456789abcdef0123456789abcdef01234567", "0123456789abcdef0123456789abcdef01234567"
		require.NoError(t, procedures.ReleaseSync{}.Run(t.Context(), env))
		require.Len(t, repos.of, 2)
		for i, ids := range [][2]int{want.code, want.pillar} {
			o := repos.of[i].Owner
			require.Equal(t, ids, [2]int{o.UID, o.GID})
			require.Equal(t, want.perms[i], [2]uint32{o.Perm(folder, 0o755), o.Perm(file, 0o644)})
		}
	}
}
