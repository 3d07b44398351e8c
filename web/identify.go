package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"corpus-git/access"
	"corpus-git/web/api"
	"corpus-git/web/pages"
)

// identityKey is the key of the identity in a request's context.
type identityKey struct{}

// identity returns the identity of a request, as determined by guard.
func identity(r *http.Request) access.Identity {
	who, _ := r.Context().Value(identityKey{}).(access.Identity)
	return who
}

// reader implements pages.Reader.
type reader struct{}

// Identity implements pages.Reader.
func (reader) Identity(r *http.Request) access.Identity { return identity(r) }

// Secret implements pages.Reader: the session, or what the client authenticates with.
func (reader) Secret(r *http.Request) string {
	if text := r.Header.Get("Authorization"); text != "" {
		return text
	}
	if c, err := r.Cookie(cookieName); err == nil {
		return c.Value
	}
	return ""
}

// localSession is the prefix of the stored name of a local user without a principal, who may do everything. Names of principals contain no colon.
const localSession = "local:"

// sessionOf returns the name that a session stores for an identity.
func sessionOf(who access.Identity) string {
	if who.Fingerprint == "" {
		return localSession + who.Name
	}
	return who.Name
}

// guard requires a token or a session cookie. It does so on every address, as other accounts of the machine can reach 127.0.0.1 too.
func (s *Server) guard(next http.Handler) http.Handler {
	failed := s.newFailures()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" && s.OpenMetrics {
			next.ServeHTTP(w, r)
			return
		}
		from := s.client(r)
		who, ok, err := s.identify(r, from)
		switch {
		case err != nil:
			code, text := s.pages.Fail(r, err)
			http.Error(w, text, code)
		case ok:
			ctx, stop := s.whileLoggedIn(r, from)
			defer stop()
			next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, identityKey{}, who)))
		case failed.tooMany(from):
			api.TooMany(w, time.Second)
		default:
			s.unauthorized(w, r)
		}
	})
}

// checkEvery is how often the credential of a streaming response is checked again.
const checkEvery = 15 * time.Second

// whileLoggedIn returns the context of a read, which ends when its session or token has ended, or its user was disabled or removed from the directory. Changes
// are not interrupted. stop stops the checks and waits for the last one.
func (s *Server) whileLoggedIn(r *http.Request, from string) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(r.Context())
	if r.Method != http.MethodGet {
		return ctx, cancel
	}
	r = r.WithContext(ctx)
	interval := s.CheckEvery
	if interval == 0 {
		interval = checkEvery
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		every := time.NewTicker(interval)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			if _, ok, err := s.identify(r, from); err != nil || !ok {
				cancel()
				return
			}
		}
	}()
	return ctx, func() {
		cancel()
		<-done
	}
}

// client returns the client address of a request.
func (s *Server) client(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// identify determines the identity of a request.
func (s *Server) identify(r *http.Request, from string) (who access.Identity, ok bool, err error) {
	secret, sent := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !sent {
		_, secret, sent = r.BasicAuth()
	}
	if sent {
		if s.Token != "" && same(secret, s.Token) {
			return access.Identity{Name: "http_token", Admin: true, ReadOnly: true, From: from}, true, nil
		}
		if who, ok, err = s.Access.FindByToken(r.Context(), secret, from); err == nil && ok {
			if uerr := s.Access.Used(r.Context(), who.Fingerprint); uerr != nil {
				s.Log.Warn().Err(uerr).Msg("note that a token was used")
			}
		}
		return who, ok, err
	}
	name, ok, err := s.session(r)
	if err != nil || !ok {
		return who, false, err
	}
	if user, local := strings.CutPrefix(name, localSession); local {
		return access.LocalAt(user, from), true, nil
	}
	return s.Access.ForSession(r.Context(), name, from)
}

// same compares secrets in constant time.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// forAdmins requires an administrator, unless the metrics are public, as they name every project.
func (s *Server) forAdmins(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.OpenMetrics {
			admin, err := s.Access.IsAdmin(r.Context(), identity(r))
			if err == nil && !admin {
				err = pages.NoPage()
			}
			if err != nil {
				s.pages.Problem(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// failures limits failed authentications by address.
type failures struct {
	now func() time.Time
	mu  sync.Mutex
	all map[string]*rate.Limiter
}

// maxAddresses is how many addresses are tracked before all are reset, failuresBurst how many failures are allowed in a burst; the average is one per second.
const (
	maxAddresses  = 10000
	failuresBurst = 30
)

func (s *Server) newFailures() *failures {
	return &failures{now: s.Now, all: map[string]*rate.Limiter{}}
}

func (f *failures) tooMany(from string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.all[from]
	if l == nil {
		if len(f.all) >= maxAddresses {
			clear(f.all)
		}
		l = rate.NewLimiter(1, failuresBurst)
		f.all[from] = l
	}
	return !l.AllowN(f.now(), 1)
}
