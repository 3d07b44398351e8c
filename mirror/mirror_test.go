package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/receive/submodule"
)

func TestParse(t *testing.T) {
	l, err := parse("repos.yaml", []byte("repositories:\n  - {path: a/b, url: 'https://example.org/b.git', revision: v1}\nfiles:\n  - {path: x.tar, url: 'https://example.org/x.tar'}\nfolders:\n  - {path: debian, from: /srv/debian}\n"))
	require.NoError(t, err)
	require.Equal(t, "a/b", l.Repositories[0].Path)
	require.Equal(t, 4, l.Files[0].line)
	empty, err := parse("repos.yaml", nil)
	require.NoError(t, err)
	require.Empty(t, empty.Repositories)
	for text, want := range map[string]string{
		"repositories:\n- {path: a, url: 'https://example.org/a', revision: v1}\n- {path: a/b, url: 'https://example.org/a', revision: v1}": "3: the path a/b lies in that of line 2",
		"repositories:\n- {path: a/b, url: 'https://example.org/a', revision: v1}\n- {path: a, url: 'https://example.org/a', revision: v1}": "the path of line 2 lies in a",
		"repositories:\n- {path: ../a, url: 'https://example.org/a', revision: v1}":                                                         `2: "../a" is not a valid path`,
		"repositories:\n- {path: a.git/b, url: 'https://example.org/a', revision: v1}":                                                      "is not a valid path",
		"repositories:\n- {path: a, url: /srv/a, revision: v1}":                                                                             "its URL is a path",
		"repositories:\n- {path: a, url: ../a, revision: v1}":                                                                               "is relative",
		"repositories:\n- {path: a, url: 'https://example.org/a'}":                                                                          "names no revision",
		"files:\n- {path: a, url: 'file:///etc/passwd'}":                                                                                    "the URL of a is not that of a file",
		"files:\n- {path: a, url: 'https://example.org/a', sha256: abc}":                                                                    "64 hexadecimal digits",
		"folders:\n- {path: a, from: srv}":                                                                                                  "absolute path",
		"repos: []":                                                                                                                         "line 1: unknown key repos",
		"repositories: 3":                                                                                                                   "`3` is a number, where a list is expected",
	} {
		_, err := parse("repos.yaml", []byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

// site serves one file, whose transfers end after Cut bytes.
type site struct {
	text   string
	cut    int
	ranges []string
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	if s.cut == 0 {
		http.ServeContent(w, r, "", time.Unix(1700000000, 0), strings.NewReader(s.text))
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(s.text)))
	_, _ = io.WriteString(w, s.text[:s.cut])
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

func open(t *testing.T, dir, list string) *Mirror {
	t.Helper()
	name := filepath.Join(dir, "repos.yaml")
	require.NoError(t, os.WriteFile(name, []byte(list), 0o644))
	l, err := Read(name)
	require.NoError(t, err)
	return &Mirror{List: l, LockFile: LockName(name), Dir: filepath.Join(dir, "mirror"), HTTP: http.DefaultClient, Copier: submodule.Copier{Agent: "test/1"}}
}

// one is Sync of a list with one entry.
func one(t *testing.T, m *Mirror, o Options) Outcome {
	t.Helper()
	var got []Outcome
	require.NoError(t, m.Sync(t.Context(), o, func(x Outcome) { got = append(got, x) }))
	require.Len(t, got, 1)
	return got[0]
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	s := &site{text: strings.Repeat("one ", 1000)}
	web := httptest.NewServer(s)
	defer web.Close()
	list := "files:\n  - {path: a/x.tar, url: '" + web.URL + "/x.tar'}\n"
	m := open(t, dir, list)
	name := m.filePath("a/x.tar")

	out := one(t, m, Options{})
	require.Equal(t, Outcome{Kind: "files", Path: "a/x.tar", Change: copied, At: sum(s.text)}, out)
	require.Equal(t, unchanged, one(t, m, Options{}).Change)
	require.Len(t, s.ranges, 1, "what is here is not fetched again")

	// Replaced there: what is pinned is here, so nothing is requested; lost here, it is refused.
	first := s.text
	s.text = strings.Repeat("two ", 900)
	require.Equal(t, unchanged, one(t, m, Options{}).Change)
	require.NoError(t, os.Remove(name))
	out = one(t, m, Options{})
	require.Equal(t, failed, out.Change)
	require.Contains(t, out.Error, "is demanded")
	require.Contains(t, out.Hint, "--update a/x.tar")
	require.NoFileExists(t, name+".part")
	lock, err := ReadLock(m.LockFile)
	require.NoError(t, err)
	require.Equal(t, sum(first), lock.Files["a/x.tar"].SHA256)
	out = one(t, m, Options{Update: []string{"a/x.tar"}})
	require.Equal(t, updated, out.Change)
	require.Equal(t, sum(s.text), out.At)

	// An interrupted transfer continues where it was, because its checksum is known.
	require.NoError(t, os.Remove(name))
	s.cut = 100
	out = one(t, m, Options{})
	require.Equal(t, failed, out.Change)
	require.Contains(t, out.Error, "the transfer ended after 100 bytes")
	s.cut, s.ranges = 0, nil
	require.Equal(t, copied, one(t, m, Options{}).Change)
	require.Equal(t, []string{"bytes=100-"}, s.ranges)

	// A checksum in the list that is not the pinned one.
	m = open(t, dir, strings.Replace(list, "tar'}", "tar', sha256: "+sum("x")+"}", 1))
	require.Contains(t, one(t, m, Options{}).Error, "the list has the SHA-256")

	// The path is no longer in the list: the pin is removed.
	m = open(t, dir, "")
	require.NoError(t, m.Sync(t.Context(), Options{}, func(Outcome) { t.Fail() }))
	lock, err = ReadLock(m.LockFile)
	require.NoError(t, err)
	require.Empty(t, lock.Files)
	require.ErrorContains(t, m.Sync(t.Context(), Options{Update: []string{"nothing"}}, nil), `no repository, no file and no packages "nothing"`)
}

func get(t *testing.T, url string) (code int, body, etag string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text), res.Header.Get("ETag")
}

func TestHandler(t *testing.T) {
	dir := t.TempDir()
	web := httptest.NewServer(&site{text: "one"})
	defer web.Close()
	pool := filepath.Join(dir, "debian")
	require.NoError(t, os.MkdirAll(filepath.Join(pool, "pool"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(pool, "Release"), []byte("Suite: stable\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o644))
	require.NoError(t, os.Symlink("../secret", filepath.Join(pool, "out")))
	m := open(t, dir, "files:\n  - {path: x, url: '"+web.URL+"/x'}\nfolders:\n  - {path: debian, from: "+pool+"}\n")
	var said strings.Builder
	s := httptest.NewServer(m.Handler(zerolog.New(&said)))
	defer s.Close()
	code, _, _ := get(t, s.URL+"/files/x")
	require.Equal(t, 404, code, "not pinned yet")
	require.Equal(t, copied, one(t, m, Options{}).Change)
	code, body, etag := get(t, s.URL+"/files/x")
	require.Equal(t, []any{200, "one", `"` + sum("one") + `"`}, []any{code, body, etag})
	code, body, _ = get(t, s.URL+"/repos.lock")
	require.Equal(t, 200, code)
	require.Contains(t, body, sum("one"))
	for path, want := range map[string]int{
		"/folders/debian/Release": 200, "/folders/debian/out": 404, "/folders/debian/../secret": 404, "/folders/debian/%2e%2e/secret": 404,
		"/folders/other/x": 404, "/files/../secret": 404, "/git/x.git/info/refs": 404, "/git/../../secret": 404, "/": 404,
	} {
		code, body, _ := get(t, s.URL+path)
		if path == "/folders/debian/out" {
			require.GreaterOrEqual(t, code, 400, path) // os.Root reports this as an escape, not as a missing file
		} else {
			require.Equal(t, want, code, path)
		}
		require.NotContains(t, body, "secret", path)
	}
	require.Empty(t, said.String())
	// Damaged here: it is not served, also with the size and the time that it had.
	before, err := os.Stat(m.filePath("x"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(m.filePath("x"), []byte("two"), 0o644))
	require.NoError(t, os.Chtimes(m.filePath("x"), before.ModTime(), before.ModTime()))
	code, body, _ = get(t, s.URL+"/files/x")
	require.Equal(t, 500, code)
	require.NotContains(t, body, "two")
	require.Contains(t, said.String(), "damaged")
	var got []Outcome
	require.NoError(t, m.Verify(t.Context(), func(o Outcome) { got = append(got, o) }))
	require.Equal(t, failed, got[0].Change)
	require.Equal(t, copied, one(t, m, Options{}).Change, "the next sync repairs it")
	code, _, _ = get(t, s.URL+"/files/x")
	require.Equal(t, 200, code)
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, m.Sync(ended, Options{}, func(Outcome) {}), context.Canceled)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("repositories:\n  - {path: a/b, url: 'https://example.org/b.git', revision: v1, signed_by: x}\n"))
	f.Add([]byte("files: [{path: a, url: 'http://example.org/a'}]\nfolders: [{path: a, from: /a}]"))
	f.Add([]byte("repositories: &a [*a]"))
	f.Add([]byte("repositories: !!map\nfiles: ~\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := parse("repos.yaml", text)
		if err != nil {
			return
		}
		for _, r := range l.Repositories {
			require.Regexp(t, validPath, r.Path)
			require.NotContains(t, r.Path, "..")
		}
	})
}
