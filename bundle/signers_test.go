package bundle_test

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/bundle"
	"corpus-git/internal/fault"
)

func newKey(t *testing.T) ssh.PublicKey {
	t.Helper()
	pub, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	k, err := ssh.NewPublicKey(pub)
	require.NoError(t, err)
	return k
}

// A key is forgotten by its text or its fingerprint, everything else in the file stays as it was written; the machine's own key cannot be.
func TestForget(t *testing.T) {
	own, one, two := newKey(t), newKey(t), newKey(t)
	line := func(k ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k))) }
	s := bundle.Signers{Path: filepath.Join(t.TempDir(), "signers"), Own: own}
	_, changed, err := s.Forget(line(one))
	require.NoError(t, err)
	require.False(t, changed, "there is no file yet")

	text := "# of the old hub\n" + line(one) + " hub\n\n" + line(two) + "\n"
	require.NoError(t, os.WriteFile(s.Path, []byte(text), 0o600))
	keys, err := s.Keys()
	require.NoError(t, err)
	require.Equal(t, []string{line(one), line(two)}, keys)
	fp, changed, err := s.Forget(line(one) + " another comment")
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, ssh.FingerprintSHA256(one), fp)
	got, err := os.ReadFile(s.Path)
	require.NoError(t, err)
	require.Equal(t, "# of the old hub\n\n"+line(two)+"\n", string(got))
	require.Equal(t, fault.Refused, fault.KindOf(s.Trusted(one)))
	require.NoError(t, s.Trusted(two))

	_, changed, err = s.Forget(ssh.FingerprintSHA256(two))
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, fault.Refused, fault.KindOf(s.Trusted(two)))
	_, changed, err = s.Forget(ssh.FingerprintSHA256(two))
	require.NoError(t, err)
	require.False(t, changed)
	_, _, err = s.Forget(line(own))
	require.Equal(t, fault.Refused, fault.KindOf(err))
	_, _, err = s.Forget("no key")
	require.Equal(t, fault.Usage, fault.KindOf(err))
}
