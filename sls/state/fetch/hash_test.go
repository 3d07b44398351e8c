package fetch_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/sls/state/archive"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
	"corpus-git/sls/state/file"
)

// What Salt 3008 says of the same sources, seen with the same server.
func TestSourceHash(t *testing.T) {
	content := []byte("content\n")
	zeros := strings.Repeat("0", 64)
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	tw := tar.NewWriter(zw)
	require.NoError(t, tw.WriteHeader(&tar.Header{Name: "app/x", Size: 2, Mode: 0o644}))
	_, err := tw.Write([]byte("hi"))
	require.NoError(t, err)
	require.NoError(t, tw.Close())
	require.NoError(t, zw.Close())
	sum := fetch.Hash("sha256", content)
	files := map[string]string{
		"/f.txt": string(content), "/a.tar.gz": packed.String(), "/MD5": fetch.Hash("md5", content) + "\n",
		"/SUMS":  zeros + "  other.txt\n" + sum + "  f.txt\n" + fetch.Hash("sha256", packed.Bytes()) + " *a.tar.gz\n",
		"/OTHER": strings.Repeat("1", 64) + "  other.txt\n" + strings.Repeat("2", 64) + "  more.txt\n",
		"/BSD":   "SHA256 (f.txt) = " + sum + "\n", "/EMPTY": "nothing\n",
		"/PATHS": strings.Repeat("3", 64) + "  a/f.txt\n" + sum + "  b/f.txt\n",
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	defer srv.Close()
	url := srv.URL
	gone := httptest.NewServer(nil)
	unreachable := gone.URL
	gone.Close()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	local := filepath.Join(dir, "local")
	require.NoError(t, os.WriteFile(local, content, 0o600))
	mismatch := func(want string) string {
		return "Specified sha256 checksum for " + out + " (" + want + ") does not match actual checksum (" + sum + ")"
	}
	managed := func(kv ...any) []any { return append([]any{"file.managed", "source", url + "/f.txt"}, kv...) }
	archived := func(kv ...any) []any { return append([]any{"archive.extracted", "source", url + "/a.tar.gz"}, kv...) }
	type test struct {
		name string
		call []any
		want string // "" is success
	}
	tests := []test{
		{"upper case", managed("source_hash", strings.ToUpper(sum)), ""},
		{"a file of hashes", managed("source_hash", url+"/SUMS"), ""},
		{"a file of one hash", managed("source_hash", url+"/MD5"), ""},
		{"a BSD file", managed("source_hash", url+"/BSD"), ""},
		{"a file of hashes of salt://", managed("source_hash", "salt://SUMS"), ""},
		{"the path of source_hash_name", managed("source_hash", url+"/PATHS", "source_hash_name", "b/f.txt"), ""},
		{"the first of two paths", managed("source_hash", url+"/PATHS"), mismatch(strings.Repeat("3", 64))},
		{"another source_hash_name", managed("source_hash", url+"/SUMS", "source_hash_name", "other.txt"), mismatch(zeros)},
		{"a file of others' hashes", managed("source_hash", url+"/OTHER"), mismatch(strings.Repeat("1", 64))},
		{"a file without hashes", managed("source_hash", url+"/EMPTY"), "Unable to manage file: Source hash " + url + "/EMPTY format is invalid."},
		{"a file of hashes that is not there", managed("source_hash", url+"/NOPE"), "Unable to manage file: Failed to cache " + url + "/NOPE: Error: HTTP 404: Not Found reading /NOPE"},
		{"mismatch", managed("source_hash", zeros), mismatch(zeros)},
		{"no hash at all", managed("source_hash", "xyz"), "Unable to manage file: Source hash xyz format is invalid."},
		{"a colon", managed("source_hash", "sha256:"+sum), "Unable to manage file: Source hash sha256:" + sum + " format is invalid."},
		{"unknown kind", managed("source_hash", "sha3=abc123"), "Unable to manage file: Invalid hash type 'sha3'. Supported hash types are: sha512, sha384, sha256, sha224, sha1, md5. " +
			"Either remove the hash type and simply use 'abc123' as the source_hash, or change the hash type to a supported type."},
		{"another length", managed("source_hash", "md5="+sum), "Unable to manage file: Invalid length (64) for hash type 'md5'. Either remove the hash type and simply use '" + sum + "' as the source_hash, or change the hash type to 'sha256'"},
		{"no source_hash", managed(), "Unable to manage file: Unable to verify upstream hash of source file " + url + "/f.txt, please set source_hash or set skip_verify to True"},
		{"skip_verify", managed("skip_verify", true), ""},
		{"not there", []any{"file.managed", "source", url + "/no.txt", "source_hash", zeros}, "Unable to manage file: Failed to cache " + url + "/no.txt: Error: HTTP 404: Not Found reading /no.txt"},
		{"unreachable", []any{"file.managed", "source", unreachable + "/f.txt", "source_hash", zeros}, "Unable to manage file: Failed to cache " + unreachable + "/f.txt: Error: "},
		{"a list", []any{"file.managed", "source", py.NewList(url+"/no.txt", url+"/f.txt"), "source_hash", sum}, ""},
		{"a list of nothing", []any{"file.managed", "source", py.NewList(url + "/no.txt"), "source_hash", sum}, "Unable to manage file: none of the specified sources were found"},
		{"a local file", []any{"file.managed", "source", local, "source_hash", sum}, ""},
		{"a local file, mismatch", []any{"file.managed", "source", local, "source_hash", zeros}, mismatch(zeros)},
		{"archive", archived("source_hash", "sha256="+fetch.Hash("sha256", packed.Bytes())), ""},
		{"archive, a file of hashes", archived("source_hash", url+"/SUMS"), ""},
		{"archive, mismatch", archived("source_hash", zeros), "does not match the specified hash (" + zeros + ")"},
		{"archive, no source_hash", archived(), "Unable to verify upstream hash of source file " + url + "/a.tar.gz, please set source_hash or set skip_verify or use_etag to True"},
		{"archive, skip_verify", archived("skip_verify", true), ""},
		{"archive, not there", []any{"archive.extracted", "source", url + "/no.tar.gz", "source_hash", zeros}, "HTTP 404: Not Found reading /no.tar.gz"},
	}
	for _, kind := range []string{"sha512", "sha384", "sha256", "sha224", "sha1", "md5"} {
		h := fetch.Hash(kind, content)
		tests = append(tests, test{kind, managed("source_hash", kind+"="+h), ""}, test{"bare " + kind, managed("source_hash", h), ""})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(out))
			c := &core.Call{Env: &core.Env{Host: host.New(execx.OS{}), Cache: map[string]any{}, Roots: fileroot.Roots{{FS: fstest.MapFS{"SUMS": {Data: []byte(files["/SUMS"])}}}}},
				Ctx: context.Background(), Name: out, Args: py.NewDict(append(tt.call[1:], "name", out)...)}
			fn, ok := core.NewTable(archive.States, file.States).Lookup(tt.call[0].(string))
			require.True(t, ok)
			ret := fn.Run(c)
			if tt.want == "" {
				require.Equal(t, core.True, ret.Result, ret.Comment)
				return
			}
			require.Equal(t, core.False, ret.Result)
			require.Contains(t, ret.Comment, tt.want)
			require.NoFileExists(t, out)
		})
	}
}

// A password in a URL is in no message.
func TestSourceHidesThePassword(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	src := strings.Replace(gone.URL, "://", "://user:s3cr3t@", 1) + "/f"
	for _, args := range [][]any{{"source_hash", strings.Repeat("0", 64)}, {"skip_verify", true}, {}, {"source_hash", src}} {
		c := &core.Call{Env: &core.Env{Host: host.New(execx.OS{}), Cache: map[string]any{}}, Ctx: context.Background(), Name: "/nowhere/f",
			Args: py.NewDict(append(args, "name", "/nowhere/f", "source", src)...)}
		fn, _ := core.NewTable(file.States).Lookup("file.managed")
		ret := fn.Run(c)
		require.Equal(t, core.False, ret.Result)
		require.NotContains(t, fmt.Sprint(ret), "s3cr3t")
	}
}
