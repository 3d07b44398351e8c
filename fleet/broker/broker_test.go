package broker

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
)

// The NATS server accepts what Setup writes, which only its owner can read; a second Setup does not replace the keys.
func TestSetup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nats")
	file, err := Setup(dir, "tls://hub.example.org:4222")
	require.NoError(t, err)
	opts, err := server.ProcessConfigFile(file)
	require.NoError(t, err)
	require.Equal(t, 4222, opts.Port)
	require.NotNil(t, opts.AuthCallout)
	require.False(t, opts.JetStream)
	s, err := server.NewServer(opts)
	require.NoError(t, err)
	s.Shutdown()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 6)
	for _, e := range entries {
		fi, err := e.Info()
		require.NoError(t, err)
		require.EqualValues(t, 0o600, fi.Mode().Perm(), e.Name())
	}
	c, err := Load(dir)
	require.NoError(t, err)
	require.NotEmpty(t, c.CA)
	_, err = Setup(dir, "tls://hub.example.org:4222")
	require.Equal(t, fault.Refused, fault.KindOf(err))
	again, err := Load(dir)
	require.NoError(t, err)
	require.Equal(t, c, again)
	_, err = Load(t.TempDir())
	require.Equal(t, fault.Refused, fault.KindOf(err))
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"", "hub:4222", "nats://hub:4222", "tls://hub", "tls://:4222", "tls://u:p@hub:4222", "tls://hub:0", "tls://hub:x"} {
		_, _, err := Parse(bad)
		require.Equal(t, fault.Usage, fault.KindOf(err), bad)
	}
	host, port, err := Parse("tls://[::1]:4222")
	require.NoError(t, err)
	require.Equal(t, "::1 4222", host+" "+port)
}

// Only the holder of a key passes, and only for the nonce that it signed.
func TestProven(t *testing.T) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	name, err := nkeys.Encode(nkeys.PrefixByteUser, pub)
	require.NoError(t, err)
	account, err := nkeys.Encode(nkeys.PrefixByteAccount, pub)
	require.NoError(t, err)
	nonce := []byte("nonce")
	sig := base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, nonce))
	got, ok := proven(string(name), sig, nonce)
	require.True(t, ok)
	want, err := ssh.NewPublicKey(pub)
	require.NoError(t, err)
	require.Equal(t, want.Marshal(), got.Marshal())
	for _, bad := range []struct {
		name, sig string
		nonce     []byte
	}{{string(name), sig, []byte("other")}, {string(name), sig, nil}, {"", sig, nonce}, {string(account), sig, nonce}, {string(name), "", nonce}, {string(name), sig[1:], nonce}, {"U" + string(name), sig, nonce}} {
		_, ok := proven(bad.name, bad.sig, bad.nonce)
		require.False(t, ok)
	}
}
