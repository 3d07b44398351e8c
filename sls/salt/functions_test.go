package salt

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
)

// kept keeps passwords in memory.
type kept map[string]string

func (k kept) Get(key string) (string, bool, error) { v, ok := k[key]; return v, ok, nil }

func (k kept) Put(key, secret string) (string, error) { k[key] = secret; return secret, nil }

// serving serves functions from a directory whose path is longer than that of a socket may be.
func serving(t *testing.T, passwords sls.Passwords) (ask func(question string) string, conn func() net.Conn, stop func()) {
	return servingInput(t, &sls.Input{Host: host.New(execx.OS{}), Grains: py.NewDict("os", "Debian"), Pillar: py.NewDict(), Cfg: py.NewDict("name", "app"), Passwords: passwords})
}

func servingInput(t *testing.T, in *sls.Input) (ask func(question string) string, conn func() net.Conn, stop func()) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	stop, err := serveFunctions(t.Context(), in, dir)
	require.NoError(t, err)
	t.Cleanup(stop)
	folder, err := os.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = folder.Close() })
	conn = func() net.Conn {
		c, err := new(net.Dialer).DialContext(t.Context(), "unix", "/proc/self/fd/"+strconv.Itoa(int(folder.Fd()))+"/"+functionSocket)
		require.NoError(t, err)
		return c
	}
	ask = func(question string) string {
		c := conn()
		defer func() { _ = c.Close() }()
		_, err := c.Write([]byte(question))
		require.NoError(t, err)
		line, err := bufio.NewReader(c).ReadString('\n')
		require.NoError(t, err)
		return strings.TrimSuffix(line, "\n")
	}
	return ask, conn, stop
}

func TestFunctionsForSalt(t *testing.T) {
	passwords := kept{"db": "stored"}
	ask, _, _ := serving(t, passwords)
	for question, want := range map[string]string{
		`{"function": "mc_utils.hash", "args": ["text"], "kwargs": {"typ": "sha1"}}`:      `{"value": "372ea08cab33e71c02c651dbc83a474d32c676ea"}`,
		`{"function": "mc_utils.generate_stored_password", "args": ["db"], "kwargs": {}}`: `{"value": "stored"}`,
		`{"function": "mc_utils.hash", "args": ["text"], "kwargs": {"typ": "none"}}`:      `{"error": "ValueError: unknown hash \"none\": md5, sha1, sha256 or sha512"}`,
		`{"function": "cmd.run", "args": ["touch /nowhere"], "kwargs": {}}`:               `{"error": "not a call of a function of makina-states"}`,
		`{"function": "mc_none.settings", "args": [], "kwargs": {}}`:                      `{"error": "salt has no function 'mc_none.settings'"}`,
		`[1]`: `{"error": "not a call of a function of makina-states"}`,
	} {
		require.Equal(t, want, ask(question+"\n"), question)
	}
	require.Contains(t, ask(`{"function": "mc_utils.generate_stored_password", "args": ["new"], "kwargs": {"length": 20}}`+"\n"), passwords["new"])
	require.Len(t, passwords["new"], 20)
	require.Contains(t, ask("not JSON\n"), `{"error": `)
}

// TestFunctionsEndWithTheStep: who asks nothing does not keep a step from ending.
func TestFunctionsEndWithTheStep(t *testing.T) {
	ask, conn, stop := serving(t, nil)
	require.Contains(t, ask(`{"function": "mc_nodetypes.is_lxc", "args": [], "kwargs": {}}`+"\n"), "false")
	silent := conn()
	defer func() { _ = silent.Close() }()
	stop()
	_, err := silent.Read(make([]byte, 1))
	require.Error(t, err)
}

// TestModulesOfTheRootsComeFirst: a module that the file roots bring is not hidden by the one here.
func TestModulesOfTheRootsComeFirst(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "_modules"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "_modules", "mc_utils.py"), []byte("def hash(x):\n    return x\n"), 0o600))
	c := &Call{Dir: t.TempDir()}
	require.NoError(t, c.Configure(&sls.Input{Host: host.New(execx.OS{}), Roots: fileroot.Roots{fileroot.OnDisk(root)}}))
	require.NoFileExists(t, filepath.Join(c.Dir, "modules", "modules", "mc_utils.py"))
	require.FileExists(t, filepath.Join(c.Dir, "modules", "modules", "mc_nginx.py"))
}

// The state corpus.wait of Salt waits in the server, and holds up nobody else who asks; its end ends with the step.
func TestSaltWaits(t *testing.T) {
	began, goOn := make(chan string, 2), make(chan struct{})
	ask, conn, stop := servingInput(t, &sls.Input{
		Host: host.New(execx.OS{}), Grains: py.NewDict(), Pillar: py.NewDict(), Cfg: py.NewDict("name", "app"),
		Wait: func(ctx context.Context, id string, args *py.Dict, _ func() sls.Done) (string, error) {
			began <- id + " " + py.Str(args)
			select {
			case <-ctx.Done():
				return "", context.Cause(ctx)
			case <-goOn:
				return "all have come", nil
			}
		},
	})
	answers := make(chan string, 2)
	wait := func() {
		c := conn()
		defer func() { _ = c.Close() }()
		_, _ = io.WriteString(c, `{"function": "corpus.wait", "args": ["workers"], "kwargs": {"count": 2}}`+"\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		answers <- line
	}
	go wait()
	require.Equal(t, "workers {'count': 2}", <-began)
	require.Contains(t, ask(`{"function": "mc_none.settings", "args": [], "kwargs": {}}`+"\n"), `"error"`)
	goOn <- struct{}{}
	require.Equal(t, `{"value": "all have come"}`+"\n", <-answers)
	go wait()
	<-began
	stop()
	require.NotContains(t, <-answers, "value")
}
