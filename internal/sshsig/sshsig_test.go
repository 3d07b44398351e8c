package sshsig_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/sshsig"
)

// keygen runs ssh-keygen in a folder.
func keygen(t testing.TB, dir, stdin string, args ...string) []byte {
	c := exec.Command("ssh-keygen", args...)
	c.Dir, c.Stdin = dir, strings.NewReader(stdin)
	var told bytes.Buffer
	c.Stderr = &told
	out, err := c.Output()
	require.NoError(t, err, told.String())
	return out
}

func publicKey(t testing.TB, file string) ssh.PublicKey {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	k, _, _, _, err := ssh.ParseAuthorizedKey(text)
	require.NoError(t, err)
	return k
}

// Signatures by ssh-keygen are verified, with each kind of key; those of another message, in another namespace or with a changed byte are not.
func TestSignaturesOfSSHKeygen(t *testing.T) {
	dir := t.TempDir()
	for name, kind := range map[string][]string{"ed": {"-t", "ed25519"}, "ec": {"-t", "ecdsa", "-b", "384"}, "rsa": {"-t", "rsa", "-b", "2048"}} {
		keygen(t, dir, "", append([]string{"-q", "-N", "", "-f", name}, kind...)...)
		text := keygen(t, dir, "hello\n", "-Y", "sign", "-n", "git", "-f", name)
		s, err := sshsig.Parse(text)
		require.NoError(t, err, name)
		require.Equal(t, publicKey(t, filepath.Join(dir, name+".pub")).Marshal(), s.Key.Marshal())
		require.NoError(t, s.Verify([]byte("hello\n"), "git"), name)
		require.ErrorIs(t, s.Verify([]byte("hello"), "git"), sshsig.ErrWrong)
		require.ErrorIs(t, s.Verify([]byte("hello\n"), "file"), sshsig.ErrWrong)
		other, err := sshsig.Parse(keygen(t, dir, "hello\n", "-Y", "sign", "-n", "file", "-f", name))
		require.NoError(t, err)
		require.ErrorContains(t, other.Verify([]byte("hello\n"), "git"), `made for "file"`)
	}
}

func TestParseRefuses(t *testing.T) {
	dir := t.TempDir()
	keygen(t, dir, "", "-q", "-N", "", "-t", "ed25519", "-f", "k")
	good := string(keygen(t, dir, "x", "-Y", "sign", "-n", "git", "-f", "k"))
	for name, text := range map[string]string{
		"empty": "", "no end": strings.Replace(good, sshsig.End, "", 1), "behind": good + "x", "twice": good + good, "base64": strings.Replace(good, "U1NIU0", "!!!!!!", 1),
		"magic": strings.Replace(good, "U1NIU0", "AAAAAA", 1), "cut": sshsig.Begin + "\nU1NIU0lH\n" + sshsig.End + "\n", "long": sshsig.Begin + "\n" + strings.Repeat("A", sshsig.MaxBytes) + "\n" + sshsig.End,
		"nothing": sshsig.Begin + "\n" + sshsig.End, "pgp": "-----BEGIN PGP SIGNATURE-----\n",
	} {
		_, err := sshsig.Parse([]byte(text))
		require.ErrorIs(t, err, sshsig.ErrFormat, name)
	}
}

// wire is the body of a signature (PROTOCOL.sshsig, 2).
type wire struct {
	Version   uint32
	Key       []byte
	Namespace string
	Reserved  []byte
	Hash      string
	Signature []byte
}

// A message hashed by SHA-1 is not verified.
func TestWeakHash(t *testing.T) {
	pub, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	k, err := ssh.NewPublicKey(pub)
	require.NoError(t, err)
	w := wire{1, k.Marshal(), "git", nil, "sha1", ssh.Marshal(ssh.Signature{Format: ssh.KeyAlgoED25519, Blob: make([]byte, 64)})}
	s, err := sshsig.Parse(armor(append([]byte("SSHSIG"), ssh.Marshal(w)...)))
	require.NoError(t, err)
	require.ErrorContains(t, s.Verify([]byte("x"), "git"), `hash "sha1"`)
}

