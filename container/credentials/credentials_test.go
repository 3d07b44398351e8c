package credentials

import (
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh/agent"

	"corpus-git/internal/vfs"
)

func newStore(t *testing.T) Store {
	dir := t.TempDir()
	s := Store{KeyFile: filepath.Join(dir, "credentials.key"), Machines: filepath.Join(dir, "machines"), FS: vfs.OS{}}
	for _, name := range []string{"web1", "web2"} {
		require.NoError(t, os.MkdirAll(filepath.Join(s.Machines, name), 0o700))
	}
	return s
}

// A key is made once, is in no file that can be read without the other, and belongs to one machine.
func TestKeys(t *testing.T) {
	s := newStore(t)
	one, err := s.Make("web1")
	require.NoError(t, err)
	again, err := s.Make("web1")
	require.NoError(t, err)
	require.Equal(t, one.Marshal(), again.Marshal())
	two, err := s.Make("web2")
	require.NoError(t, err)
	require.NotEqual(t, one.Marshal(), two.Marshal())

	// A private key that was removed is replaced; the public one is known as the former one until it is forgotten, also if the command is killed between.
	former, err := s.Former("web2")
	require.NoError(t, err)
	require.Empty(t, former)
	before, err := os.ReadFile(s.Public("web2"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(s.sealed("web2")))
	three, err := s.Make("web2")
	require.NoError(t, err)
	require.NotEqual(t, two.Marshal(), three.Marshal())
	require.NoError(t, os.Remove(s.Public("web2")))
	_, err = s.Make("web2")
	require.NoError(t, err)
	former, err = s.Former("web2")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(before)), former)
	require.FileExists(t, s.Public("web2"))
	require.NoError(t, s.Forget("web2"))
	require.NoError(t, s.Forget("web2"))
	former, err = s.Former("web2")
	require.NoError(t, err)
	require.Empty(t, former)

	sealed, err := os.ReadFile(s.sealed("web1"))
	require.NoError(t, err)
	require.NotContains(t, string(sealed), "PRIVATE KEY")
	require.NotContains(t, string(sealed), "openssh-key")

	// The file of another machine, a damaged one, and one without the key that encrypts.
	require.NoError(t, os.WriteFile(s.sealed("web2"), sealed, 0o600))
	_, err = s.signer("web2")
	require.ErrorContains(t, err, "is damaged, or was encrypted with another key")
	require.NoError(t, os.WriteFile(s.sealed("web2"), sealed[:8], 0o600))
	_, err = s.Make("web2")
	require.ErrorContains(t, err, "is damaged")
	require.NoError(t, os.Remove(s.KeyFile))
	_, err = s.Make("web1")
	require.ErrorContains(t, err, s.KeyFile, "no other key is made in its place")
}

// The agent lists and signs, changes nothing, and takes the place of one that died.
func TestAgent(t *testing.T) {
	s := newStore(t)
	key, err := s.Make("web1")
	require.NoError(t, err)
	socket := filepath.Join(t.TempDir(), "s")
	dead, err := net.Listen("unix", socket)
	require.NoError(t, err)
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	a := &Agent{Store: s, Socket: socket}
	require.NoError(t, a.Ensure())
	require.NoError(t, a.Ensure())
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	info, err := os.Stat(socket)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	defer conn.Close()
	client := agent.NewClient(conn)
	list, err := client.List()
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "web1", list[0].Comment)
	data := make([]byte, 100)
	_, err = rand.Read(data)
	require.NoError(t, err)
	sig, err := client.Sign(key, data)
	require.NoError(t, err)
	require.NoError(t, key.Verify(data, sig))

	// One that was made meanwhile is known; one that is not there, or is not ours, is not.
	other, err := s.Make("web2")
	require.NoError(t, err)
	_, err = client.Sign(other, data)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(s.Machines, "web2")))
	_, err = client.Sign(other, data)
	require.Error(t, err)
	require.Error(t, client.RemoveAll())
	require.Error(t, client.Remove(key))
}
