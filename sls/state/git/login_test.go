package git

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
)

// argvs keeps the command lines of what runs.
type argvs struct {
	execx.Commander
	mu  sync.Mutex
	all []string
}

func (a *argvs) Run(ctx context.Context, c execx.Cmd) (execx.Status, error) {
	a.mu.Lock()
	a.all = append(a.all, strings.Join(c.Argv, " "))
	a.mu.Unlock()
	return a.Commander.Run(ctx, c)
}

// A server that asks for a password gets it; nobody else does: no command line, no output, no file of the clone, and no
// credential helper of the machine.
func TestGitLogsInOverHTTPS(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	const user, secret = "me", "tr0ub4dor 'x' $HOME /@"
	dir := t.TempDir()
	out, err := exec.Command("/bin/sh", "-ec", `cd "$0"; git init -q --bare -b master up.git; git -c user.name=t -c user.email=t@example.org clone -q up.git w 2>/dev/null
		cd w; echo one > f; git add f; git -c user.name=t -c user.email=t@example.org commit -q -m one; git push -q origin HEAD:master; git -C ../up.git update-server-info`, dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	files := http.FileServer(http.Dir(dir))
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, ok := r.BasicAuth(); !ok || u != user || p != secret {
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer srv.Close()
	ca, config, marker := filepath.Join(dir, "ca"), filepath.Join(dir, "config"), filepath.Join(dir, "marker")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	require.NoError(t, os.WriteFile(config, []byte("[credential]\n\thelper = \"!f() { cat >> "+marker+"; }; f\"\n"), 0o600))
	run := func(fun, target string, args ...any) (core.Return, string) {
		seen := &argvs{Commander: execx.OS{}}
		c := statetest.CallFor(t, "", fun, srv.URL+"/up.git", append([]any{"target", filepath.Join(dir, target)}, args...)...)
		c.Host.Exec = seen
		c.Host.Environ = append(c.Host.Environ, "GIT_SSL_CAINFO="+ca, "GIT_CONFIG_GLOBAL="+config, "GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.askPass", "GIT_CONFIG_VALUE_0=/bin/false")
		f, _ := core.NewTable(States).Lookup(fun)
		var said strings.Builder
		c.Output = func(_ bool, line string) { said.WriteString(line + "\n") }
		ret := f.Run(c)
		return ret, strings.Join(seen.all, "\n") + said.String() + ret.Comment + strings.Join(ret.Warnings, "\n")
	}
	for _, c := range []struct {
		fun, target string
		args        []any
		result      core.Tri
	}{
		{"git.latest", "a", []any{"https_user", user, "https_pass", secret}, core.True},
		{"git.latest", "a", []any{"https_user", user, "https_pass", secret, "rev", "master"}, core.True},
		{"git.latest", "b", []any{"https_user", user, "https_pass", secret, "mirror", true}, core.True},
		{"git.latest", "b", []any{"https_user", user, "https_pass", secret, "mirror", true}, core.True},
		{"git.cloned", "c", []any{"https_user", user, "https_pass", secret}, core.True},
		{"git.latest", "d", []any{"https_user", user, "https_pass", "other-secret"}, core.False},
		{"git.latest", "d", []any{"https_user", user}, core.False},
		{"git.latest", "d", []any{"https_pass", secret}, core.False},
		{"git.cloned", "d", nil, core.False},
	} {
		ret, said := run(c.fun, c.target, c.args...)
		require.Equal(t, c.result, ret.Result, "%s: %s", c.target, ret.Comment)
		require.NotContains(t, said, secret)
		require.NotContains(t, said, "other-secret")
		require.NotContains(t, ret.Comment+said, "tr0ub4dor")
	}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && p != marker {
			b, err := os.ReadFile(p)
			require.NoError(t, err)
			require.NotContains(t, string(b), "tr0ub4dor", p)
		}
		return err
	}))
	asked, err := os.ReadFile(marker) // by the one that has no user
	require.NoError(t, err)
	require.NotContains(t, string(asked), "secret")
	require.NotContains(t, string(asked), "tr0ub4dor")
	require.NotContains(t, string(asked), user)
}

// In a test run of a bare repository Salt puts a point after each letter of what it would do; these are its words.
func TestGitWouldFetchIntoABareRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	for _, name := range []string{"up", "bare"} {
		out, err := exec.Command("git", "init", "-q", "--bare", filepath.Join(dir, name)).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	target := filepath.Join(dir, "bare")
	ret := statetest.Do(t, States, true, "git.latest", filepath.Join(dir, "up"), "target", target, "bare", true)
	require.Equal(t, core.OKf("Repository %s is up-to-date\n\nChanges that would be made: Bare repository at %s would be fetched", target, target), ret)
	ret = statetest.Do(t, States, true, "git.latest", filepath.Join(dir, "none"), "target", target, "mirror", true)
	require.Equal(t, core.Would(nil, "Bare repository at %s would be fetched", target), ret)
}
