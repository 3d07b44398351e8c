package web

import (
	"context"
	"errors"
	"iter"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"corpus-git/access"
	"corpus-git/internal/event"
	"corpus-git/project"
	"corpus-git/project/status"
	"corpus-git/web/api"
)

// Status fills the documents; *status.Source satisfies it.
type Status interface {
	All(ctx context.Context) ([]status.Project, error)
	Project(ctx context.Context, name project.Name) (status.Project, error)
	Report(ctx context.Context, name project.Name, limit int) (status.Report, error)
	ArchivesOf(ctx context.Context, name project.Name) ([]status.Archive, error)
}

// Runs are the deployments; the pipeline satisfies it.
type Runs interface {
	Deployments(ctx context.Context, name project.Name, limit int) ([]project.Record, error)
	Find(ctx context.Context, name project.Name, prefix string) (project.Record, error)
	Follow(ctx context.Context, id project.ID, seq uint64) iter.Seq2[event.Event, error]
	Queue(ctx context.Context, name project.Name) (project.Queue, error)
}

// Checks are the checks that run periodically; *watch.Watcher satisfies it.
type Checks interface {
	States(name project.Name) []project.CheckState
	History(ctx context.Context, name project.Name, limit int) ([]project.CheckPeriod, error)
}

// Passwords knows the passwords of a directory's users; *access.Store does.
type Passwords interface {
	// AsksPasswords reports whether there is a directory now.
	AsksPasswords() bool
	// SignIn tells who gives a name and its password; see access.Store.SignIn.
	SignIn(ctx context.Context, name, password, from string) (who access.Identity, ok bool, err error)
}

// API answers what is below api.Prefix; *api.API satisfies it.
type API interface {
	Serve(w http.ResponseWriter, r *http.Request, who access.Identity)
}

// Server answers HTTP. All exported fields are set before Serve and not changed after.
type Server struct {
	Status Status
	Runs   Runs
	// Units gives what a project runs, with the last lines of their logs; nil shows none.
	Units func(ctx context.Context, name project.Name) ([]project.UnitState, error)
	// Checks are the checks that run periodically; nil shows none.
	Checks  Checks
	Metrics *Metrics
	// Access knows who sends a token or a session, and what they may read.
	Access access.Authority
	API    API
	// Token lets a program of this machine read everything, as a bearer token or as the password of HTTP basic authentication; "" lets nobody in.
	Token string
	// Sessions let browsers in; nil lets none in.
	Sessions *Sessions
	// Passwords lets the users of a directory log in on the pages; nil lets none.
	Passwords Passwords
	// Certificate is what the server shows over TLS; nil speaks plain HTTP.
	Certificate *Certificate
	// OpenMetrics lets everybody read /metrics.
	OpenMetrics bool
	// Host is this machine's name, Release our version, for the pages.
	Host, Release string
	Now           func() time.Time
	Log           zerolog.Logger

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
			MaxHeaderBytes: 16 << 10, BaseContext: func(net.Listener) context.Context { return ctx },
		}
	})
}

// Serve accepts connections on l until Close. It closes l.
func (s *Server) Serve(l net.Listener) error {
	s.init()
	serve := s.server.Serve
	if s.Certificate != nil {
		s.server.TLSConfig = s.Certificate.config()
		serve = func(l net.Listener) error { return s.server.ServeTLS(l, "", "") }
	}
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends all requests, those that follow a log too, and returns when they have ended or after five seconds.
func (s *Server) Close() error {
	s.init()
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		return s.server.Close()
	}
	return nil
}

// Handler is all routes, guarded.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.home)
	mux.HandleFunc("GET /projects/{name}", s.project)
	mux.HandleFunc("GET /projects/{name}/deployments/{id}", s.deployment)
	mux.HandleFunc("GET /projects/{name}/deployments/{id}/lines", s.lines)
	mux.HandleFunc("GET /assets/{file}", s.asset)
	mux.HandleFunc(api.Prefix+"/", func(w http.ResponseWriter, r *http.Request) { s.API.Serve(w, r, identity(r)) })
	mux.Handle("GET /metrics", s.forAdmins(promhttp.HandlerFor(s.Metrics.registry(s), promhttp.HandlerOpts{})))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "nothing can be changed here", http.StatusMethodNotAllowed)
			return
		}
		s.problem(w, r, notFound("there is no such page"))
	})
	// A browser sends its session with what a foreign site has it send: that site's requests change nothing.
	guarded := s.guard(http.NewCrossOriginProtection().Handler(mux))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header())
		switch r.URL.Path {
		case "/healthz":
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = w.Write([]byte("ok\n"))
		case "/login":
			s.login(w, r)
		case "/assets/style.css", "/assets/icon.svg":
			if s.takesPassword(r) { // the form is shown before anybody is known; they say nothing
				mux.ServeHTTP(w, r)
				return
			}
			guarded.ServeHTTP(w, r)
		default:
			guarded.ServeHTTP(w, r)
		}
	})
}

// headers are those of every answer.
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
