package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An index that leads out of the archive is refused before anything is fetched.
func TestReadRelease(t *testing.T) {
	sum := strings.Repeat("a", 64)
	read := func(lines string) (*release, error) {
		name := filepath.Join(t.TempDir(), "InRelease")
		require.NoError(t, os.WriteFile(name, []byte(lines), 0o600))
		return readRelease(name)
	}
	r, err := read("Suite: stable\nAcquire-By-Hash: yes\nMD5Sum:\n " + sum[:32] + " 1 main/binary-amd64/Packages.gz\nSHA256:\n " + sum + " 12 main/binary-amd64/Packages\n " + sum + " 3 main/binary-amd64/Packages.xz\nOther: x\n")
	require.NoError(t, err)
	require.True(t, r.byHash)
	p, ok := r.index("main/binary-amd64/Packages")
	require.True(t, ok)
	require.Equal(t, part{"main/binary-amd64/Packages.xz", sum, 3}, p)
	_, ok = r.index("main/binary-arm64/Packages")
	require.False(t, ok)
	for _, bad := range []string{" " + sum + " 1 ../../etc/passwd\n", " " + sum + " 1 /etc/passwd\n", " " + sum + " x main/Packages\n", " " + sum[1:] + " 1 main/Packages\n", " ../" + sum[3:] + " 1 main/Packages\n"} {
		_, err := read("SHA256:\n" + bad)
		require.ErrorContains(t, err, "not valid", bad)
	}
}

// What apt-get prints of a forged archive leads nowhere else either.
func TestURIs(t *testing.T) {
	c := Copy{Work: "/m/debian.part"}
	got, err := c.uris(Source{}, []byte("'copy:/m/debian.part/pool/main/g/g%2b%2b_1_amd64.deb' g++_1_amd64.deb 12 SHA256:ab\n\n"))
	require.NoError(t, err)
	require.Equal(t, []part{{"pool/main/g/g++_1_amd64.deb", "ab", 12}}, got)
	for _, bad := range []string{"'copy:/m/debian.part/../../x.deb' x.deb 1 SHA256:ab", "'copy:/m/debian.part/x.deb' x.deb 1 MD5Sum:ab", "'copy:/m/debian.part/x.deb'", "'http://x/x.deb' x.deb 1"} {
		_, err := c.uris(Source{}, []byte(bad))
		require.ErrorContains(t, err, "cannot be copied", bad)
	}
}
