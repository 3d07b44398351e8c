package sls_test

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
		got, err := sls.OnDisk(in, dir)
		require.NoError(t, err)
		require.Len(t, got.Roots, 3)
		require.Equal(t, disk, got.Roots[2].Dir)
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
	got, err := sls.OnDisk(in, dir)
	require.NoError(t, err)
	require.Len(t, got.Roots, 2)
	require.NoDirExists(t, filepath.Join(dir, "trees", "0-modules"))
}
