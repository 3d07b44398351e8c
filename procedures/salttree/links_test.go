package salttree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures/salttree"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func TestLinkIsIdempotentAndUnlinkUndoesIt(t *testing.T) {
	root := layout.Root(t.TempDir())
	l := salttree.Links{FS: vfs.OS{}, Root: root}
	p := root.Project("app")
	put(t, filepath.Join(p.Salt(), "a.sls"), "x")
	put(t, filepath.Join(p.Salt(), "_modules", "mod.py"), "x")
	put(t, filepath.Join(p.Pillar(), "init.sls"), "y")

	did, err := l.Link("app")
	require.NoError(t, err)
	require.Equal(t, []string{"linked salt/makina-projects/app", "linked pillar/makina-projects/app", "listed in pillar/top.sls"}, did)
	require.Equal(t, "x", read(t, filepath.Join(p.SaltLink(), "a.sls")))
	require.Equal(t, "y", read(t, filepath.Join(p.PillarLink(), "init.sls")))
	require.Equal(t, "base:\n  '*':\n    - makina-projects.app\n", read(t, root.PillarTop()))
	target, err := os.Readlink(p.SaltLink())
	require.NoError(t, err)
	require.Equal(t, "../../projects/app/project/.salt", target)
	require.True(t, l.Linked("app"))
	did, err = l.Link("app")
	require.NoError(t, err)
	require.Empty(t, did)

	n, err := l.Modules("app")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	for _, name := range []string{"mod.py", "app_mod.py"} {
		require.Equal(t, "x", read(t, filepath.Join(root.Modules("_modules"), name)))
	}
	n, err = l.Modules("app")
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, os.Remove(filepath.Join(p.Salt(), "_modules", "mod.py")))
	put(t, filepath.Join(root.Modules("_modules"), "other.py"), "not ours")
	n, err = l.Modules("app")
	require.NoError(t, err)
	require.Equal(t, 2, n)

	_, err = l.Unlink("app")
	require.NoError(t, err)
	require.False(t, l.Linked("app"))
	require.Empty(t, read(t, root.PillarTop()))
	require.Equal(t, "not ours", read(t, filepath.Join(root.Modules("_modules"), "other.py")))
	did, err = l.Unlink("app")
	require.NoError(t, err)
	require.Empty(t, did)
}

func TestLinkLeavesWhatIsNotOurs(t *testing.T) {
	root := layout.Root(t.TempDir())
	l := salttree.Links{FS: vfs.OS{}, Root: root}
	put(t, filepath.Join(root.Project("app").SaltLink(), "precious"), "x")
	_, err := l.Link("app")
	require.ErrorContains(t, err, "not a symbolic link")
	require.Equal(t, "x", read(t, filepath.Join(root.Project("app").SaltLink(), "precious")))
}

func TestTopFileKeepsTheRest(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"comments":    {"# mine\nbase:\n  '*':\n    - custom\n", "# mine\nbase:\n  '*':\n    - makina-projects.app\n    - custom\n"},
		"listed":      {"base:\n  '*':\n  - 'makina-projects.app'\n", "base:\n  '*':\n  - 'makina-projects.app'\n"},
		"no star":     {"base:\n  'web*':\n    - web\n", "base:\n  '*':\n    - makina-projects.app\n  'web*':\n    - web\n"},
		"no base":     {"dev:\n  '*x':\n    - web", "dev:\n  '*x':\n    - web\nbase:\n  '*':\n    - makina-projects.app\n"},
		"a longer":    {"base:\n  '*':\n    - makina-projects.app2\n", "base:\n  '*':\n    - makina-projects.app\n    - makina-projects.app2\n"},
		"no last eol": {"base:\n  '*':", "base:\n  '*':\n    - makina-projects.app\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := layout.Root(t.TempDir())
			l := salttree.Links{FS: vfs.OS{}, Root: root}
			put(t, root.PillarTop(), c.before)
			_, err := l.Link("app")
			require.NoError(t, err)
			require.Equal(t, c.after, read(t, root.PillarTop()))
		})
	}
}
