package containers

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/container"
	"corpus-git/internal/vfs"
)

// The folder of containers may be a link to another disk.
func TestLinkedFolder(t *testing.T) {
	at := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(at, "disk"), 0o700))
	dir := filepath.Join(at, "containers")
	require.NoError(t, os.Symlink("disk", dir))
	m := &containers{dir: dir}
	mgr, err := m.open(false)
	require.NoError(t, err)
	require.NoError(t, chooseNetwork(mgr, "10.9.0.1/24", "linked"))
	n, err := mgr.Network.Get()
	require.NoError(t, err)
	require.Equal(t, "linked", n.Bridge)
	require.NoError(t, mgr.Store.Put(container.Container{Name: "web1", Driver: "nspawn"}))
	_, err = Keys(mgr.Store.Dir).Make("web1")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(at, "disk", "credentials.key"))
}

// A node of the server is removed with the container that it was made of, and not if another machine has that name.
func TestForget(t *testing.T) {
	mgr := container.Manager{Store: container.Store{Dir: t.TempDir(), FS: vfs.OS{}}}
	require.NoError(t, mgr.Store.Put(container.Container{Name: "web1", Driver: "nspawn", Ready: true}))
	require.NoError(t, os.WriteFile(filepath.Join(mgr.Store.Folder("web1"), "init.json"), []byte("{}"), 0o600))
	hosts := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(hosts, []byte("10.0.0.2 web1 # corpus-git\n"), 0o600))
	option, removed := "", 0
	var out strings.Builder
	m := &containers{Surroundings: Surroundings{Out: &out, Verb: func(_ context.Context, argv []string, w, _ io.Writer) (int, error) {
		switch argv[1] {
		case "show":
			_, err := io.WriteString(w, `{"name": "web1", "ssh_options": ["`+option+`"]}`)
			return 0, err
		case "remove":
			removed++
		}
		return 0, nil
	}}}
	option = "UserKnownHostsFile=/etc/ssh/known_hosts"
	require.NoError(t, m.forget(t.Context(), mgr, "web1", hosts, nil))
	require.Zero(t, removed)
	require.Contains(t, out.String(), "the node web1 of the server is another machine, and stays")
	option = "UserKnownHostsFile=" + filepath.Join(mgr.Store.Folder("web1"), "known_hosts")
	require.NoError(t, m.forget(t.Context(), mgr, "web1", hosts, nil))
	require.Equal(t, 1, removed)
	text, err := os.ReadFile(hosts)
	require.NoError(t, err)
	require.Empty(t, string(text))
}
