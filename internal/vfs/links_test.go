package vfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
)

func TestCheckLinks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("links of other users are root's to make")
	}
	const user = 65534
	dir := t.TempDir()
	data, root := filepath.Join(dir, "data"), filepath.Join(dir, "root")
	for _, d := range []string{data, root, data + "/own"} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	for _, f := range []string{root + "/shadow", data + "/own/file", root + "/his"} {
		require.NoError(t, os.WriteFile(f, nil, 0o600))
	}
	link := func(target, at string, uid int) {
		require.NoError(t, os.Symlink(target, at))
		require.NoError(t, os.Lchown(at, uid, uid))
	}
	link(root+"/shadow", data+"/file", user)
	link("../root", data+"/dir", user)
	link("own/file", data+"/mine", user)
	link("own", data+"/owndir", user)
	link("file", data+"/twice", 0)
	link(root+"/none", data+"/dangling", user)
	link(root+"/shadow", data+"/roots", 0)
	link(root+"/shadow", root+"/chowned", user) // in a folder of root's: nobody else can have put it there
	link("loop", data+"/loop", user)
	for _, p := range []string{data, data + "/own", data + "/own/file", root + "/his"} {
		require.NoError(t, os.Chown(p, user, user))
	}
	for path, refused := range map[string][2]bool{ // not followed, followed
		"data/file": {false, true}, "data/dir": {false, true}, "data/dir/shadow": {true, true}, "data/dir/new/x": {true, true}, "data/dir/his": {false, false},
		"data/mine": {}, "data/owndir/file": {}, "data/owndir/new": {}, "data/twice": {false, true}, "data/dangling": {false, true}, "data/roots": {},
		"data/loop": {}, "root/chowned": {}, "data/none": {}, "data/own/../file": {false, true}, "data/dir/../data/mine": {}, "data/file/": {false, true},
	} {
		for i, follow := range []bool{false, true} {
			err := vfs.CheckLinks(dir+"/"+path, follow)
			if refused[i] {
				require.ErrorIs(t, err, vfs.ErrUntrusted, "%s %v", path, follow)
			} else {
				require.NoError(t, err, "%s %v", path, follow)
			}
		}
	}
}
