package signed_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/access"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/demands"
	"corpus-git/receive/signed"
)

// run runs a program in a folder, with its own environment.
func run(t testing.TB, dir, stdin string, argv ...string) string {
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Stdin = dir, strings.NewReader(stdin)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=m", "GIT_AUTHOR_EMAIL=m@x", "GIT_COMMITTER_NAME=m", "GIT_COMMITTER_EMAIL=m@x"}
	var told bytes.Buffer
	c.Stderr = &told
	out, err := c.Output()
	require.NoError(t, err, "%v: %s", argv, told.String())
	return string(out)
}

// people are principals by their keys.
type people map[string]string

func (p people) Identify(_ context.Context, o access.Offer) (access.Identity, bool, error) {
	name := p[access.Fingerprint(o.Key)]
	return access.Identity{Name: name, Fingerprint: access.Fingerprint(o.Key), From: o.From}, name != "", nil
}

func (p people) Can(_ context.Context, who access.Identity, name project.Name, want project.Right) (bool, error) {
	return who.Name == "marie" && name == "app" && want == project.Deploy, nil
}

func (p people) Revoked(k ssh.PublicKey) (bool, error) {
	return p["revoked"] == access.Fingerprint(k), nil
}

const rest = "pusher key 1700000000 +0000\npushee ssh://x/app\nnonce 1-abc\npush-option verbose\n\n" +
	"0000000000000000000000000000000000000000 1111111111111111111111111111111111111111 refs/heads/master\n"

// keys generates keys in a folder, and returns their fingerprints.
func keys(t testing.TB, dir string, names ...string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		run(t, dir, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", n, "-f", n)
		text, err := os.ReadFile(filepath.Join(dir, n+".pub"))
		require.NoError(t, err)
		k, _, err := access.ParsePublicKey(text)
		require.NoError(t, err)
		out[n] = access.Fingerprint(k)
	}
	return out
}

func TestPushCertificates(t *testing.T) {
	dir := t.TempDir()
	k := keys(t, dir, "marie", "paul", "listed", "stranger")
	known := people{k["marie"]: "marie", k["paul"]: "paul"}
	settings := signed.Settings{AllowedSigners: filepath.Join(dir, "allowed")}
	pub, err := os.ReadFile(filepath.Join(dir, "listed.pub"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(settings.AllowedSigners, []byte("l@example.org namespaces=\"git\" "+string(pub)), 0o600))
	v := &signed.Verifier{Access: known, Settings: func() signed.Settings { return settings }, Exec: execx.OS{}, Now: time.Now}
	payload := "certificate version 0.1\n" + rest
	sign := func(key, ns, text string) string {
		return text + run(t, dir, text, "ssh-keygen", "-Y", "sign", "-n", ns, "-f", key)
	}
	for name, c := range map[string]struct {
		text, nonce string
		options     []string
		signer      string
		want        string
		unknown     bool
	}{
		"marie":          {text: sign("marie", "git", payload), signer: "marie"},
		"listed":         {text: sign("listed", "git", payload), signer: "l@example.org"},
		"no right":       {text: sign("paul", "git", payload), want: "permission deploy on app", unknown: true},
		"stranger":       {text: sign("stranger", "git", payload), want: "it is by the unknown key SHA256:", unknown: true},
		"replayed":       {text: sign("marie", "git", payload), nonce: "2-abc", want: "made for another push"},
		"no nonce":       {text: sign("marie", "git", strings.Replace(payload, "nonce 1-abc\n", "", 1)), want: "made for another push"},
		"options":        {text: sign("marie", "git", payload), options: []string{"verbose", "force"}, want: "push options"},
		"options in one": {text: sign("marie", "git", strings.Replace(payload, "push-option verbose\n", "push-option verbose\npush-option force\n", 1)), options: []string{"verbose\nforce"}, want: "push options"},
		"namespace":      {text: sign("marie", "file", payload), want: `made for "file"`},
		"forged":         {text: strings.Replace(sign("marie", "git", payload), "refs/heads/master", "refs/heads/main", 1), want: "not of this message"},
		"cut signature":  {text: payload + "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n", want: "not an SSH signature"},
		"other kind":     {text: payload + "-----BEGIN SIGNED MESSAGE-----\nAAAA\n", want: "unsupported type"},
		"openpgp":        {text: payload + "-----BEGIN PGP SIGNATURE-----\n\nAAAA\n", want: "no keyring", unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			cert, err := signed.ParseCertificate(c.text)
			require.NoError(t, err)
			nonce, options := "1-abc", []string{"verbose"}
			if c.nonce != "" {
				nonce = c.nonce
			}
			if c.options != nil {
				options = c.options
			}
			s, err := v.Push(t.Context(), cert, nonce, options, signed.For{Project: "app", Right: project.Deploy})
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, demands.Signature{Of: "push", Kind: "ssh", Signer: c.signer, Key: s.Key, Certificate: c.text}, s)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.Equal(t, fault.Refused, fault.KindOf(err))
			require.Equal(t, c.unknown, errors.Is(err, signed.ErrUnknown))
		})
	}

	// A key that the operator revoked, or a file that cannot be read, is not trusted.
	cert, err := signed.ParseCertificate(sign("listed", "git", payload))
	require.NoError(t, err)
	known["revoked"] = k["listed"]
	_, err = v.Push(t.Context(), cert, "1-abc", []string{"verbose"}, signed.For{Project: "app", Right: project.Deploy})
	require.ErrorIs(t, err, signed.ErrUnknown)
	delete(known, "revoked")
	require.NoError(t, os.WriteFile(settings.AllowedSigners, []byte("l@example.org nothing\n"), 0o600))
	_, err = v.Push(t.Context(), cert, "1-abc", []string{"verbose"}, signed.For{Project: "app", Right: project.Deploy})
	require.Equal(t, fault.Internal, fault.KindOf(err))
}

