package checks

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/project"
)

// once is a check of one attempt.
func once(kind project.CheckKind, target string) project.Check {
	return project.Check{Name: "x", Kind: kind, Target: target, Attempts: 1, Timeout: 10 * time.Second,
		HTTP: project.HTTPCheck{Method: "GET", Status: []project.StatusRange{{First: 200, Last: 299}}}}
}

func runner() Runner {
	return Runner{Command: func(ctx context.Context, c project.Check, argv []string) (int, string, error) {
		if argv == nil {
			argv = []string{"/bin/sh", "-c", c.Target}
		}
		var out execx.Tail
		out.Max = maxAnswer
		st, err := execx.OS{}.Run(ctx, execx.Cmd{Argv: argv, Env: []string{"PATH=/usr/bin:/bin"}, Stdout: &out, Stderr: &out})
		return st.Exit, out.String(), err
	}}
}

func ask(t *testing.T, c project.Check) Result {
	t.Helper()
	out, err := runner().Run(t.Context(), []project.Check{c})
	require.NoError(t, err)
	return out[0]
}

func TestHTTP(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "Welcome\n") })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		fmt.Fprint(w, "Traceback\n\nKeyError: 'x'\n"+strings.Repeat("z", 300))
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
	mux.HandleFunc("/json", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"db": {"state": "up", "n": 1.0}, "items": [{"name": null}]}`)
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", r.Method, r.Host, r.Header.Get("X-Key"))
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	port := srv.URL[strings.LastIndexByte(srv.URL, ':')+1:]
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	us := &http.Server{Handler: mux}
	go us.Serve(l)
	t.Cleanup(func() { us.Close() })

	for name, tt := range map[string]struct {
		path   string
		set    func(*project.Check)
		reason string
		answer []string
	}{
		"good":          {path: "/ok", set: func(c *project.Check) { c.HTTP.Contains = "Welcome" }},
		"contains":      {path: "/ok", set: func(c *project.Check) { c.HTTP.Contains = "Bye" }, reason: `the body does not contain "Bye"`, answer: []string{"HTTP/1.1 200 OK", "Welcome"}},
		"status":        {path: "/broken", reason: "status 500 Internal Server Error, wanted 2xx", answer: []string{"HTTP/1.1 500 Internal Server Error", "Traceback", "KeyError: 'x'", strings.Repeat("z", 200) + "..."}},
		"status wanted": {path: "/broken", set: func(c *project.Check) { c.HTTP.Status = []project.StatusRange{{First: 500, Last: 500}} }},
		"redirect":      {path: "/moved", reason: "status 302 Found to /ok, wanted 2xx", answer: []string{"HTTP/1.1 302 Found", `<a href="/ok">Found</a>.`}},
		"follow":        {path: "/moved", set: func(c *project.Check) { c.HTTP.Follow = true }},
		"json": {path: "/json", set: func(c *project.Check) {
			c.HTTP.JSON = []project.JSONValue{{Path: "db.state", Value: `"up"`}, {Path: "db.n", Value: "1"}, {Path: "items[0].name", Value: "null"}}
		}},
		"json differs": {path: "/json", set: func(c *project.Check) { c.HTTP.JSON = []project.JSONValue{{Path: "db.state", Value: `"down"`}} },
			reason: `db.state is "up", wanted "down"`, answer: []string{"HTTP/1.1 200 OK", `{"db": {"state": "up", "n": 1.0}, "items": [{"name": null}]}`}},
		"json lacks": {path: "/json", set: func(c *project.Check) { c.HTTP.JSON = []project.JSONValue{{Path: "items[1]", Value: `1`}} },
			reason: `items[1] is not in the body, wanted 1`, answer: []string{"HTTP/1.1 200 OK", `{"db": {"state": "up", "n": 1.0}, "items": [{"name": null}]}`}},
		"no json": {path: "/ok", set: func(c *project.Check) { c.HTTP.JSON = []project.JSONValue{{Path: "a", Value: `1`}} },
			reason: `the body is not JSON: invalid character 'W' looking for beginning of value`, answer: []string{"HTTP/1.1 200 OK", "Welcome"}},
		"sent": {path: "/echo", set: func(c *project.Check) {
			c.HTTP.Method, c.HTTP.Headers, c.HTTP.Contains = "POST", []project.Header{{Name: "Host", Value: "www.example.org"}, {Name: "X-Key", Value: "k"}}, "POST www.example.org k"
		}},
		"resolve": {set: func(c *project.Check) {
			c.Target, c.HTTP.Resolve, c.HTTP.Contains = "http://www.example.invalid:"+port+"/echo", "127.0.0.1", "GET www.example.invalid:"+port
		}},
		"resolve with port": {set: func(c *project.Check) {
			c.Target, c.HTTP.Resolve = "http://www.example.invalid/ok", "127.0.0.1:"+port
		}},
		"socket": {set: func(c *project.Check) {
			c.Target, c.HTTP.Socket, c.HTTP.Contains = "http://app/echo", socket, "GET app"
		}},
		"closed": {set: func(c *project.Check) { c.Target = "http://" + closedPort(t) + "/" }, reason: "connect to PORT: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			c := once(project.CheckHTTP, srv.URL+tt.path)
			if tt.set != nil {
				tt.set(&c)
			}
			r := ask(t, c)
			want := strings.ReplaceAll(tt.reason, "PORT", strings.TrimSuffix(strings.TrimPrefix(c.Target, "http://"), "/"))
			assert.Equal(t, want, r.Reason)
			assert.Equal(t, tt.reason == "", r.Good)
			assert.Equal(t, tt.answer, r.Answer)
			assert.Equal(t, 1, r.Attempts)
		})
	}
}

// A server that is checked redirects elsewhere, to learn the token that the check sends: neither headers nor body follow; within the server they do.
func TestRedirectsElsewhereGetNoSecrets(t *testing.T) {
	var got atomic.Pointer[http.Request]
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got.Store(r) }))
	t.Cleanup(elsewhere.Close)
	to := elsewhere.URL
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, to+"/x", http.StatusTemporaryRedirect)
		case "/near":
			http.Redirect(w, r, "/here", http.StatusTemporaryRedirect)
		default:
			got.Store(r)
		}
	}))
	t.Cleanup(first.Close)
	send := func(path, method, body string) (Result, *http.Request) {
		c := once(project.CheckHTTP, first.URL+path)
		c.HTTP.Follow, c.HTTP.Method, c.HTTP.Body, c.HTTP.Headers = true, method, body, []project.Header{{Name: "X-Token", Value: "secret"}}
		got.Store(nil)
		return ask(t, c), got.Load()
	}
	r, req := send("/near", "POST", "body")
	assert.True(t, r.Good)
	assert.Equal(t, "secret", req.Header.Get("X-Token"))
	r, req = send("/away", "GET", "")
	assert.True(t, r.Good)
	assert.Empty(t, req.Header.Get("X-Token"))
	r, req = send("/away", "POST", "body")
	assert.False(t, r.Good)
	assert.Nil(t, req)
	assert.Contains(t, r.Reason, "does not get the body of the check")
}

// closedPort is an address where nobody listens.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func TestNoAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and sends nothing
	require.NoError(t, err)
	defer l.Close()
	c := once(project.CheckHTTP, "http://"+l.Addr().String()+"/")
	c.Timeout = 50 * time.Millisecond
	r := ask(t, c)
	assert.False(t, r.Good)
	assert.Equal(t, "no answer within 50ms", r.Reason)
	assert.True(t, ask(t, once(project.CheckTCP, l.Addr().String())).Good)
}

// A server that answers, and whose body never ends, is not one that gives no answer.
func TestBodyWithoutEnd(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "data: x\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer srv.Close()
	for path, want := range map[string]string{
		"/":     "status 200 OK, and the body did not end within 300ms",
		"/busy": "status 503 Service Unavailable, wanted 2xx",
	} {
		c := once(project.CheckHTTP, srv.URL+path)
		c.Timeout = 300 * time.Millisecond
		r := ask(t, c)
		assert.False(t, r.Good)
		assert.Equal(t, want, r.Reason)
		assert.Contains(t, r.Answer, "data: x")
	}
}

func TestSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	assert.Equal(t, "connect to "+path+": no such file or directory", ask(t, once(project.CheckUnix, path)).Reason)
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	assert.True(t, ask(t, once(project.CheckUnix, path)).Good)
	addr := closedPort(t)
	assert.Equal(t, "connect to "+addr+": connection refused", ask(t, once(project.CheckTCP, addr)).Reason)
}

func TestCommands(t *testing.T) {
	assert.True(t, ask(t, once(project.CheckCommand, "test 1 = 1")).Good)
	r := ask(t, once(project.CheckCommand, "echo out; echo err >&2; exit 3"))
	assert.Equal(t, "exit status 3", r.Reason)
	assert.Equal(t, []string{"out", "err"}, r.Answer)
	c := once(project.CheckCommand, "sleep 60")
	c.Timeout = 50 * time.Millisecond
	assert.Equal(t, "no answer within 50ms", ask(t, c).Reason)
	r = ask(t, once(project.CheckCommand, "printf 'a\\000b'; exit 1"))
	assert.Equal(t, []string{"(3 bytes that are not text)"}, r.Answer)
}

func TestUnits(t *testing.T) {
	status, says := 0, "active\n"
	r := Runner{Command: func(_ context.Context, _ project.Check, argv []string) (int, string, error) {
		assert.Equal(t, []string{"systemctl", "is-active", "--", "app.service"}, argv)
		return status, says, nil
	}}
	out, err := r.Run(t.Context(), []project.Check{once(project.CheckUnit, "app.service")})
	require.NoError(t, err)
	assert.True(t, out[0].Good)
	status, says = 3, "failed\n"
	out, _ = r.Run(t.Context(), []project.Check{once(project.CheckUnit, "app.service")})
	assert.Equal(t, "app.service is failed, wanted active", out[0].Reason)
}

func TestAttemptsUntilGood(t *testing.T) {
	var n, told atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) < 4 {
			w.WriteHeader(503)
		}
	}))
	defer srv.Close()
	c := once(project.CheckHTTP, srv.URL)
	c.Attempts, c.Every = 10, time.Millisecond
	r := runner()
	r.Progress = func(res Result) {
		told.Add(1)
		assert.Equal(t, "status 503 Service Unavailable, wanted 2xx", res.Reason)
	}
	out, err := r.Run(t.Context(), []project.Check{c})
	require.NoError(t, err)
	assert.True(t, out[0].Good)
	assert.Equal(t, 4, out[0].Attempts)
	assert.EqualValues(t, 3, told.Load())
	assert.Empty(t, out[0].Answer)
}

func TestAttemptsAreUsedUp(t *testing.T) {
	c := once(project.CheckTCP, closedPort(t))
	c.Attempts = 3
	r := ask(t, c)
	assert.False(t, r.Good)
	assert.Equal(t, 3, r.Attempts)
}

func TestWatched(t *testing.T) {
	var n atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 3 {
			w.WriteHeader(500)
		}
	}))
	defer srv.Close()
	c := once(project.CheckHTTP, srv.URL)
	c.Attempts, c.Every, c.AlsoAfter = 5, time.Millisecond, time.Hour
	r := ask(t, c)
	assert.False(t, r.Good, "an answer that turns bad while it is watched is final")
	assert.True(t, r.Watched)
	assert.Equal(t, 3, r.Attempts)
	c.AlsoAfter = 150 * time.Millisecond
	n.Store(10)
	r = ask(t, c)
	assert.True(t, r.Good)
	assert.Greater(t, r.Attempts, 1)
}

func TestCancelEndsAll(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("cancelled by alice")
	var list []project.Check
	for range 20 {
		c := once(project.CheckTCP, closedPort(t))
		c.StartAfter = time.Hour
		list = append(list, c)
	}
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	out, err := runner().Run(ctx, list)
	require.ErrorIs(t, err, why)
	for _, r := range out {
		assert.False(t, r.Good)
		assert.Equal(t, "cancelled by alice", r.Reason)
	}
}

func TestCertificates(t *testing.T) {
	srv, ca := tlsServer(t, 20*24*time.Hour)
	c := once(project.CheckCertificate, srv.Listener.Addr().String())
	c.CA, c.TLSName, c.MinValid = ca, "www.example.org", 14*24*time.Hour
	assert.Equal(t, "", ask(t, c).Reason)
	c.MinValid = 30 * 24 * time.Hour
	assert.Regexp(t, `^the certificate of www.example.org is valid until \d{4}-\d\d-\d\d \((19|20) days\), wanted 30 days$`, ask(t, c).Reason)
	c.TLSName = "other.example.org"
	assert.Equal(t, "the certificate is not valid: certificate is valid for www.example.org, not other.example.org", ask(t, c).Reason)
	c.TLSName, c.CA = "www.example.org", ""
	assert.Equal(t, "the certificate is not valid: certificate signed by unknown authority", ask(t, c).Reason)
	c.CA = "/nowhere/ca.pem"
	assert.Equal(t, "/nowhere/ca.pem: no such file or directory", ask(t, c).Reason)

	h := once(project.CheckHTTP, srv.URL)
	h.CA, h.TLSName = ca, "www.example.org"
	h.HTTP.Contains = "for www.example.org"
	assert.Equal(t, "", ask(t, h).Reason)
}

func tlsServer(t *testing.T, valid time.Duration) (*httptest.Server, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "www.example.org"}, DNSNames: []string{"www.example.org"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	require.NoError(t, err)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "for %s", r.Host) }))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	return srv, ca
}

func TestFirstLinesCutAtRunes(t *testing.T) {
	got := Runner{}.firstLines([]byte(strings.Repeat("é", 150) + "\n\xff\n" + strings.Repeat("l\n", 20)))
	assert.Equal(t, strings.Repeat("é", 100)+"...", got[0])
	assert.Equal(t, "?", got[1])
	assert.Len(t, got, shownLines+1)
	got = Runner{}.firstLines([]byte("a" + strings.Repeat("é", 150)))
	assert.Equal(t, "a"+strings.Repeat("é", 99)+"...", got[0])
}

// The attack: the file in a check's key ca is where the project's user can replace it; a fifo in its place blocked the deployment, its cancel, and the
// server's stop until somebody wrote into it.
func TestAFifoForCertificatesIsNotWaitedFor(t *testing.T) {
	srv, ca := tlsServer(t, 30*24*time.Hour)
	require.NoError(t, os.Remove(ca))
	require.NoError(t, syscall.Mkfifo(ca, 0o600))
	c := once(project.CheckHTTP, srv.URL)
	c.CA = ca
	got := ask(t, c)
	assert.False(t, got.Good)
	assert.Equal(t, ca+": not a regular file", got.Reason)
	require.NoError(t, os.Remove(ca))
	require.NoError(t, os.WriteFile(ca, nil, 0o600))
	require.NoError(t, os.Truncate(ca, 3<<40))
	assert.Contains(t, ask(t, c).Reason, "file too large")
}

// The attack: a program that responds with 190 characters before a secret. The line was truncated at 200 before secrets were looked for, and ten bytes of
// it were in the output.
func TestSecretsAreHiddenBeforeAnswersAreCut(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/json" {
			fmt.Fprintf(w, `{"state": "%s%s"}`, strings.Repeat("x", 90), secret)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%s%s\n", strings.Repeat("x", 190), secret)
	}))
	defer srv.Close()
	r := runner()
	r.Hide = func(s string) string { return strings.ReplaceAll(s, secret, "[pillar:key]") }
	answer, state := once(project.CheckHTTP, srv.URL), once(project.CheckHTTP, srv.URL+"/json")
	state.HTTP.JSON = []project.JSONValue{{Path: "state", Value: `"up"`}}
	command := once(project.CheckCommand, "printf '%0190d"+secret+"' 0; exit 1")
	out, err := r.Run(t.Context(), []project.Check{answer, state, command})
	require.NoError(t, err)
	for _, res := range out {
		assert.False(t, res.Good)
		assert.NotContains(t, res.Reason+strings.Join(res.Answer, "\n"), secret[:4])
		assert.Contains(t, res.Reason+strings.Join(res.Answer, "\n"), "[pill")
	}
}
