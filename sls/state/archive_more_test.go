package state

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Made by zip 3.0 with the password secret: top/a and top/d/b.
const encryptedZip = "UEsDBAoACQAAAAAAIVAHoerdDgAAAAIAAAAFAAAAdG9wL2H/GxAXKkCwkmGKhM9KQ1BLBwgHoerdDgAAAAIAAABQSwMECgAAAAAAAAAhUAAAAAAAAAAAAAAAAAYAAAB0b3AvZC9QSwMECgAJAAAAAAAhUMTyx/YOAAAAAgAAAAcAAAB0b3AvZC9iem58v4JD+9dwtkeRP6VQSwcIxPLH9g4AAAACAAAAUEsBAh4DCgAJAAAAAAAhUAeh6t0OAAAAAgAAAAUAAAAAAAAAAQAAAMCBAAAAAHRvcC9hUEsBAh4DCgAAAAAAAAAhUAAAAAAAAAAAAAAAAAYAAAAAAAAAAAAQAO1BQQAAAHRvcC9kL1BLAQIeAwoACQAAAAAAIVDE8sf2DgAAAAIAAAAHAAAAAAAAAAEAAACkgWUAAAB0b3AvZC9iUEsFBgAAAAADAAMAnAAAAKgAAAAAAA=="

func TestZipPassword(t *testing.T) {
	data, err := base64.StdEncoding.DecodeString(encryptedZip)
	require.NoError(t, err)
	for password, broken := range map[string]string{"secret": "", "": "the archive is encrypted", "wrong": "Bad password for file 'top/a'"} {
		members, err := readZip(data, password)
		require.NoError(t, err)
		require.Equal(t, "top/a", members[0].name)
		if broken != "" {
			require.EqualError(t, members[0].broken, broken)
			continue
		}
		require.NoError(t, members[0].broken)
		require.Equal(t, "a\n", string(members[0].data))
	}
}

// What is expected is what shlex.split of Python 3.11 gives.
func TestShlexSplit(t *testing.T) {
	for _, tt := range []struct {
		text  string
		want  []string
		fails string
	}{
		{"", nil, ""},
		{" a  b\tc\n", []string{"a", "b", "c"}, ""},
		{`a'b c'd "e f"`, []string{"ab cd", "e f"}, ""},
		{`'' ""`, []string{"", ""}, ""},
		{`a\ b "c\"d\e" 'f\g'`, []string{"a b", `c"d\e`, `f\g`}, ""},
		{`a 'b`, nil, "No closing quotation"},
		{`a\`, nil, "No escaped character"},
	} {
		got, err := shlexSplit(tt.text)
		if tt.fails != "" {
			require.EqualError(t, err, tt.fails)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tt.want, got, tt.text)
	}
}

// The sum of an archive is known in the next run where there is a place for it.
func TestArchiveSums(t *testing.T) {
	dir := t.TempDir()
	for _, backups := range []string{"", filepath.Join(dir, "backups")} {
		c := &Call{Env: &Env{Backups: backups, Cache: map[string]any{}}}
		require.Empty(t, c.known("/x.tar"))
		require.NoError(t, c.remember("/x.tar", "abc"))
		require.Equal(t, "abc", c.known("/x.tar"))
		require.Empty(t, c.known("/y.tar"))
		next := &Call{Env: &Env{Backups: backups, Cache: map[string]any{}}}
		want := "abc"
		if backups == "" {
			want = ""
		}
		require.Equal(t, want, next.known("/x.tar"))
	}
}

func TestUpdatedArchiveIsExtractedAgain(t *testing.T) {
	dir := t.TempDir()
	src, backups := filepath.Join(dir, "x.tar.gz"), filepath.Join(dir, "backups")
	run := func(text string) Return {
		data := tarball(t, map[string]string{"top/f": text}, nil)
		require.NoError(t, os.WriteFile(src, data, 0o600))
		f, _ := NewTable().Lookup("archive.extracted")
		c := callFor(t, backups, "archive.extracted", filepath.Join(dir, "dst"), "source", src, "source_hash", "sha256="+hashOf("sha256", data), "source_hash_update", true)
		return f.Run(c)
	}
	require.True(t, run("one").Changed())
	require.False(t, run("one").Changed())
	r := run("two")
	require.Equal(t, src+" extracted to "+dir+"/dst/, due to source_hash update", r.Comment)
	b, err := os.ReadFile(filepath.Join(dir, "dst/top/f"))
	require.NoError(t, err)
	require.Equal(t, "two", string(b))
}
