package procedures_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/hooks"
	"corpus-git/internal/execx"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/project"
)

// writing performs checkouts that write some files, as root, and reports which.
type writing struct {
	noRepo
	repo  project.Repo
	write func()
	paths []string
}

func (w writing) Checkout(context.Context, project.Checkout) (project.CheckoutStats, error) {
	if w.repo == project.PillarRepo {
		return project.CheckoutStats{Touched: []string{}}, nil
	}
	w.write()
	return project.CheckoutStats{Touched: w.paths}, nil
}

// Right after release-sync, permissions that the archive's walk found correct are not checked again, but those of written files are. If something was
// wrong, or something ran, or the written files are not known, everything is walked.
func TestFixpermsBelievesTheArchivesWalk(t *testing.T) {
	for name, c := range map[string]struct {
		untold, wrong, unsynced, late bool
		whole                         bool // the whole tree must be walked
	}{
		"right after release-sync":         {},
		"written files are not told":       {untold: true, whole: true},
		"something was wrong before":       {wrong: true, whole: true},
		"not right after release-sync":     {unsynced: true, whole: true},
		"the archive took several seconds": {late: true, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := permWorld(t)
			mem := m.FS()
			require.NoError(t, mem.Remove(layout.Root("/srv").Project("app").Live()+"/stolen"))
			f := vfstest.New(mem, func(int, vfstest.Op) error { return nil })
			env := permEnv(t, f, "/srv", nil, true)
			live := env.Paths.Live()
			env.Tools.State, env.Unlinked, env.Tools.Now = layout.State(t.TempDir()), true, m.Now
			env.Deployment.ID, env.Deployment.At = project.NewID(), m.Now()
			env.Deployment.Code, env.Deployment.Pillar = "0123456789abcdef0123456789abcdef01234567", "0123456789abcdef0123456789abcdef01234567"
			store := archive.New(env.Paths, archive.Config{FS: mem, Now: m.Now, Workers: 1, Reserve: archive.Reserve{Percent: -1}})
			env.Tools.Archives = func(project.Name) *archive.Store { return store }
			env.Tools.Hooks = &hooks.Runner{Exec: execx.OS{}, State: env.Tools.State}
			repos := writing{paths: []string{"bin/run", "new/dir/file"}, write: func() {
				require.NoError(t, vfs.WriteFileAtomic(mem, live+"/bin/run", []byte("new"), 0o755))
				require.NoError(t, vfs.MkdirAll(mem, live+"/new/dir", 0o755))
				require.NoError(t, vfs.WriteFileAtomic(mem, live+"/new/dir/file", []byte("new"), 0o644))
				require.NoError(t, vfs.MkdirAll(mem, live+"/.git", 0o755))
				require.NoError(t, vfs.WriteFileAtomic(mem, live+"/.git/index", []byte("new"), 0o644))
			}}
			if c.untold {
				repos.paths = nil
			}
			env.Tools.Repository = func(_ project.Name, repo project.Repo) procedures.Repository {
				w := repos
				w.repo = repo
				return w
			}
			require.NoError(t, procedures.Fixperms{}.Run(t.Context(), env))
			if c.wrong {
				require.NoError(t, mem.Lchown(live+"/var/up/a", 0, 0))
			}
			m.Advance(time.Minute)
			require.NoError(t, procedures.Archive{}.Run(t.Context(), env))
			require.NoError(t, procedures.ReleaseSync{}.Run(t.Context(), env))
			if c.late {
				m.Advance(time.Minute)
			}
			before := f.Count()
			require.NoError(t, procedures.Fixperms{Early: true, Synced: !c.unsynced}.Run(t.Context(), env))
			looked := false
			for _, op := range f.Ops()[before:] {
				looked = looked || strings.HasSuffix(op.Path, "var/up/deep/b") || strings.HasSuffix(op.Path, "deep")
			}
			require.Equal(t, c.whole, looked)
			for _, p := range []string{"bin/run", "new", "new/dir", "new/dir/file", ".git", ".git/index", "var/up/a", "bin", "."} {
				st, err := mem.Lstat(live + "/" + p)
				require.NoError(t, err)
				require.Equal(t, uint32(1000), st.UID, p)
				require.Equal(t, uint32(1000), st.GID, p)
			}
			text, _ := env.TakeSummary()
			require.Contains(t, text, "unchanged")
			// The facts are used only once.
			require.NoError(t, mem.Lchown(live+"/var/up/deep/b", 0, 0))
			require.NoError(t, procedures.Fixperms{Early: true, Synced: true}.Run(t.Context(), env))
			st, err := mem.Lstat(live + "/var/up/deep/b")
			require.NoError(t, err)
			require.Equal(t, uint32(1000), st.UID)
		})
	}
}
