package access_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/access"
	"corpus-git/project"
)

func newSigner(t *testing.T) ssh.Signer {
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	s, err := ssh.NewSignerFromKey(priv)
	require.NoError(t, err)
	return s
}

func authorizedLine(k ssh.PublicKey) string {
	return string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(k)))
}

func TestCertificates(t *testing.T) {
	s, _, clock := open(t)
	ctx := t.Context()
	root := access.Local("root")
	for _, n := range []string{"marie", "paul", "gone"} {
		_, err := s.AddPrincipal(ctx, root, access.Principal{Name: n, Kind: access.Person, Disabled: n == "gone"})
		require.NoError(t, err)
	}
	require.NoError(t, s.Grant(ctx, root, "app", "marie", project.Deploy))
	ca, other := newSigner(t), newSigner(t)
	require.NoError(t, s.SetTrust([]string{authorizedLine(ca.PublicKey())}, ""))
	make := func(by ssh.Signer, change func(*ssh.Certificate)) *ssh.Certificate {
		c := &ssh.Certificate{Key: newSigner(t).PublicKey(), CertType: ssh.UserCert, KeyId: "id", Serial: 7, ValidPrincipals: []string{"marie"},
			ValidAfter: uint64(clock.t.Unix() - 60), ValidBefore: uint64(clock.t.Unix() + 3600)}
		change(c)
		require.NoError(t, c.SignCert(rand.Reader, by))
		return c
	}
	options := func(o map[string]string) func(*ssh.Certificate) {
		return func(c *ssh.Certificate) { c.CriticalOptions = o }
	}
	named := func(names ...string) func(*ssh.Certificate) {
		return func(c *ssh.Certificate) { c.ValidPrincipals = names }
	}
	for _, c := range []struct {
		name string
		cert *ssh.Certificate
		user string
		who  string // "" is nobody
	}{
		{"good", make(ca, func(*ssh.Certificate) {}), "deploy", "marie"},
		{"another CA", make(other, func(*ssh.Certificate) {}), "marie", ""},
		{"of a host", make(ca, func(c *ssh.Certificate) { c.CertType = ssh.HostCert }), "marie", ""},
		{"not yet", make(ca, func(c *ssh.Certificate) { c.ValidAfter = uint64(clock.t.Unix() + 1) }), "marie", ""},
		{"no longer", make(ca, func(c *ssh.Certificate) { c.ValidBefore = uint64(clock.t.Unix()) }), "marie", ""},
		{"for ever", make(ca, func(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity }), "marie", "marie"},
		{"names nobody", make(ca, named()), "marie", ""},
		{"names a stranger", make(ca, named("eve")), "marie", ""},
		{"names who is disabled", make(ca, named("gone")), "gone", ""},
		{"names two, and neither is in front of the @", make(ca, named("marie", "paul")), "deploy", ""},
		{"names two, and one is in front of the @", make(ca, named("marie", "paul")), "paul", "paul"},
		{"in front of the @ is one that it does not name", make(ca, named("marie")), "paul", "marie"},
		{"force-command", make(ca, options(map[string]string{"force-command": "true"})), "marie", ""},
		{"an unknown critical option", make(ca, options(map[string]string{"x@example.org": ""})), "marie", ""},
		{"from here", make(ca, options(map[string]string{"source-address": "198.51.100.0/24,192.0.2.1"})), "marie", "marie"},
		{"from elsewhere", make(ca, options(map[string]string{"source-address": "198.51.100.0/24"})), "marie", ""},
		{"from nowhere", make(ca, options(map[string]string{"source-address": ""})), "marie", ""},
		{"a fault in the addresses", make(ca, options(map[string]string{"source-address": "192.0.2.1,nonsense"})), "marie", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			who, ok, err := s.Identify(ctx, access.Offer{Key: c.cert, User: c.user, From: "192.0.2.1:5", Proven: true})
			require.NoError(t, err)
			require.Equal(t, c.who != "", ok)
			require.Equal(t, c.who, who.Name)
			if !ok {
				return
			}
			can, err := s.Can(ctx, who, "app", project.Deploy)
			require.NoError(t, err)
			require.Equal(t, c.who == "marie", can)
		})
	}
	forged := make(ca, func(*ssh.Certificate) {})
	forged.ValidPrincipals = []string{"paul"}
	_, ok, err := s.Identify(ctx, access.Offer{Key: forged, User: "paul", From: "192.0.2.1:5"})
	require.NoError(t, err)
	require.False(t, ok, "what is signed is what counts")

	// An open session ends with its certificate.
	who, ok, err := s.Identify(ctx, access.Offer{Key: make(ca, func(*ssh.Certificate) {}), User: "marie", From: "192.0.2.1:5", Proven: true})
	require.NoError(t, err)
	require.True(t, ok)
	clock.t = clock.t.Add(time.Hour)
	valid, err := s.Valid(ctx, who)
	require.NoError(t, err)
	require.False(t, valid)
	// So does one whose CA is no longer trusted.
	who, ok, err = s.Identify(ctx, access.Offer{Key: make(ca, func(*ssh.Certificate) {}), User: "marie", From: "192.0.2.1:5", Proven: true})
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, s.SetTrust(nil, ""))
	valid, err = s.Valid(ctx, who)
	require.NoError(t, err)
	require.False(t, valid)
}

