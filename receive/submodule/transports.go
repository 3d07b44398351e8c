package submodule

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"corpus-git/git/pktline"
	"corpus-git/internal/fault"
)

// stream is a persistent connection for requests and answers.
type stream struct {
	in   io.Writer
	out  *bufio.Reader
	end  func()
	once sync.Once
	// greet is sent first.
	greet []byte
}

func (s *stream) open(context.Context) (*bufio.Reader, error) {
	if len(s.greet) > 0 {
		if _, err := s.in.Write(s.greet); err != nil {
			return nil, err
		}
	}
	return s.out, nil
}

func (s *stream) request(_ context.Context, body []byte) (*bufio.Reader, error) {
	_, err := s.in.Write(body)
	return s.out, err
}

func (s *stream) close() { s.once.Do(s.end) }

// dialGit opens git://. Source: gitprotocol-pack(5), "Git Transport".
func dialGit(ctx context.Context, a Address, to hosts) (transport, error) {
	conn, err := to.dial(ctx, "tcp", a.HostPort())
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := pktline.NewWriter(&b).Data([]byte("git-upload-pack " + a.path + "\x00host=" + a.host + "\x00\x00version=2\x00")); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &stream{in: conn, out: bufio.NewReaderSize(conn, pktline.MaxLine), end: func() { _ = conn.Close() }, greet: b.Bytes()}, nil
}

// Serve is git-upload-pack of a repository of this server, in protocol 2.
type Serve func(ctx context.Context, in io.Reader, out io.Writer) error

// pipeTo connects to a repository of this server.
func pipeTo(ctx context.Context, serve Serve) transport {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		err := serve(ctx, inR, outW)
		_ = outW.CloseWithError(err)
		_ = inR.CloseWithError(errHungUp)
	}()
	return &stream{in: inW, out: bufio.NewReaderSize(outR, pktline.MaxLine), end: func() {
		cancel()
		_ = inW.Close()
		_ = outR.Close()
		<-done
	}}
}

// web is smart HTTP. Source: gitprotocol-http(5).
type web struct {
	client  *http.Client
	a       Address
	base    *url.URL // URL of the repository, after redirects
	agent   string
	mu      sync.Mutex
	bodies  []io.Closer
	private bool // base still has the host that user and password are for
}

// maxRedirects is the maximum number of redirects that are followed.
const maxRedirects = 5

// newWeb returns a transport to a that uses client, whose CheckRedirect is replaced, and the connections of whose Transport are made by to.
func newWeb(client http.Client, a Address, agent string, to hosts) *web {
	client.Transport = to.transport(client.Transport)
	w := &web{a: a, agent: agent, base: &url.URL{Scheme: a.scheme, Host: a.host, Path: strings.TrimRight(a.path, "/"), RawQuery: ""}, private: true}
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		switch {
		case req.Method != http.MethodGet || via[0].Method != http.MethodGet:
			return errors.New("the server redirects a later request; only the first one may be redirected")
		case len(via) >= maxRedirects:
			return fmt.Errorf("the server redirects more than %d times", maxRedirects)
		case req.URL.Scheme != "https" && (req.URL.Scheme != "http" || via[0].URL.Scheme == "https"):
			return errors.New("the server redirects to an unsafe address")
		}
		return to.allowed(req.URL.Hostname())
	}
	w.client = &client
	return w
}

func (w *web) open(ctx context.Context) (*bufio.Reader, error) {
	u := *w.base
	u.Path += "/info/refs"
	u.RawQuery = "service=git-upload-pack"
	if w.a.query != "" {
		u.RawQuery = w.a.query + "&" + u.RawQuery
	}
	res, err := w.do(ctx, http.MethodGet, &u, nil) //nolint:bodyclose // close does
	if err != nil {
		return nil, err
	}
	final := *res.Request.URL
	w.private = strings.EqualFold(final.Hostname(), w.base.Hostname())
	path, ok := strings.CutSuffix(final.Path, "/info/refs")
	if !ok {
		return nil, errors.New("the redirect does not lead to a repository")
	}
	final.Path, final.RawPath, final.RawQuery = path, "", ""
	w.base = &final
	if typ, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); typ != "application/x-git-upload-pack-advertisement" {
		return nil, fault.New(fault.Refused, "", "not a git repository, or served by a plain web server (git's \"dumb\" protocol, which is not supported)").
			WithHint("open the URL in a browser; the repository must be served by git-http-backend or similar")
	}
	r := bufio.NewReaderSize(res.Body, pktline.MaxLine)
	// "# service=git-upload-pack" and a flush-pkt are sent first by most servers.
	if head, err := r.Peek(14); err == nil && string(head[4:]) == "# service=" {
		p := pktline.NewReader(r, pktline.Limits{Lines: 2})
		for range 2 {
			if kind, _, err := p.Line(); err != nil {
				return nil, cut(err)
			} else if kind == pktline.Flush {
				break
			}
		}
	}
	return r, nil
}

func (w *web) request(ctx context.Context, body []byte) (*bufio.Reader, error) {
	u := *w.base
	u.Path += "/git-upload-pack"
	u.RawQuery = w.a.query
	res, err := w.do(ctx, http.MethodPost, &u, body) //nolint:bodyclose // close does
	if err != nil {
		return nil, err
	}
	if typ, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); typ != "application/x-git-upload-pack-result" {
		return nil, fmt.Errorf("the server sent %.60q instead of a pack", typ)
	}
	return bufio.NewReaderSize(res.Body, pktline.MaxLine), nil
}

// do sends one HTTP request and returns a successful answer.
func (w *web) do(ctx context.Context, method string, u *url.URL, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("cannot request its URL")
	}
	if body == nil {
		req.Body = nil
	}
	req.Header.Set("User-Agent", w.agent)
	req.Header.Set("Git-Protocol", "version=2")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-git-upload-pack-request")
		req.Header.Set("Accept", "application/x-git-upload-pack-result")
	}
	if w.a.user != nil && w.private {
		pass, _ := w.a.user.Password()
		req.SetBasicAuth(w.a.user.Username(), pass)
	}
	res, err := w.client.Do(req)
	if err != nil {
		// A *url.Error quotes the URL, which may hold a password.
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, err
	}
	w.mu.Lock()
	w.bodies = append(w.bodies, res.Body)
	w.mu.Unlock()
	switch res.StatusCode {
	case http.StatusOK:
		return res, nil
	case http.StatusUnauthorized, http.StatusForbidden:
		what := "the server requires a user and a password"
		if w.a.user != nil {
			what = "the server rejected the user and password in the URL"
		}
		return nil, fault.New(fault.Refused, "", "%s (HTTP %d)", what, res.StatusCode).
			WithHint("many servers respond this way if a repository does not exist; otherwise use a URL that needs no password, or ssh")
	case http.StatusNotFound, http.StatusGone:
		return nil, fault.New(fault.Refused, "", "repository not found (HTTP %d)", res.StatusCode)
	}
	return nil, fmt.Errorf("the server responded with HTTP %d", res.StatusCode)
}

func (w *web) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.bodies {
		_ = b.Close()
	}
	w.bodies = nil
	w.client.CloseIdleConnections()
}