func TestParseCertificateRefuses(t *testing.T) {
	sig := "-----BEGIN SSH SIGNATURE-----\n"
	for name, text := range map[string]string{
		"empty": "", "version": "certificate version 0.2\n" + rest + sig, "no end of headers": "certificate version 0.1\npusher x\n", "no signature": "certificate version 0.1\n" + rest,
		"no refs": "certificate version 0.1\nnonce x\n\n" + sig, "twice": "certificate version 0.1\nnonce x\nnonce y\n\nx\n" + sig, "NUL": "certificate version 0.1\nnonce x\x00y\n\nx\n" + sig,
		"long": "certificate version 0.1\n" + rest + sig + strings.Repeat("A", signed.MaxCertificate),
	} {
		_, err := signed.ParseCertificate(text)
		require.Equal(t, fault.Usage, fault.KindOf(err), name)
	}
}

// Commits and tags that git signs are verified; for others the error says what is wrong.
func TestObjects(t *testing.T) {
	home := t.TempDir()
	dir := home
	k := keys(t, home, "marie", "stranger")
	v := &signed.Verifier{Access: people{k["marie"]: "marie"}, Settings: func() signed.Settings { return signed.Settings{} }, Exec: execx.OS{}, Now: time.Now}
	git := func(args ...string) string {
		return strings.TrimSpace(run(t, dir, "", append([]string{"git", "-c", "gpg.format=ssh", "-c", "user.signingKey=" + filepath.Join(home, "marie")}, args...)...))
	}
	git("init", "-q", "r")
	dir = filepath.Join(dir, "r")
	get := func(rev string) (plumbing.Hash, plumbing.ObjectType, []byte) {
		typ, err := plumbing.ParseObjectType(git("cat-file", "-t", rev))
		require.NoError(t, err)
		return plumbing.NewHash(git("rev-parse", rev)), typ, []byte(run(t, dir, "", "git", "cat-file", typ.String(), rev))
	}
	git("commit", "-q", "--allow-empty", "-m", "plain")
	git("tag", "-a", "-m", "plain", "plain")
	git("commit", "-q", "--allow-empty", "-S", "-m", "signed")
	git("tag", "-s", "-m", "signed", "v1")
	what := signed.For{Project: "app", Right: project.Deploy}
	for _, rev := range []string{"HEAD", "v1"} {
		id, typ, data := get(rev)
		s, err := v.Object(t.Context(), id, typ, data, what)
		require.NoError(t, err, rev)
		require.Equal(t, demands.Signature{Of: "commit", Kind: "ssh", Signer: "marie", Key: k["marie"], Object: id.String()}, s)
		_, err = v.Object(t.Context(), id, typ, bytes.Replace(data, []byte("m@x"), []byte("n@x"), 1), what)
		require.ErrorContains(t, err, "not of this message", rev)
		if rev == "HEAD" {
			twice := bytes.Replace(data, []byte("gpgsig "), []byte("gpgsig x\ngpgsig "), 1)
			_, err = v.Object(t.Context(), id, typ, twice, what)
			require.ErrorContains(t, err, "2 signatures")
		}
	}
	for _, rev := range []string{"HEAD^", "plain"} {
		id, typ, data := get(rev)
		_, err := v.Object(t.Context(), id, typ, data, what)
		require.ErrorContains(t, err, "is not signed", rev)
	}
	git("-c", "user.signingKey="+filepath.Join(home, "stranger"), "commit", "-q", "--allow-empty", "-S", "-m", "x")
	id, typ, data := get("HEAD")
	_, err := v.Object(t.Context(), id, typ, data, what)
	require.ErrorIs(t, err, signed.ErrUnknown)
}