// Whatever ssh-keygen -k can write is understood: serials, lists and ranges of them, key IDs, keys, hashes of keys, certificates of any CA.
func TestRevocations(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	require.NoError(t, err, "ssh-keygen is needed")
	dir := t.TempDir()
	ca := newSigner(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.pub"), ssh.MarshalAuthorizedKey(ca.PublicKey()), 0o600))
	key, plain := newSigner(t).PublicKey(), newSigner(t).PublicKey()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.pub"), ssh.MarshalAuthorizedKey(key), 0o600))
	cert := func(serial uint64, id string, k ssh.PublicKey) *ssh.Certificate {
		c := &ssh.Certificate{Key: k, CertType: ssh.UserCert, KeyId: id, Serial: serial, ValidPrincipals: []string{"marie"}, ValidBefore: ssh.CertTimeInfinity}
		require.NoError(t, c.SignCert(rand.Reader, ca))
		return c
	}
	all := map[string]ssh.PublicKey{
		"key": key, "plain": plain, "cert of key": cert(1, "a", key), "5": cert(5, "b", plain), "50": cert(50, "c", plain), "1000000": cert(1_000_000, "d", plain), "0": cert(0, "zero", plain),
	}
	hash := "hash: " + access.Fingerprint(key) + "\n"
	for _, c := range []struct {
		name, spec string
		args       []string
		revoked    []string
	}{
		{"nothing", "", nil, nil},
		{"a key", "key: " + authorizedLine(key) + "\n", nil, []string{"key", "cert of key"}},
		{"its SHA-1", "sha1: " + authorizedLine(key) + "\n", nil, []string{"key", "cert of key"}},
		{"its SHA-256", "sha256: " + authorizedLine(key) + "\n", nil, []string{"key", "cert of key"}},
		{"its hash", hash, nil, []string{"key", "cert of key"}},
		{"a serial", "serial: 5\n", []string{"-s", "ca.pub"}, []string{"5"}},
		{"a range", "serial: 5-60\n", []string{"-s", "ca.pub"}, []string{"5", "50"}},
		{"many serials", "serial: 5\nserial: 7\nserial: 9\nserial: 48\nserial: 50\nserial: 52\nserial: 1000000\n", []string{"-s", "ca.pub"}, []string{"5", "50", "1000000"}},
		{"an ID", "id: c\nid: zero\n", []string{"-s", "ca.pub"}, []string{"50", "0"}},
		{"a serial of any CA", "serial: 5\n", []string{"-s", "none"}, []string{"5"}},
		{"the CA", "key: " + authorizedLine(ca.PublicKey()) + "\n", nil, []string{"cert of key", "5", "50", "1000000", "0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "spec"), []byte(c.spec), 0o600))
			cmd := exec.Command(keygen, append(append([]string{"-q", "-k", "-f", "krl"}, c.args...), "spec")...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			holds(t, filepath.Join(dir, "krl"), ca, all, c.revoked)
		})
	}
	list := filepath.Join(dir, "list")
	require.NoError(t, os.WriteFile(list, []byte("# lost\n\n"+authorizedLine(key)+" marie@laptop\n"), 0o600))
	holds(t, list, ca, all, []string{"key", "cert of key"})
}

// holds reports what a file revokes.
func holds(t *testing.T, file string, ca ssh.Signer, all map[string]ssh.PublicKey, want []string) {
	s, _, _ := open(t)
	ctx := t.Context()
	_, err := s.AddPrincipal(ctx, access.Local("root"), access.Principal{Name: "marie", Kind: access.Person})
	require.NoError(t, err)
	for _, n := range []string{"key", "plain"} {
		_, err := s.AddKeyTo(ctx, access.Local("root"), access.NewKey{Name: n, Principal: "marie", Text: ssh.MarshalAuthorizedKey(all[n])})
		require.NoError(t, err)
	}
	open := map[string]access.Identity{}
	require.NoError(t, s.SetTrust([]string{authorizedLine(ca.PublicKey())}, ""))
	for name, k := range all {
		who, ok, err := s.Identify(ctx, access.Offer{Key: k, User: "marie", From: "192.0.2.1:5", Proven: true})
		require.NoError(t, err)
		require.True(t, ok, name)
		open[name] = who
	}
	require.NoError(t, s.SetTrust([]string{authorizedLine(ca.PublicKey())}, file))
	for name, k := range all {
		_, ok, err := s.Identify(ctx, access.Offer{Key: k, User: "marie", From: "192.0.2.1:5"})
		require.NoError(t, err)
		valid, err := s.Valid(ctx, open[name])
		require.NoError(t, err)
		require.Equal(t, ok, valid, "a session that is open, too: %s", name)
		require.Equal(t, !contains(want, name), ok, name)
	}
}

func contains(all []string, s string) bool {
	for _, a := range all {
		if a == s {
			return true
		}
	}
	return false
}

// While the file of revoked keys can't be read, or is damaged, nobody knows who may log in: nobody does, as with sshd.
func TestRevocationsFailClosed(t *testing.T) {
	s, _, _ := open(t)
	ctx := t.Context()
	k, text := newKey(t)
	_, err := s.AddKey(ctx, access.Local("root"), "marie", text, true)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "revoked")
	require.Error(t, s.SetTrust(nil, file), "a file that is not there")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, s.SetTrust(nil, file))
	in := func() bool {
		_, ok, _ := s.Identify(ctx, access.Offer{Key: k, User: "x", From: "192.0.2.1:5"})
		return ok
	}
	require.True(t, in())
	for _, bad := range []string{"nonsense\n", "SSHKRL\n\x00\x00\x00\x00\x01short", "SSHKRL\n\x00\x00\x00\x00\x02"} {
		require.NoError(t, os.WriteFile(file, []byte(bad), 0o600))
		require.False(t, in(), bad)
		require.Error(t, s.SetTrust(nil, file))
	}
	require.NoError(t, os.Remove(file))
	require.False(t, in())
	require.NoError(t, os.WriteFile(file, []byte("# none\n"), 0o600))
	require.True(t, in())
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.False(t, in(), "the file is read again when it changes")
}

func FuzzKRL(f *testing.F) {
	f.Add([]byte("SSHKRL\n\x00\x00\x00\x00\x01"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		s, _, _ := open(t)
		file := filepath.Join(dir, "krl")
		require.NoError(t, os.WriteFile(file, append([]byte("SSHKRL\n\x00"), text...), 0o600))
		_ = s.SetTrust(nil, file) // it ends, and says what is wrong
	})
}