// A security key signs when somebody touches it; a signature that states that nobody did is not valid (PROTOCOL.u2f).
func TestSecurityKeys(t *testing.T) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key := ssh.Marshal(struct {
		Name string
		Key  []byte
		App  string
	}{ssh.KeyAlgoSKED25519, pub, "ssh:"})
	sum := sha256.Sum256([]byte("x"))
	signed := append([]byte("SSHSIG"), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{"git", "", "sha256", sum[:]})...)
	for flags, want := range map[byte]string{0: "nobody touched", 1: "", 5: ""} {
		app, msg := sha256.Sum256([]byte("ssh:")), sha256.Sum256(signed)
		rest := []byte{flags, 0, 0, 0, 7}
		blob := ed25519.Sign(priv, slices.Concat(app[:], rest, msg[:]))
		w := wire{1, key, "git", nil, "sha256", append(ssh.Marshal(struct {
			Format string
			Blob   []byte
		}{ssh.KeyAlgoSKED25519, blob}), rest...)}
		s, err := sshsig.Parse(armor(append([]byte("SSHSIG"), ssh.Marshal(w)...)))
		require.NoError(t, err)
		err = s.Verify([]byte("x"), "git")
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

func TestAllowedSigners(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"marie", "paul", "ca"} {
		keygen(t, dir, "", "-q", "-N", "", "-t", "ed25519", "-C", name, "-f", name)
	}
	keygen(t, dir, "", "-q", "-s", "ca", "-I", "x", "-n", "anna@example.org", "-V", "-1h:+1h", "paul.pub")
	line := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name+".pub"))
		require.NoError(t, err)
		return strings.TrimSpace(string(b))
	}
	now := time.Now()
	key, paul, cert := publicKey(t, filepath.Join(dir, "marie.pub")), publicKey(t, filepath.Join(dir, "paul.pub")), publicKey(t, filepath.Join(dir, "paul-cert.pub"))
	for _, c := range []struct {
		file string
		key  ssh.PublicKey
		at   time.Time
		want string
	}{
		{"marie@example.org " + line("marie"), key, now, "marie@example.org"},
		{"# all\n\n\"marie@example.org,m@x\" namespaces=\"git,file\" " + line("marie"), key, now, "marie@example.org,m@x"},
		{"a namespaces=\"f*\" " + line("marie"), key, now, ""},
		{"a namespaces=\"*,!git\" " + line("marie"), key, now, ""},
		{"a valid-before=\"20200101\" " + line("marie"), key, now, ""},
		{"a valid-after=20200101Z,valid-before=20990101 " + line("marie"), key, now, "a"},
		{"a valid-after=20990101Z " + line("marie"), key, now, ""},
		{"a " + line("marie"), paul, now, ""},
		{"a cert-authority " + line("marie"), key, now, ""},
		{"*@example.org cert-authority " + line("ca"), cert, now, "anna@example.org"},
		{"*@example.com cert-authority " + line("ca"), cert, now, ""},
		{"*,!anna@* cert-authority " + line("ca"), cert, now, ""},
		{"* cert-authority " + line("ca"), cert, now.Add(48 * time.Hour), ""},
		{"* cert-authority " + line("marie"), cert, now, ""},
		{"* " + line("ca"), cert, now, ""},
	} {
		list, err := sshsig.ParseSigners([]byte(c.file + "\n"))
		require.NoError(t, err, c.file)
		got, ok := sshsig.Allowed(list, c.key, "git", c.at)
		require.Equal(t, c.want, got, c.file)
		require.Equal(t, c.want != "", ok, c.file)
	}
	for _, bad := range []string{"marie", "marie ssh-ed25519", "marie ssh-ed25519 !!", "marie ssh-rsa " + strings.Fields(line("marie"))[1], "a namespaces=\"git " + line("marie"), "a no-touch-required " + line("marie"), "a valid-after=2020 " + line("marie"), ", " + line("marie")} {
		_, err := sshsig.ParseSigners([]byte("# x\n" + bad))
		require.ErrorContains(t, err, "line 2", bad)
	}
}

func FuzzParse(f *testing.F) {
	dir := f.TempDir()
	keygen(f, dir, "", "-q", "-N", "", "-t", "ed25519", "-f", "k")
	f.Add(keygen(f, dir, "x", "-Y", "sign", "-n", "git", "-f", "k"))
	f.Add([]byte(sshsig.Begin + "\nU1NIU0lHAAAAAQ==\n" + sshsig.End))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := sshsig.Parse(text)
		if err != nil {
			require.ErrorIs(t, err, sshsig.ErrFormat)
			return
		}
		if err := s.Verify([]byte("another message"), s.Namespace); err == nil {
			t.Fatal("a signature of nothing was verified")
		}
	})
}

func FuzzParseSigners(f *testing.F) {
	f.Add([]byte("a@b,c cert-authority,namespaces=\"git\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8K0uJ3Qx8xkTtYF4cdIvYxqX0pHh3h1x3M9J7pLQhV marie\n"))
	f.Add([]byte("# x\n* ssh-rsa AAAA"))
	f.Add([]byte("\"a b\" valid-after=20200101Z ssh-ed25519 x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := sshsig.ParseSigners(text)
		if err != nil {
			require.Nil(t, list)
			return
		}
		for _, s := range list {
			require.NotEmpty(t, s.Principals)
			require.NotNil(t, s.Key)
			if name, ok := sshsig.Allowed(list[:1], s.Key, "git", time.Unix(1_700_000_000, 0)); ok {
				require.NotEmpty(t, name)
			}
		}
	})
}