// With gpg and a keyring OpenPGP signatures are verified; a key that is not in it is unknown, and a different text is
// refused.
func TestOpenPGP(t *testing.T) {
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("no gpg")
	}
	dir, err := os.MkdirTemp("", "g") // short: gpg-agent's socket is in it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	for _, d := range []string{"marie", "server"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, d), 0o700))
	}
	gpg := func(home, stdin string, args ...string) string {
		return run(t, dir, stdin, append([]string{"gpg", "--homedir", filepath.Join(dir, home), "--batch", "--no-tty", "-q", "--passphrase", "", "--pinentry-mode", "loopback"}, args...)...)
	}
	t.Cleanup(func() {
		for _, d := range []string{"marie", "server"} {
			_ = exec.Command("gpgconf", "--homedir", filepath.Join(dir, d), "--kill", "gpg-agent").Run()
		}
	})
	gpg("marie", "", "--quick-gen-key", "Marie <m@x>", "ed25519", "sign")
	payload := "certificate version 0.1\n" + rest
	text := payload + gpg("marie", payload, "--armor", "--detach-sign")
	v := &signed.Verifier{Access: people{}, Settings: func() signed.Settings { return signed.Settings{GPGHome: filepath.Join(dir, "server")} }, Exec: execx.OS{}, Now: time.Now}
	push := func(text string) (demands.Signature, error) {
		c, err := signed.ParseCertificate(text)
		require.NoError(t, err)
		return v.Push(t.Context(), c, "1-abc", []string{"verbose"}, signed.For{Project: "app", Right: project.Deploy})
	}
	_, err = push(text)
	require.ErrorIs(t, err, signed.ErrUnknown)
	gpg("server", gpg("marie", "", "--armor", "--export"), "--import")
	s, err := push(text)
	require.NoError(t, err)
	require.Equal(t, "openpgp", s.Kind)
	require.Equal(t, "Marie <m@x>", s.Signer)
	require.Regexp(t, "^[0-9A-F]{40}$", s.Key)
	_, err = push(strings.Replace(text, "refs/heads/master", "refs/heads/main", 1))
	require.ErrorContains(t, err, "not valid")
	require.NotErrorIs(t, err, signed.ErrUnknown)
}

func FuzzParseCertificate(f *testing.F) {
	f.Add("certificate version 0.1\n" + rest + "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n")
	f.Add("certificate version 0.1\n\nx\n-----BEGIN PGP SIGNATURE-----")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := signed.ParseCertificate(text)
		if err != nil {
			require.Equal(t, fault.Usage, fault.KindOf(err))
			return
		}
		require.Equal(t, text, c.Payload+c.Signature)
		require.NotEmpty(t, c.Commands)
		require.True(t, strings.HasSuffix(c.Payload, "\n"+strings.Join(c.Commands, "\n")+"\n"))
	})
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte("tree x\ngpgsig a\n b\ncommitter c\n\nm\n"), true)
	f.Add([]byte("object x\n\nm\n-----BEGIN SSH SIGNATURE-----\nx\n"), false)
	f.Fuzz(func(t *testing.T, data []byte, commit bool) {
		typ := plumbing.TagObject
		if commit {
			typ = plumbing.CommitObject
		}
		before := bytes.Clone(data)
		payload, sig, err := signed.Split(typ, data)
		require.Equal(t, before, data, "the object is shared, and stays")
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(payload)+len(sig), len(data))
		if !commit {
			require.Equal(t, string(data), string(payload)+sig)
		}
	})
}
