package mirror

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
)

func TestShown(t *testing.T) {
	require.Equal(t, "https://example.org/x%20y.tar", shown("https://example.org/x%20y.tar"))
	got := shown("https://me:secret@example.org/x.tar?token=secret")
	require.True(t, strings.HasPrefix(got, "https://…@example.org/x.tar?…"), got)
	require.NotContains(t, got, "secret")
	require.NotEqual(t, got, shown("https://me:secret@example.org/x.tar?token=other"), "another query is another address")
}

// A user, a password and a token of an address are in no lock, which is served to everybody, and in no message; a lock of an earlier release loses them.
func TestSecretsInAddresses(t *testing.T) {
	dir := t.TempDir()
	s := &site{text: "text"}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "me" || password != "hidden1" || r.URL.Query().Get("token") != "hidden2" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s.ServeHTTP(w, r)
	}))
	raw := strings.Replace(web.URL, "http://", "http://me:hidden1@", 1) + "/x.tar?token=hidden2"
	m := open(t, dir, "files:\n  - {path: x.tar, url: '"+raw+"'}\n")
	require.Equal(t, copied, one(t, m, Options{}).Change)
	text, err := os.ReadFile(m.LockFile)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hidden")

	old, err := ReadLock(m.LockFile)
	require.NoError(t, err)
	pin := old.Files["x.tar"]
	pin.URL = raw
	old.Files["x.tar"] = pin
	require.NoError(t, old.write(m.LockFile))
	require.Equal(t, unchanged, one(t, m, Options{}).Change, "the pin of an earlier release counts")
	text, err = os.ReadFile(m.LockFile)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hidden")

	web.Close()
	require.NoError(t, os.Remove(m.filePath("x.tar")))
	out := one(t, m, Options{})
	require.Equal(t, failed, out.Change)
	require.NotContains(t, out.Error+out.Hint, "hidden")
	_, err = parse("repos.yaml", []byte("files:\n- {path: a, url: 'ftp://me:hidden1@example.org/a'}"))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hidden")
}

// Two syncs in one folder would write the same files: the second is refused, and pins that another sync of the list made meanwhile stay.
func TestTwoSyncs(t *testing.T) {
	dir := t.TempDir()
	begun, goOn := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(begun)
			<-goOn
		}
		_, _ = w.Write([]byte(r.URL.Path))
	}))
	defer web.Close()
	list := "files:\n  - {path: slow, url: '" + web.URL + "/slow'}\n  - {path: fast, url: '" + web.URL + "/fast'}\n"
	first := open(t, dir, list)
	ended := make(chan error, 1)
	go func() { ended <- first.Sync(t.Context(), Options{Jobs: 1}, func(Outcome) {}) }()
	<-begun
	second := open(t, dir, list)
	err := second.Sync(t.Context(), Options{}, func(Outcome) { t.Error("it works") })
	require.Equal(t, fault.Busy, fault.KindOf(err), "%v", err)

	elsewhere := open(t, dir, strings.ReplaceAll(list, "/slow'", "/other'"))
	elsewhere.Dir = filepath.Join(dir, "elsewhere")
	require.NoError(t, elsewhere.Sync(t.Context(), Options{}, func(o Outcome) { require.Equal(t, copied, o.Change) }))
	close(goOn)
	require.NoError(t, <-ended)
	lock, err := ReadLock(first.LockFile)
	require.NoError(t, err)
	require.Equal(t, sum("/slow"), lock.Files["slow"].SHA256, "the last one's pin")
	require.Equal(t, sum("/fast"), lock.Files["fast"].SHA256)
}

// The beginning of a file that an earlier attempt left is of another version, or damaged: the file is fetched whole before anything is said about it.
func TestDamagedBeginning(t *testing.T) {
	dir := t.TempDir()
	s := &site{text: strings.Repeat("text ", 100)}
	web := httptest.NewServer(s)
	defer web.Close()
	m := open(t, dir, "files:\n  - {path: x.tar, url: '"+web.URL+"/x.tar', sha256: "+sum(s.text)+"}\n")
	require.NoError(t, os.MkdirAll(filepath.Dir(m.filePath("x.tar")), 0o755))
	for _, left := range []string{"garbage", strings.Repeat("g", 1000), strings.Repeat("g", 500)} {
		require.NoError(t, os.WriteFile(m.filePath("x.tar")+".part", []byte(left), 0o644))
		require.Equal(t, copied, one(t, m, Options{}).Change)
		require.NoError(t, os.Remove(m.filePath("x.tar")))
	}
}

// A lock that was changed by hand pins nothing else than what was copied.
func TestChangedLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "repos.lock")
	hash := strings.Repeat("1", 40)
	good := LockedRepository{URL: "https://example.org/a", Revision: "v1", Ref: "refs/tags/v1", Object: hash, Commit: hash}
	for what, change := range map[string]func(*LockedRepository){
		"":             func(*LockedRepository) {},
		"another ref":  func(r *LockedRepository) { r.Ref = "refs/heads/other" },
		"no ref":       func(r *LockedRepository) { r.Ref = "" },
		"HEAD":         func(r *LockedRepository) { r.Ref = "HEAD" },
		"out of refs/": func(r *LockedRepository) { r.Revision, r.Ref = "../../x", "refs/heads/../../x" },
		"no hash":      func(r *LockedRepository) { r.Commit = "1" },
		"a hash":       func(r *LockedRepository) { r.Revision = hash },
	} {
		pin := good
		change(&pin)
		l := &Lock{Version: lockVersion, Repositories: map[string]LockedRepository{"a": pin}}
		require.NoError(t, l.write(name))
		_, err := ReadLock(name)
		if what == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "the pin of a is not complete, or was changed", what)
		}
	}
}
