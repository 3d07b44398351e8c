package checkout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/testutil/gittest"
)

func TestAttributes(t *testing.T) {
	r := newRepo(t)
	r.Write("keep.txt", "a\nb\n")
	r.Write("win/x.bat", "a\nb\n")
	r.Write("win/bin.bat", "a\x00\nb\n")
	r.Write("win/odd.bat", "a\nb\n")
	r.Write("auto/t.csv", "a\nb\n")
	r.Write("auto/b.csv", "a\x00b\n")
	r.Write(".gitattributes", "[attr]dos text eol=crlf\n*.bat dos\n/auto/**/*.csv text=auto eol=crlf\n*.csv text=auto eol=crlf\n\"odd name\" -text\n")
	r.Write("win/.gitattributes", "odd.bat -text\nbin.bat binary\n")
	one := r.Commit("one")
	r.sync(one)
	r.clean(one)
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(r.dir, name))
		require.NoError(t, err)
		return string(b)
	}
	require.Equal(t, "a\nb\n", read("keep.txt"))
	require.Equal(t, "a\r\nb\r\n", read("win/x.bat"))
	require.Equal(t, "a\x00\nb\n", read("win/bin.bat"))
	require.Equal(t, "a\nb\n", read("win/odd.bat"))
	require.Equal(t, "a\r\nb\r\n", read("auto/t.csv"))
	require.Zero(t, r.sync(one).Written)

	// Touched, but the same: the content with its line ends is compared.
	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(r.dir, "win/x.bat"), past, past))
	require.Zero(t, r.sync(one).Written)
	gittest.WriteFile(t, filepath.Join(r.dir, "win/x.bat"), "a\nb\n") // not the result of a checkout
	require.Equal(t, 1, r.sync(one).LocalChanges.Count)
	require.Equal(t, "a\r\nb\r\n", read("win/x.bat"))

	// New attributes rewrite the files they affect, and no others.
	r.Write("win/.gitattributes", "*.bat -text\n")
	two := r.Commit("two")
	st := r.sync(two)
	require.Zero(t, st.LocalChanges.Count)
	require.Equal(t, 2, st.Written, ".gitattributes and x.bat")
	require.Equal(t, "a\nb\n", read("win/x.bat"))
	r.clean(two)
}

// A file that is streamed is converted too.
func TestBigFileIsConverted(t *testing.T) {
	r := newRepo(t)
	line := strings.Repeat("x", 63) + "\n"
	r.Write("big.bat", strings.Repeat(line, (streamAbove+4096)/len(line)))
	r.Write(".gitattributes", "*.bat eol=crlf\n")
	r.Git("-c", "core.compression=0", "add", "-A")
	one := r.Commit("one")
	r.sync(one)
	r.clean(one)
	require.Zero(t, r.sync(one).Written)
	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(r.dir, "big.bat"), past, past))
	require.Zero(t, r.sync(one).Written)
}

func TestNotes(t *testing.T) {
	r := newRepo(t)
	r.Write(".gitattributes", "*.bin filter=lfs diff=lfs -text\n*.c ident\n*.u16 working-tree-encoding=UTF-16\n*.asc working-tree-encoding=US-ASCII\n*.x filter=clean\n")
	r.Write("a.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:"+strings.Repeat("0a", 32)+"\nsize 1\n")
	r.Write("b.c", "$Id$")
	r.Write("c.x", "x")
	r.Write("d.txt", "x")
	r.Write("f.asc", "x\n")
	r.Write("g.asc", "x\n")
	r.Commit("one")
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",vendor/lib")
	r.Git("commit", "-q", "-m", "submodule")
	one := plumbing.NewHash(r.Git("rev-parse", "HEAD"))
	st := r.sync(one)
	all := strings.Join(st.Notes, "\n")
	require.Contains(t, all, "submodules left as empty folders: vendor/lib")
	require.Contains(t, all, "1 file is a pointer of git-lfs, not its content: a.bin")
	require.Contains(t, all, "filter in .gitattributes, which is not run: c.x")
	require.Contains(t, all, "2 files have a working-tree-encoding that is not known here, and are written as UTF-8: f.asc, g.asc")
	require.DirExists(t, filepath.Join(r.dir, "vendor/lib"))
	require.Empty(t, gittest.Git(t, r.dir, "status", "--porcelain"))
	require.Zero(t, r.sync(one).Written)
	gittest.WriteFile(t, filepath.Join(r.dir, "vendor/lib/file"), "somebody fetched it by hand")
	r.Git("rm", "-q", "--cached", "vendor/lib")
	r.Git("commit", "-q", "-m", "none")
	st = r.sync(plumbing.NewHash(r.Git("rev-parse", "HEAD")))
	require.Contains(t, strings.Join(st.Notes, "\n"), "kept the files of the removed submodule vendor/lib")
	require.FileExists(t, filepath.Join(r.dir, "vendor/lib/file"))
}
