package web_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/web"
)

// people are the passwords of a directory.
type people struct {
	passwords map[string]string
	none      bool
	asked     []string
}

func (p *people) AsksPasswords() bool { return !p.none }

func (p *people) SignIn(_ context.Context, name, password, from string) (access.Identity, bool, error) {
	p.asked = append(p.asked, name+" from "+from)
	if name == "down" {
		return access.Identity{}, false, fault.New(fault.Busy, "log in", "the directory gives no answer")
	}
	if password == "" || p.passwords[name] != password {
		return access.Identity{}, false, nil
	}
	return access.Identity{Name: name, Fingerprint: "session"}, true, nil
}

// post sends a login form from an address, as a browser does from our own page.
func post(s *web.Server, from, site string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(form.Encode()))
	r.RemoteAddr = from
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", site)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

func withPeople(t *testing.T) (*web.Server, *people) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	s, p := server(newMachine()), &people{passwords: map[string]string{"marie": "right"}}
	s.Passwords = p
	s.Sessions, err = web.OpenSessions(t.Context(), d, func() time.Time { return noon })
	require.NoError(t, err)
	return s, p
}

const loopback = "127.0.0.1:999"

func TestPasswordsLogIn(t *testing.T) {
	s, _ := withPeople(t)
	r := httptest.NewRequest(http.MethodGet, "/projects/app", nil)
	r.RemoteAddr = loopback
	r.Header.Set("Accept", "text/html,*/*")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusSeeOther, w.Code, "a browser is shown where to log in")
	require.Equal(t, "/login", w.Header().Get("Location"))

	w = post(s, loopback, "same-origin", url.Values{"name": {"marie"}, "password": {"right"}})
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	cookie := w.Result().Cookies()
	require.Len(t, cookie, 1)
	require.True(t, cookie[0].HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie[0].SameSite)
	r = httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = loopback
	r.AddCookie(cookie[0])
	w = httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)

	wrong := post(s, loopback, "same-origin", url.Values{"name": {"marie"}, "password": {"wrong"}})
	unknown := post(s, loopback, "same-origin", url.Values{"name": {"<b>nobody"}, "password": {"right"}})
	empty := post(s, loopback, "same-origin", url.Values{"name": {"marie"}})
	for _, w := range []*httptest.ResponseRecorder{wrong, unknown, empty} {
		require.Equal(t, http.StatusUnauthorized, w.Code)
		require.Equal(t, wrong.Body.String(), w.Body.String(), "one answer, whatever is wrong")
		require.Empty(t, w.Result().Cookies())
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "form-action 'self'")
	}
	require.Equal(t, http.StatusServiceUnavailable, post(s, loopback, "same-origin", url.Values{"name": {"down"}, "password": {"x"}}).Code)
	require.GreaterOrEqual(t, post(s, loopback, "same-origin", url.Values{"name": {strings.Repeat("x", 1<<20)}}).Code, 400)
}

// The attacks: a password that is typed over a wire that others read, and a foreign site that logs a visitor in as somebody else.
func TestPasswordsAreNotTakenEverywhere(t *testing.T) {
	s, p := withPeople(t)
	right := url.Values{"name": {"marie"}, "password": {"right"}}
	require.Equal(t, http.StatusUnauthorized, post(s, "192.0.2.1:999", "same-origin", right).Code, "plain HTTP from elsewhere")
	require.Equal(t, http.StatusForbidden, post(s, loopback, "cross-site", right).Code)
	p.none = true
	require.Equal(t, http.StatusUnauthorized, post(s, loopback, "same-origin", right).Code, "no directory")
	s.Passwords = nil
	require.Equal(t, http.StatusUnauthorized, post(s, loopback, "same-origin", right).Code)
	require.Empty(t, p.asked)
}

// The attack: a proxy on the same machine makes the pages reachable from everywhere without TLS, and each visitor looks as if on the machine.
func TestPasswordsAreNotTakenThroughAProxy(t *testing.T) {
	s, p := withPeople(t)
	body := url.Values{"name": {"marie"}, "password": {"right"}}.Encode()
	for name, change := range map[string]func(*http.Request){
		"X-Forwarded-For": func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.1") },
		"Forwarded":       func(r *http.Request) { r.Header.Set("Forwarded", "for=192.0.2.1") },
		"Via":             func(r *http.Request) { r.Header.Set("Via", "1.1 proxy") },
		"HTTP/1.0":        func(r *http.Request) { r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.0", 1, 0 },
	} {
		r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(body))
		r.RemoteAddr = loopback
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		change(r)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		require.Equal(t, http.StatusUnauthorized, w.Code, name)
	}
	require.Empty(t, p.asked)
}

// writeCertificate makes a certificate for 127.0.0.1 that signs itself.
func writeCertificate(t *testing.T, dir string, serial int64) (cert, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "corpus-git"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
	return cert, key
}

// Over TLS passwords are taken from everywhere, the cookie is for TLS alone, and a new certificate is shown without a restart.
func TestCertificate(t *testing.T) {
	s, _ := withPeople(t)
	dir := t.TempDir()
	_, err := web.LoadCertificate(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	require.Error(t, err)
	c, err := web.LoadCertificate(writeCertificate(t, dir, 1))
	require.NoError(t, err)
	s.Certificate = c
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	defer func() {
		require.NoError(t, s.Close())
		require.NoError(t, <-done)
	}()
	var serial int64
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // the certificate is looked at below
			VerifyConnection: func(st tls.ConnectionState) error {
				serial = st.PeerCertificates[0].SerialNumber.Int64()
				return nil
			},
		}},
	}
	base := "https://" + l.Addr().String()
	res, err := client.PostForm(base+"/login", url.Values{"name": {"marie"}, "password": {"right"}})
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 2, res.ProtoMajor)
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
	require.True(t, res.Cookies()[0].Secure)
	require.Equal(t, int64(1), serial)

	writeCertificate(t, dir, 2)
	require.NoError(t, c.Reload())
	res, err = client.Get(base + "/healthz")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, int64(2), serial)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("damaged"), 0o600))
	require.Error(t, c.Reload())
	res, err = client.Get(base + "/healthz")
	require.NoError(t, err, "what was read before stays")
	require.NoError(t, res.Body.Close())
}
