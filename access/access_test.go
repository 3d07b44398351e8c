package access_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/access"
	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func open(t *testing.T) (*access.Store, *audit.Log, *clock) {
	ctx := context.Background()
	d, err := db.Open(ctx, filepath.Join(t.TempDir(), "state", "x.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	c := &clock{time.Unix(1_700_000_000, 0)}
	log, err := audit.Open(ctx, d, c.now)
	require.NoError(t, err)
	s, err := access.Open(ctx, d, log, c.now)
	require.NoError(t, err)
	return s, log, c
}

func newKey(t *testing.T) (ssh.PublicKey, []byte) {
	pub, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	k, err := ssh.NewPublicKey(pub)
	require.NoError(t, err)
	return k, ssh.MarshalAuthorizedKey(k)
}

func TestKeys(t *testing.T) {
	s, _, _ := open(t)
	ctx := context.Background()
	root := access.Local("root")
	pub, text := newKey(t)
	k, err := s.AddKey(ctx, root, "laptop", append(bytes.TrimSpace(text), " marie@laptop\n"...), false)
	require.NoError(t, err)
	require.Equal(t, ssh.FingerprintSHA256(pub), k.Fingerprint)
	require.Equal(t, "marie@laptop", k.Comment)

}

func TestKeyLife(t *testing.T) {
	s, log, clock := open(t)
	ctx := context.Background()
	root := access.Local("root")
	pub, text := newKey(t)
	_, err := s.AddKey(ctx, root, "laptop", text, false)
	require.NoError(t, err)

	_, other := newKey(t)
	_, err = s.AddKey(ctx, root, "laptop", other, false)
	require.ErrorContains(t, err, "a key named laptop")
	require.Equal(t, fault.Refused, fault.KindOf(err))
	_, err = s.AddKey(ctx, root, "second", text, true)
	require.ErrorContains(t, err, "already exists as laptop")
	_, err = s.AddKey(ctx, root, "../x", other, false)
	require.Equal(t, fault.Usage, fault.KindOf(err))

	k, ok, err := s.FindByKey(ctx, pub)
	require.NoError(t, err)
	require.True(t, ok)
	require.Zero(t, k.LastUsed)
	stranger, _ := newKey(t)
	_, ok, err = s.FindByKey(ctx, stranger)
	require.NoError(t, err)
	require.False(t, ok)

	require.NoError(t, s.Used(ctx, k.Fingerprint))
	first := clock.t
	clock.t = first.Add(59 * time.Second)
	require.NoError(t, s.Used(ctx, k.Fingerprint))
	keys, err := s.ListKeys(ctx)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.True(t, keys[0].LastUsed.Equal(first))
	require.Equal(t, "root", keys[0].AddedBy)

	require.NoError(t, s.RemoveKey(ctx, root, "laptop"))
	_, ok, err = s.FindByKey(ctx, pub)
	require.NoError(t, err)
	require.False(t, ok)
	err = s.RemoveKey(ctx, root, "laptop")
	require.Equal(t, fault.Refused, fault.KindOf(err))

	entries, err := log.List(ctx, "", 100)
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Action+" "+e.Outcome)
	}
	require.Equal(t, []string{"key remove refused", "key remove ok", "key add refused", "key add refused", "key add refused", "key add ok"}, got)
}

