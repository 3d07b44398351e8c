package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
	"corpus-git/sls/state/statetest"
)

// Made by zip 3.0 with the password secret: top/a and top/d/b.
const encryptedZip = "UEsDBAoACQAAAAAAIVAHoerdDgAAAAIAAAAFAAAAdG9wL2H/GxAXKkCwkmGKhM9KQ1BLBwgHoerdDgAAAAIAAABQSwMECgAAAAAAAAAhUAAAAAAAAAAAAAAAAAYAAAB0b3AvZC9QSwMECgAJAAAAAAAhUMTyx/YOAAAAAgAAAAcAAAB0b3AvZC9iem58v4JD+9dwtkeRP6VQSwcIxPLH9g4AAAACAAAAUEsBAh4DCgAJAAAAAAAhUAeh6t0OAAAAAgAAAAUAAAAAAAAAAQAAAMCBAAAAAHRvcC9hUEsBAh4DCgAAAAAAAAAhUAAAAAAAAAAAAAAAAAYAAAAAAAAAAAAQAO1BQQAAAHRvcC9kL1BLAQIeAwoACQAAAAAAIVDE8sf2DgAAAAIAAAAHAAAAAAAAAAEAAACkgWUAAAB0b3AvZC9iUEsFBgAAAAADAAMAnAAAAKgAAAAAAA=="

func tarball(t *testing.T, files map[string]string, links map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for n, target := range links {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: n, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}))
	}
	for n, s := range files {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: n, Mode: 0o640, Size: int64(len(s))}))
		_, err := w.Write([]byte(s))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return b.Bytes()
}

func TestArchive(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "a.tar.gz"), filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(src, tarball(t, map[string]string{"top/a": "A", "top/d/b": "B"}, nil), 0o600))
	require.Equal(t, core.None, statetest.Do(t, States, true, "archive.extracted", dst, "source", src).Result)
	require.NoDirExists(t, dst)
	r := statetest.Do(t, States, false, "archive.extracted", dst, "source", src)
	require.Equal(t, core.True, r.Result, r.Comment)
	require.FileExists(t, filepath.Join(dst, "top/d/b"))
	require.False(t, statetest.Do(t, States, false, "archive.extracted", dst, "source", src).Changed())

	r = statetest.Do(t, States, false, "archive.extracted", dst, "source", src, "source_hash", "md5=00000000000000000000000000000000", "overwrite", true)
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "does not match")
}

// An archive that carries a link out of the directory, and then a file through that link, must not write outside.
func TestArchiveCannotEscape(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "outside")
	require.NoError(t, os.Mkdir(out, 0o755))
	for i, files := range []map[string]string{{"../outside/x": "evil"}, {"top/l/x": "evil"}} {
		src := filepath.Join(dir, "a.tar.gz")
		require.NoError(t, os.WriteFile(src, tarball(t, files, map[string]string{"top/l": out}), 0o600))
		r := statetest.Do(t, States, false, "archive.extracted", filepath.Join(dir, "dst"), "source", src, "enforce_toplevel", false)
		require.Equal(t, core.False, r.Result, "case %d: %s", i, r.Comment)
		require.NoFileExists(t, filepath.Join(out, "x"))
	}
}

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

// A member says that it has 2 bytes, and its encrypted data inflate to 256 MiB: no more than what it says is made of it.
func TestEncryptedZipMemberIsHeldToItsSize(t *testing.T) {
	var packed bytes.Buffer
	z, err := flate.NewWriter(&packed, flate.BestCompression)
	require.NoError(t, err)
	zeros := make([]byte, 1<<20)
	for range 256 {
		_, err = z.Write(zeros)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	sum := crc32.ChecksumIEEE(zeros[:2])
	plain := append(append(make([]byte, 11), byte(sum>>24)), packed.Bytes()...)
	k := newZipKeys("secret")
	for i, c := range plain {
		t := k[2] | 2
		plain[i] ^= byte(t * (t ^ 1) >> 8)
		k.update(c)
	}
	var whole bytes.Buffer
	w := zip.NewWriter(&whole)
	m, err := w.CreateRaw(&zip.FileHeader{Name: "a", Flags: 1, Method: zip.Deflate, CRC32: sum, CompressedSize64: uint64(len(plain)), UncompressedSize64: 2})
	require.NoError(t, err)
	_, err = m.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	members, err := readZip(whole.Bytes(), "secret")
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.NoError(t, members[0].broken)
	require.Equal(t, []byte{0, 0}, members[0].data)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
}

// The sum of an archive is known in the next run where there is a place for it.
func TestArchiveSums(t *testing.T) {
	dir := t.TempDir()
	for _, backups := range []string{"", filepath.Join(dir, "backups")} {
		c := &core.Call{Env: &core.Env{Backups: backups, Cache: map[string]any{}}}
		require.Empty(t, known(c, "/x.tar"))
		require.NoError(t, saveSum(c, "/x.tar", "abc"))
		require.Equal(t, "abc", known(c, "/x.tar"))
		require.Empty(t, known(c, "/y.tar"))
		next := &core.Call{Env: &core.Env{Backups: backups, Cache: map[string]any{}}}
		want := "abc"
		if backups == "" {
			want = ""
		}
		require.Equal(t, want, known(next, "/x.tar"))
	}
}

func TestUpdatedArchiveIsExtractedAgain(t *testing.T) {
	dir := t.TempDir()
	src, backups := filepath.Join(dir, "x.tar.gz"), filepath.Join(dir, "backups")
	run := func(text string) core.Return {
		data := tarball(t, map[string]string{"top/f": text}, nil)
		require.NoError(t, os.WriteFile(src, data, 0o600))
		f, _ := core.NewTable(States).Lookup("archive.extracted")
		c := statetest.CallFor(t, backups, "archive.extracted", filepath.Join(dir, "dst"), "source", src, "source_hash", "sha256="+fetch.Hash("sha256", data), "source_hash_update", true)
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
