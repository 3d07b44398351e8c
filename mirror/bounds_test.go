package mirror

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// A mirror has no users. The attack: many requests of a few kilobytes, which unpack to 64 MiB each and were kept in memory.
func TestRequestsOfStrangersAreBounded(t *testing.T) {
	m := open(t, t.TempDir(), "repositories:\n  - {path: x, url: 'https://example.org/x', revision: v1}\n")
	dir := m.repositoryDir("x")
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	create := exec.CommandContext(t.Context(), "sh", "-euc", `git init -q --bare "$1"; cd "$1"; c=$(git -c user.name=a -c user.email=a@localhost commit-tree -m one $(git mktree </dev/null))
for r in refs/heads/pinned refs/tags/v1; do git update-ref $r $c; done; git symbolic-ref HEAD refs/heads/pinned; echo $c`, "sh", dir)
	made, err := create.Output()
	require.NoError(t, err)
	commit := strings.TrimSpace(string(made))
	m.lock = &Lock{Version: lockVersion, Repositories: map[string]LockedRepository{"x": {Revision: "v1", Ref: "refs/tags/v1", Object: commit, Commit: commit}}}
	require.NoError(t, m.lock.write(m.LockFile))
	s := httptest.NewServer(m.Handler(zerolog.Nop()))
	defer s.Close()

	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	_, err = zip.Write(make([]byte, maxRequest+1))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/git/x.git/git-upload-pack", &bomb)
	require.NoError(t, err)
	req.Header.Set("Content-Encoding", "gzip")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
	require.LessOrEqual(t, maxRequest*maxFetches, 128<<20, "what all requests take together")
}

// The attack: somebody between the mirror and a server that the list names with https sends the first copy, which is pinned, from elsewhere without TLS.
func TestNoWayBackFromHTTPS(t *testing.T) {
	plain := httptest.NewServer(&site{text: "evil"})
	defer plain.Close()
	var to string
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }))
	defer web.Close()
	m := open(t, t.TempDir(), "files:\n  - {path: x, url: '"+web.URL+"/x'}\n")
	m.HTTP = web.Client()
	to = plain.URL + "/x"
	require.Contains(t, one(t, m, Options{}).Error, "redirects from https to an address that is not")
	to = web.URL + "/x"
	require.Contains(t, one(t, m, Options{}).Error, "redirects more than")
	require.NoFileExists(t, m.filePath("x"))
}

// The attack: a server, or somebody between it and the mirror, sends a file without an end, which no checksum names yet. It says its size, or it does not.
func TestFilesAreBounded(t *testing.T) {
	for _, says := range []bool{true, false} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if says {
				w.Header().Set("Content-Length", "1000000")
			}
			for range 1000 {
				_, _ = w.Write(make([]byte, 1000))
			}
		}))
		m := open(t, t.TempDir(), "files:\n  - {path: x, url: '"+web.URL+"/x', max_size: 999999B}\n")
		require.Contains(t, one(t, m, Options{}).Error, "it is larger than ")
		require.NoFileExists(t, m.filePath("x"))
		require.NoFileExists(t, m.filePath("x")+".part")
		m = open(t, t.TempDir(), "files:\n  - {path: x, url: '"+web.URL+"/x', max_size: 1000000B}\n")
		require.Empty(t, one(t, m, Options{}).Error)
		web.Close()
	}
	_, err := parse("repos.yaml", []byte("files:\n  - {path: x, url: 'https://example.org/x', max_size: large}\n"))
	require.ErrorContains(t, err, "repos.yaml:2: max_size of x is \"large\" and must be a size")
}

// A truncated lock, or one that somebody wrote by hand, ended the program with a Go panic.
func TestALockWithoutHashes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "repos.lock")
	for _, text := range []string{
		`{"version": 1, "repositories": {"a\u202eb": {"commit": "abc", "object": "abc"}}}`, `{"version": 1, "files": {"a\u202eb": {"sha256": "abc"}}}`,
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		_, err := ReadLock(name)
		require.ErrorContains(t, err, `the pin of a\u202eb is not complete`)
	}
}
