package container

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

func TestAddresses(t *testing.T) {
	s := Store{Dir: t.TempDir(), FS: vfs.OS{}}
	small := netip.MustParsePrefix("10.0.0.1/29") // 10.0.0.2 to 10.0.0.6
	for i, want := range []string{"10.0.0.2", "10.0.0.3", "10.0.0.4"} {
		c, err := s.Add(Container{Name: string(rune('a' + i))}, small)
		require.NoError(t, err)
		require.Equal(t, want+"/29", c.Address.String())
	}
	// One that is named, and one that somebody has.
	c, err := s.Add(Container{Name: "named", Address: netip.MustParsePrefix("10.0.0.6/32")}, small)
	require.NoError(t, err)
	require.Equal(t, "10.0.0.6/29", c.Address.String())
	for _, a := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.0", "10.0.0.7", "10.0.0.8"} {
		_, err := s.Add(Container{Name: "x", Address: netip.MustParsePrefix(a + "/32")}, small)
		require.Equal(t, fault.Refused, fault.KindOf(err), a)
	}
	_, err = s.Add(Container{Name: "a"}, small)
	require.ErrorContains(t, err, "there is a container a already")
	_, err = s.Add(Container{Name: "last"}, small)
	require.NoError(t, err)
	_, err = s.Add(Container{Name: "more"}, small)
	require.ErrorContains(t, err, "no address left")
	// What is destroyed gives its address back; a machine of its own needs none.
	require.NoError(t, os.RemoveAll(s.Folder("b")))
	c, err = s.Add(Container{Name: "more"}, small)
	require.NoError(t, err)
	require.Equal(t, "10.0.0.3/29", c.Address.String())
	c, err = s.Add(Container{Name: "bare", Target: "root@host"}, small)
	require.NoError(t, err)
	require.False(t, c.Address.IsValid())
}

func TestStore(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "deep", "containers"), FS: vfs.OS{}}
	list, err := s.List()
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = s.Get("web1")
	require.Contains(t, fault.HintOf(err), "corpus-git container create web1")
	require.NoError(t, s.Put(Container{Name: "web1", Driver: "nspawn"}))
	_, err = s.Get("web2")
	require.Contains(t, fault.HintOf(err), "did you mean  web1 ?")
	// What a destroyed one leaves for a moment is none.
	require.NoError(t, os.MkdirAll(s.Folder("gone.trash"), 0o700))
	require.NoError(t, os.MkdirAll(s.Folder("half"), 0o700))
	list, err = s.List()
	require.NoError(t, err)
	require.Len(t, list, 1)
	for _, name := range []string{"", "Web", "a_b", "../a", "a.b", "-a", "a-", "a234567890123456789012345678901234"} {
		_, err := s.Get(name)
		require.Equal(t, fault.Usage, fault.KindOf(err), name)
	}

	unlock, err := s.Lock("web1")
	require.NoError(t, err)
	_, err = s.Lock("web1")
	require.Equal(t, fault.Busy, fault.KindOf(err))
	other, err := s.Lock("web2")
	require.NoError(t, err)
	other()
	unlock()
	unlock, err = s.Lock("web1")
	require.NoError(t, err)
	unlock()
}

func TestLimits(t *testing.T) {
	require.NoError(t, Limits{}.Check())
	require.NoError(t, Limits{Memory: 64 << 20, CPUs: 0.5}.Check())
	require.Error(t, Limits{Memory: 1 << 20}.Check())
	require.Error(t, Limits{CPUs: -1}.Check())
	require.Error(t, Limits{CPUs: 0.001}.Check())
}
