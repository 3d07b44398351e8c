package salt

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/sls"
	"corpus-git/sls/fileroot"
)

func TestOnDiskNamesTheModulesOfARecipeAsADeploymentDoes(t *testing.T) {
	disk, dir := t.TempDir(), t.TempDir()
	recipe := fstest.MapFS{
		"010_one.sls":       {Data: []byte("a: test.nop\n")},
		"_states/mine.py":   {Data: []byte("def hello(name): pass\n")},
		"_states/README":    {Data: []byte("not a module\n")},
		"_modules/other.py": {Data: []byte("def who(): pass\n")},
	}
	in := &sls.Input{Roots: fileroot.Roots{{FS: recipe, Mount: "makina-projects/app"}, fileroot.OnDisk(disk)}}
	for range 2 { // the second time what the first one left goes
		got, err := onDisk(in, dir)
		require.NoError(t, err)
		require.Len(t, got.Roots, 3)
		again, err := onDisk(got, dir)
		require.NoError(t, err)
		require.Equal(t, got.Roots, again.Roots)
		for _, name := range []string{"_states/mine.py", "_states/app_mine.py", "_modules/other.py", "_modules/app_other.py"} {
			f, err := got.Roots.Find("salt://" + name)
			require.NoError(t, err)
			src, err := f.Read()
			require.NoError(t, err)
			require.NotEmpty(t, src)
		}
		_, err = got.Roots.Find("salt://_states/README")
		require.ErrorIs(t, err, os.ErrNotExist)
		_, err = got.Roots.Find("salt://010_one.sls")
		require.ErrorIs(t, err, os.ErrNotExist)
		delete(recipe, "_states/README")
	}
	delete(recipe, "_states/mine.py")
	delete(recipe, "_modules/other.py")
	got, err := onDisk(in, dir)
	require.NoError(t, err)
	require.Len(t, got.Roots, 2)
	require.NoDirExists(t, filepath.Join(dir, "trees", "0-modules"))
}

// The modules of other projects, and the working copy's own, are links in the root: their owners could change what root loads.
func TestOnDiskHidesWhatOthersOwn(t *testing.T) {
	top := t.TempDir()
	disk, projects, dir := filepath.Join(top, "salt"), filepath.Join(top, "projects"), filepath.Join(top, "dir")
	write := func(p, text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(text), 0o644))
	}
	link := func(to, p string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.Symlink(to, p))
	}
	write(filepath.Join(projects, "app/project/.salt/_modules/mine.py"), "the working copy")
	write(filepath.Join(projects, "other/project/.salt/_modules/theirs.py"), "another's")
	write(filepath.Join(projects, "other/project/.salt/010.sls"), "their step")
	write(filepath.Join(disk, "_modules/operator.py"), "the operator's")
	write(filepath.Join(disk, "top/file"), "a file")
	write(filepath.Join(top, "elsewhere/makina.py"), "makina-states")
	link("../../elsewhere/makina.py", filepath.Join(disk, "_modules/makina.py"))
	link("../../projects/app/project/.salt/_modules/mine.py", filepath.Join(disk, "_modules/mine.py"))
	link("../../projects/other/project/.salt/_modules/theirs.py", filepath.Join(disk, "_modules/theirs.py"))
	link("theirs.py", filepath.Join(disk, "_modules/twice.py"))
	link("../projects/other/project/.salt/_modules", filepath.Join(disk, "_states"))
	link("../../projects/app/project/.salt", filepath.Join(disk, "makina-projects/app"))
	link("../../projects/other/project/.salt", filepath.Join(disk, "makina-projects/other"))
	recipe := filepath.Join(top, "recipe")
	write(filepath.Join(recipe, "_modules/mine.py"), "the commit")
	mount := fileroot.OnDisk(recipe)
	mount.Mount = "makina-projects/app"
	got, err := onDisk(&sls.Input{Roots: fileroot.Roots{mount, fileroot.OnDisk(disk)}, Projects: projects}, dir)
	require.NoError(t, err)
	texts := map[string]string{}
	for _, r := range got.Roots { // as Salt does, which knows of no mounts: all roots, the first wins
		if r.Mount != "" {
			continue
		}
		require.NoError(t, fileroot.Roots{r}.Walk("", func(rel string, f fileroot.File, d os.DirEntry) error {
			if _, has := texts[rel]; !has && !d.IsDir() {
				text, err := f.Read()
				require.NoError(t, err)
				texts[rel] = string(text)
			}
			return nil
		}))
	}
	require.Equal(t, map[string]string{
		"_modules/mine.py": "the commit", "_modules/app_mine.py": "the commit", "_modules/operator.py": "the operator's", "_modules/makina.py": "makina-states",
		"top/file": "a file", "makina-projects/other/010.sls": "their step", "makina-projects/other/_modules/theirs.py": "another's",
	}, texts)
}

// Files of another project's recipe can be included, its modules are not loaded; one that can't be read keeps nobody from being deployed.
func TestOnDiskOfOtherProjects(t *testing.T) {
	dir := t.TempDir()
	in := &sls.Input{Roots: fileroot.Roots{
		{FS: fstest.MapFS{"a.sls": {Data: []byte("{}")}}, Mount: "makina-projects/app"},
		{FS: fstest.MapFS{"b.sls": {Data: []byte("{}")}, "_modules/b.py": {Data: []byte("b = 1")}}, Mount: "makina-projects/lib", Foreign: true},
		{FS: os.DirFS(filepath.Join(dir, "nowhere")), Mount: "makina-projects/none", Foreign: true},
	}}
	require.False(t, ownModules(in))
	for range 2 {
		got, err := onDisk(in, dir)
		require.NoError(t, err)
		require.Len(t, got.Roots, 3)
		f, err := got.Roots.Find("salt://makina-projects/lib/b.sls")
		require.NoError(t, err)
		require.FileExists(t, f.Disk())
		_, err = got.Roots.FindDir("_modules")
		require.ErrorIs(t, err, os.ErrNotExist)
		_, err = got.Roots.Find("salt://makina-projects/none/x")
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}
