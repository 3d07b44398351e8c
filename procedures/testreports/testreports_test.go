package testreports_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/procedures/testreports"
)

func same(s string) string { return s }

const one = `<testsuite><testcase name="a"/></testsuite>`

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.Nil(t, testreports.Read(dir, "010_test", same))
	require.Nil(t, testreports.Read(filepath.Join(dir, "none"), "010_test", same))
	write("notes.txt", "nothing")
	require.Nil(t, testreports.Read(dir, "010_test", same))
	write("a.xml", one)
	write("b.XML", `<testsuite><testcase name="b"><failure message="m"/></testcase></testsuite>`)
	write("c.xml", "nonsense")
	got := testreports.Read(dir, "010_test", same)
	require.Equal(t, "010_test", got.Step)
	require.Equal(t, [3]int{2, 2, 1}, [3]int{got.Files, got.Tests, got.Failed})
	require.Len(t, got.Problems, 1)
}

// What is in the folder was made by somebody who may want the server to read, or to wait for, something else.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.xml")
	require.NoError(t, os.WriteFile(outside, []byte(one), 0o600))
	dir := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link.xml")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "own"), []byte(one), 0o600))
	require.NoError(t, os.Symlink("own", filepath.Join(dir, "inside.xml")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "pipe.xml"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.xml"), 0o700))
	got := testreports.Read(dir, "010_test", same)
	require.Equal(t, 1, got.Files, "a link within the folder")
	require.Len(t, got.Problems, 3)
	require.Contains(t, strings.Join(got.Problems, "\n"), "link.xml: path escapes")
	require.Contains(t, strings.Join(got.Problems, "\n"), "pipe.xml: it is not a regular file")
}

func TestManyReports(t *testing.T) {
	dir := t.TempDir()
	for i := range 600 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.xml", i)), []byte(one), 0o600))
	}
	got := testreports.Read(dir, "010_test", same)
	require.Equal(t, 500, got.Files)
	require.Equal(t, []string{"the folder: only 500 of 600 reports were read, because of the limit"}, got.Problems)
}
