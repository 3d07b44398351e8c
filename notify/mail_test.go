package notify_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/notify"
	"corpus-git/project"
	"corpus-git/project/config"
)

// certificate writes a certificate of localhost that signs itself, and its key.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, private.Public(), private)
	require.NoError(t, err)
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes}), 0o600))
	return cert, key
}

// mailServer starts aiosmtpd, and gives its address and where its mails are.
func mailServer(t *testing.T, cert, key string) (address, mails string) {
	t.Helper()
	python := os.Getenv("CORPUS_GIT_PYTHON")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import aiosmtpd").Run() != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("aiosmtpd is missing, and CI=true skips nothing: run .ci/interop, and set CORPUS_GIT_PYTHON to what it prints")
		}
		t.Skip("no python with aiosmtpd: .ci/interop installs it")
	}
	mails = t.TempDir()
	cmd := exec.Command(python, "testdata/smtp.py", cert, key, mails)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close() // it ends itself
		_, _ = io.Copy(io.Discard, stdout)
		_ = cmd.Wait()
	})
	port, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return "localhost:" + strings.TrimSpace(port), mails
}

// A mail goes over STARTTLS, after a login, to the administrators and to who created the project, in text and HTML. A server whose certificate nobody vouches for, and
// a wrong password, get nothing.
func TestMail(t *testing.T) {
	cert, key := certificate(t, t.TempDir())
	address, mails := mailServer(t, cert, key)
	good := config.Sink{
		Name: "good", Kind: "smtp", Server: address, CA: cert, User: "corpus", Password: "T0KEN-of-the-sink", From: "corpus-git <corpus@example.org>", To: []string{"admins@example.org"},
		Addresses: []string{"marie=marie@example.org", "paul=paul@example.org"}, Private: true,
	}
	distrusted, wrong, private := good, good, good
	distrusted.Name, distrusted.CA = "distrusted", ""
	wrong.Name, wrong.Password = "wrong", "not-the-password"
	private.Name, private.Private = "private", false
	r := newRig(t, good, distrusted, wrong, private)
	r.work.Describe = func(context.Context, project.Name) (string, error) {
		return "  project   ssh://deploy@server/app/project.git <x>\n", nil
	}
	require.NoError(t, r.out.AddNow(t.Context(), project.Notification{ID: "created_app", Event: project.EventCreated, Project: "app", Environment: "prod", By: &project.Pusher{Key: "marie"}}))
	r.work.Drain(t.Context())
	for sink, says := range map[string]string{"distrusted": "certificate", "wrong": "535", "private": "private network"} {
		d, err := r.out.Get(t.Context(), "created_app", sink)
		require.NoError(t, err)
		require.Equal(t, notify.Waiting, d.State, sink)
		require.Contains(t, d.Error, says)
		require.NotContains(t, d.Error, "not-the-password")
	}
	d, err := r.out.Get(t.Context(), "created_app", "good")
	require.NoError(t, err)
	require.Equal(t, notify.Delivered, d.State, d.Error)
	entries, err := os.ReadDir(mails)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	text := strings.ReplaceAll(strings.ReplaceAll(read(t, filepath.Join(mails, "1.eml")), "\r\n", "\n"), "=\n", "")
	require.Contains(t, text, "To: admins@example.org,marie@example.org\n")
	for _, part := range []string{
		"Subject: app (prod): the project was created\n", "Message-ID: <created_app@example.org>\n", "Auto-Submitted: auto-generated\n", "multipart/alternative", "text/plain", "text/html",
		"ssh://deploy@server/app/project.git <x>", "ssh://deploy@server/app/project.git &lt;x&gt;", "by marie", "corpus-git on machine",
	} {
		require.Contains(t, text, part)
	}
}
