package web

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"corpus-git/access"
	"corpus-git/internal/printable"
	"corpus-git/project/status"
	"corpus-git/signals"
	"corpus-git/web/acme"
	"corpus-git/web/api"
	"corpus-git/web/pages"
)

// Passwords checks passwords of directory users; *access.Store implements it.
type Passwords interface {
	// AsksPasswords reports whether a directory is configured.
	AsksPasswords() bool
	// SignIn returns the identity for a name and password; see access.Store.SignIn.
	SignIn(ctx context.Context, name, password, from string) (who access.Identity, ok bool, err error)
}

// Server serves HTTP. All exported fields are set before Serve and not changed afterwards.
type Server struct {
	// Config is what the pages show.
	pages.Config
	Metrics *Metrics
	// Outbox counts the deliveries of notifications for the metrics; nil leaves them out.
	Outbox func(context.Context) (Outbox, error)
	// Hubs returns what is known of the hubs, for the metrics; nil on a server without others.
	Hubs func(context.Context) (status.Hubs, error)
	// Token is a token for programs on this machine to read everything, as a bearer token or as the password of HTTP basic authentication; "" is none.
	Token string
	// Sessions are browser sessions; nil disables them.
	Sessions *Sessions
	// Passwords enables logins of directory users; nil disables them.
	Passwords Passwords
	// Certificate is what the server shows over TLS; nil speaks plain HTTP.
	Certificate *Certificate
	// ACME provides the certificates instead of Certificate; Close closes it. nil uses Certificate.
	ACME *acme.Certificates
	// Signals receives signals; nil accepts none. Audit records them.
	Signals Signals
	Audit   Audit
	// Shared is called before a signal, or the begin or end of a session, is confirmed, and returns when that cannot be lost; nil does nothing.
	Shared func()
	// Proxies are the networks of trusted reverse proxies, from which client address and protocol are accepted.
	Proxies []netip.Prefix
	// Forwarded: they use the header Forwarded (RFC 7239), not X-Forwarded-For and X-Forwarded-Proto.
	Forwarded bool
	// OpenMetrics lets everybody read /metrics.
	OpenMetrics bool
	// CheckEvery is how often the session or token of a streaming response is checked again; 0 means 15 seconds.
	CheckEvery time.Duration

	pages  *pages.Pages
	once   sync.Once
	server *http.Server
	end    context.CancelFunc
}

func (s *Server) init() {
	s.once.Do(func() {
		ctx, end := context.WithCancel(context.Background())
		s.end = end
		s.server = &http.Server{
			Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
			MaxHeaderBytes: 16 << 10, BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: log.New(serverLog{s.Log}, "", 0),
		}
	})
}

// serverLog writes what net/http reports into the server's log: panics as errors, the rest, such as a failed TLS handshake, which any client can cause, for debugging.
type serverLog struct{ log zerolog.Logger }

// Write implements io.Writer.
func (l serverLog) Write(p []byte) (int, error) {
	level := zerolog.DebugLevel
	if bytes.HasPrefix(p, []byte("http: panic")) {
		level = zerolog.ErrorLevel
	}
	l.log.WithLevel(level).Msg(strings.TrimSpace(printable.Text(string(p))))
	return len(p), nil
}

// Serve accepts connections on l until Close. It closes l.
func (s *Server) Serve(l net.Listener) error {
	s.init()
	serve := s.server.Serve
	overTLS := func(l net.Listener) error { return s.server.ServeTLS(l, "", "") }
	switch {
	case s.ACME != nil:
		s.server.TLSConfig, serve = s.ACME.TLS(), overTLS
		if err := s.ACME.Start(); err != nil {
			s.Log.Error().Err(err).Msg("TLS certificates by ACME")
		}
	case s.Certificate != nil:
		s.server.TLSConfig, serve = s.Certificate.config(), overTLS
	}
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends all requests, including streaming ones, and returns when they have ended or after five seconds.
func (s *Server) Close() error {
	s.init()
	s.end()
	if s.ACME != nil {
		if err := s.ACME.Close(); err != nil {
			s.Log.Error().Err(err).Msg("the listener of http-01 challenges")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		return s.server.Close()
	}
	return nil
}

// Handler returns the handler of all routes, with authentication.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	var err error
	if s.pages, err = pages.New(s.Config, reader{}); err != nil {
		panic(err) // a template that is in the program, and every test parses it
	}
	s.pages.Register(mux)
	mux.HandleFunc("POST /logout", s.logout)
	mux.HandleFunc(api.Prefix+"/", func(w http.ResponseWriter, r *http.Request) { s.API.Serve(w, r, identity(r)) })
	mux.Handle("GET /metrics", s.forAdmins(promhttp.HandlerFor(s.Metrics.registry(s), promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, ErrorLog: metricsLog{s.Log}})))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "nothing can be changed here", http.StatusMethodNotAllowed)
			return
		}
		s.pages.Problem(w, r, pages.NoPage())
	})
	// Browsers send the session cookie with requests of other sites, so those must not change anything.
	guarded := s.guard(http.NewCrossOriginProtection().Handler(mux))
	signal := s.signal(s.newFailures(), s.newFailures())
	return s.unwrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header())
		if s.Signals != nil && strings.HasPrefix(r.URL.Path, signals.Prefix) {
			signal(w, r)
			return
		}
		switch r.URL.Path {
		case "/healthz":
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = w.Write([]byte("ok\n"))
		case "/login":
			s.login(w, r)
		case "/assets/style.css", "/assets/icon.svg":
			if s.takesPassword(r) { // the form is shown before anybody is known; they print nothing
				mux.ServeHTTP(w, r)
				return
			}
			guarded.ServeHTTP(w, r)
		default:
			guarded.ServeHTTP(w, r)
		}
	}))
}

// headers sets the headers of every response.
func headers(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	h.Set("Cache-Control", "no-store")
}