func TestGrants(t *testing.T) {
	s, _, _ := open(t)
	ctx := context.Background()
	root := access.Local("root")
	add := func(name string, admin bool) access.Identity {
		_, text := newKey(t)
		k, err := s.AddKey(ctx, root, name, text, admin)
		require.NoError(t, err)
		return access.Identity{Name: k.Name, Fingerprint: k.Fingerprint, Admin: admin, From: "192.0.2.1:5"}
	}
	marie, boss := add("marie", false), add("boss", true)
	can := func(who access.Identity, name project.Name, want project.Right) bool {
		ok, err := s.Can(ctx, who, name, want)
		require.NoError(t, err)
		all, err := s.Rights(ctx, who)
		require.NoError(t, err)
		require.Equal(t, ok, all.Can(name, want), "all rights at once say the same")
		return ok
	}
	require.False(t, can(marie, "app", project.Read))
	require.NoError(t, s.Grant(ctx, boss, "app", "marie", project.Deploy))
	require.NoError(t, s.Grant(ctx, boss, "app", "marie", project.Deploy), "twice changes nothing")
	require.True(t, can(marie, "app", project.Deploy))
	require.True(t, can(marie, "app", project.Read))
	require.False(t, can(marie, "app", project.Configure))
	require.False(t, can(marie, "app", ""))
	require.False(t, can(marie, "other", project.Read))
	require.NoError(t, s.Grant(ctx, boss, "app", "marie", project.Configure))
	require.True(t, can(marie, "app", project.Deploy), "rights add up")
	require.True(t, can(marie, "app", project.Configure))

	require.True(t, can(boss, "anything", project.Admin))
	require.True(t, can(root, "anything", project.Admin))
	require.False(t, can(access.Identity{}, "app", project.Read), "the zero identity is nobody")
	require.False(t, can(access.Identity{Name: "marie"}, "app", project.Read), "no fingerprint, no admin: nobody")
	require.False(t, can(access.Identity{Name: "marie", Fingerprint: "SHA256:x", Admin: true}, "app", project.Read), "a key that is not known")
	require.False(t, can(access.Identity{Name: "marie", Fingerprint: marie.Fingerprint, Admin: true}, "app", project.Admin), "what an identity claims is looked up")

	gs, err := s.ListGrants(ctx, "app")
	require.NoError(t, err)
	require.Len(t, gs, 2)
	require.Equal(t, "boss", gs[0].AddedBy)
	gs, err = s.GrantsOf(ctx, "marie")
	require.NoError(t, err)
	require.Len(t, gs, 2)

	require.NoError(t, s.Revoke(ctx, boss, "app", "marie", project.Deploy))
	require.False(t, can(marie, "app", project.Deploy))
	require.Equal(t, fault.Refused, fault.KindOf(s.Revoke(ctx, boss, "app", "marie", project.Deploy)))
	require.Equal(t, fault.Refused, fault.KindOf(s.Grant(ctx, boss, "app", "nobody", project.Read)))
	require.Equal(t, fault.Usage, fault.KindOf(s.Grant(ctx, boss, "app", "marie", "root")))
	require.Equal(t, fault.Usage, fault.KindOf(s.Grant(ctx, boss, "../app", "marie", project.Read)))

	admin, err := s.IsAdmin(ctx, boss)
	require.NoError(t, err)
	require.True(t, admin)
	require.NoError(t, s.RemoveKey(ctx, root, "boss"))
	admin, err = s.IsAdmin(ctx, boss)
	require.NoError(t, err)
	require.False(t, admin)
	require.False(t, can(boss, "app", project.Read), "a removed key has nothing, also in a session that is open")

	require.NoError(t, s.RemoveKey(ctx, root, "marie"))
	gs, err = s.ListGrants(ctx, "")
	require.NoError(t, err)
	require.Empty(t, gs, "grants go with their key")
}

func TestParsePublicKey(t *testing.T) {
	_, good := newKey(t)
	line := string(bytes.TrimSpace(good))
	_, comment, err := access.ParsePublicKey([]byte("# mine\n\n  " + line + "  a b\x1b[2J \n"))
	require.NoError(t, err)
	require.Equal(t, "a b\\x1b[2J", comment)

	short := authorized(t, 1024)
	long := authorized(t, 2048)
	_, _, err = access.ParsePublicKey(long)
	require.NoError(t, err)
	for text, want := range map[string]string{
		"":                                      "contains no key",
		"# only\n":                              "contains no key",
		"hello":                                 "not a public key",
		"ssh-ed25519 AA":                        "cannot parse the key",
		line + "\n" + line:                      "more than one key",
		`command="rm -rf /" ` + line:            "options in front of a key",
		`no-pty,from="10.0.0.0/8" ` + line:      "options in front of a key",
		string(short):                           "1024 bits",
		"-----BEGIN OPENSSH PRIVATE KEY-----\n": "private key",
		"---- BEGIN SSH2 PUBLIC KEY ----\n":     "RFC 4716",
		"PuTTY-User-Key-File-3: ssh-ed25519\n":  "PuTTY",
		"ssh-dss AAAAB3NzaC1kc3MAAACB":          "cannot parse the key",
		string(certificate(t)):                  "certificates",
	} {
		_, _, err := access.ParsePublicKey([]byte(text))
		require.ErrorContains(t, err, want, text)
		require.Equal(t, fault.Usage, fault.KindOf(err))
		require.NotEmpty(t, fault.HintOf(err), text)
	}
}

func authorized(t *testing.T, bits int) []byte {
	t.Setenv("GODEBUG", "rsa1024min=0")
	k, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	pub, err := ssh.NewPublicKey(&k.PublicKey)
	require.NoError(t, err)
	return ssh.MarshalAuthorizedKey(pub)
}

func certificate(t *testing.T) []byte {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	k, err := ssh.NewPublicKey(pub)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(priv)
	require.NoError(t, err)
	c := &ssh.Certificate{Key: k, CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	require.NoError(t, c.SignCert(rand.Reader, signer))
	return ssh.MarshalAuthorizedKey(c)
}

func FuzzParsePublicKey(f *testing.F) {
	f.Add([]byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8K0uJ3Qx8xkTtYF4cdIvYxqX0pHh3h1x3M9J7pLQhV marie\n"))
	f.Add([]byte(`command="x" ssh-rsa AAAA`))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, comment, err := access.ParsePublicKey(text)
		if err != nil {
			require.Equal(t, fault.Usage, fault.KindOf(err))
			return
		}
		again, c2, err := access.ParsePublicKey(append(bytes.TrimSpace(ssh.MarshalAuthorizedKey(k)), " "+comment...))
		require.NoError(t, err)
		require.Equal(t, k.Marshal(), again.Marshal())
		require.Equal(t, printable.Line(comment), comment)
		if utf8.RuneCountInString(comment) <= 200 {
			require.Equal(t, comment, c2)
		}
	})
}
