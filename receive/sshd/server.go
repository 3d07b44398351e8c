package sshd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	gliderssh "github.com/gliderlabs/ssh"
	"github.com/rs/zerolog"
	gossh "golang.org/x/crypto/ssh"

	"corpus-git/access"
)

// Keys looks up who may log in; access.Store satisfies it.
type Keys interface {
	// Identify returns the identity for a key or a certificate; ok is false for an unknown one.
	Identify(ctx context.Context, o access.Offer) (who access.Identity, ok bool, err error)
}

// Handler serves one session and returns its exit status. ctx ends when the client closes the session, sends a signal, or does not answer.
type Handler interface {
	Serve(ctx context.Context, s *Session) (exit int)
}

// Server is the SSH server. All exported fields are set before Serve and not changed afterwards.
type Server struct {
	// HostKeys, Keys and Handler are required. A client uses the first of HostKeys whose type it supports.
	HostKeys []gossh.Signer
	Keys     Keys
	Handler  Handler
	// Refuse sends a client the reason why its command does not reach the Handler, in its own protocol, and returns the exit status. Nil
	// writes to standard error.
	Refuse func(sess *Session, err error) int
	// Version is shown in the protocol's first line, "SSH-2.0-corpus-git_<Version>".
	Version string
	// Limits are the initial ones; SetLimits changes them.
	Limits Limits
	// Now is the clock; nil means time.Now. Network deadlines use the machine's.
	Now func() time.Time
	// Log receives messages about ended connections and errors. The zero Logger logs nothing.
	Log zerolog.Logger
	// RefusedLogin is called for a connection that offered keys and failed to log in: its address, the user, and the last key's
	// fingerprint. A source is reported once within Limits.Penalty. It may be nil.
	RefusedLogin func(from, user, fingerprint string)
	// LoggedIn is called for every login. It may be nil.
	LoggedIn func(access.Identity)

	keys      atomic.Pointer[servedKeys] // nil: HostKeys
	once      sync.Once
	admission *admission
	handlers  handlers
	limits    atomic.Pointer[Limits]
	mu        sync.Mutex
	closing   bool
	lns       map[net.Listener]struct{}
	conns     map[*conn]struct{}
	sessions  int
	running   map[*Session]func(err error) // ends a session
	empty     chan struct{}                // closed when the server is closing and no session is running
}

// ErrClosed is what Serve returns after Shutdown or Close.
var ErrClosed = errors.New("ssh server closed")

func (s *Server) init() {
	s.once.Do(func() {
		if s.Now == nil {
			s.Now = time.Now
		}
		l := s.Limits.WithDefaults()
		s.limits.Store(&l)
		s.admission = &admission{limits: l, now: s.Now}
		s.lns = map[net.Listener]struct{}{}
		s.conns = map[*conn]struct{}{}
		s.running = map[*Session]func(error){}
		s.handlers = s.newHandlers()
		s.empty = make(chan struct{})
	})
}

// SetLimits changes the limits at any time. Open connections keep their timeouts; the limits on counts apply immediately, and disconnect
// nobody.
func (s *Server) SetLimits(l Limits) {
	s.init()
	l = l.WithDefaults()
	s.limits.Store(&l)
	s.admission.set(l)
}

// Serve accepts connections on l until Shutdown or Close, and then returns ErrClosed. It closes l.
func (s *Server) Serve(l net.Listener) error {
	s.init()
	defer l.Close()
	if len(s.HostKeys) == 0 || s.Keys == nil || s.Handler == nil {
		return errors.New("ssh server without a host key, keys or a handler")
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ErrClosed
	}
	s.lns[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.lns, l)
		s.mu.Unlock()
	}()
	var pause time.Duration
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			go s.serve(nc)
			continue
		}
		s.mu.Lock()
		closing := s.closing
		s.mu.Unlock()
		if closing {
			return ErrClosed
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		// Out of descriptors, or the connection was closed before it was accepted: retry later.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.Log.Warn().Err(err).Stringer("pause", pause).Msg("accept failed")
		time.Sleep(pause)
	}
}

// serve takes one connection from its first byte to its last.
func (s *Server) serve(nc net.Conn) {
	c := newConn(nc, *s.limits.Load())
	why, out := s.admission.enter(c)
	if out != nil {
		out.end("closed in favour of another one: too many connections that have not logged in, most of them from this address (limits.max_unauthenticated)")
	}
	if why != "" {
		// Repeated failures of a source are logged once within the penalty period.
		level := zerolog.DebugLevel
		silent, report := s.admission.countRefusal(c.source)
		if report {
			level = zerolog.WarnLevel
		}
		s.Log.WithLevel(level).Str("from", nc.RemoteAddr().String()).Str("why", why).Int("before_unreported", silent).Msg("connection refused")
		// RFC 4253, 4.2: lines before the version string are allowed; ssh -v shows them.
		_ = nc.SetDeadline(time.Now().Add(time.Second))
		_, _ = fmt.Fprintf(nc, "corpus-git: %s, try again later\r\n", why)
		_ = nc.Close()
		return
	}
	c.onClose = func() { s.left(c) }
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		_ = c.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	if err := c.start(); err != nil {
		_ = c.Close()
		return
	}
	s.library(c).HandleConn(c)
	_ = c.Close()
}

// left is called once when a connection is closed.
func (s *Server) left(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	in := c.authenticated.Load()
	if why := c.why(); why != "" {
		s.Log.Info().Str("from", c.RemoteAddr().String()).Str("why", why).Msg("connection ended")
	}
	failed := !in && c.offered.Load() > 0
	if report := s.admission.leave(c, in, failed); !report {
		return
	}
	user, fp := "", ""
	if p := c.lastOffer.Load(); p != nil {
		fp, user, _ = cutOffer(*p)
	}
	s.Log.Warn().Str("from", c.RemoteAddr().String()).Str("user", user).Str("key", fp).Msg("login refused")
	if s.RefusedLogin != nil {
		s.RefusedLogin(c.RemoteAddr().String(), user, fp)
	}
}

type stateKey struct{}

// state is the result of authentication, in the Permissions, which belong to the verified key alone.
type state struct {
	id   access.Identity
	conn *conn
}

// library configures gliderlabs/ssh for one connection. Each has its own Server value, so that callbacks know their connection without a
// context.
func (s *Server) library(c *conn) *gliderssh.Server {
	return &gliderssh.Server{
		Version:     "corpus-git_" + s.Version,
		HostSigners: s.hostSigners(c),
		// This one must be set, or the library sets NoClientAuth. It only decides whether to request a signature by the key;
		// VerifiedPublicKeyCallback determines the identity.
		PublicKeyHandler: func(ctx gliderssh.Context, key gliderssh.PublicKey) bool {
			c.offered.Add(1)
			offer := access.Fingerprint(key) + "\x00" + ctx.User()
			c.lastOffer.Store(&offer)
			_, ok, err := s.Keys.Identify(ctx, access.Offer{Key: key, User: ctx.User(), From: c.RemoteAddr().String()})
			if err != nil {
				s.Log.Error().Err(err).Msg("looking a key up")
			}
			return ok && err == nil
		},
		ServerConfigCallback: func(ctx gliderssh.Context) *gossh.ServerConfig {
			return &gossh.ServerConfig{
				MaxAuthTries: c.limits.AuthTries,
				VerifiedPublicKeyCallback: func(meta gossh.ConnMetadata, key gossh.PublicKey, _ *gossh.Permissions, _ string) (*gossh.Permissions, error) {
					id, ok, err := s.Keys.Identify(ctx, access.Offer{Key: key, User: meta.User(), From: c.RemoteAddr().String(), Proven: true})
					if err != nil || !ok {
						return nil, errors.New("permission denied")
					}
					if !c.loggedIn() {
						return nil, errors.New("logged in already")
					}
					s.admission.authenticated(c)
					return &gossh.Permissions{ExtraData: map[any]any{stateKey{}: &state{id: id, conn: c}}}, nil
				},
			}
		},
		ConnectionFailedCallback: func(_ net.Conn, err error) {
			s.Log.Debug().Str("from", c.RemoteAddr().String()).Err(err).Msg("connection failed")
		},
		ChannelHandlers:   s.handlers.channels,
		RequestHandlers:   s.handlers.requests,
		SubsystemHandlers: s.handlers.subsystems,
	}
}

// handlers are the maps of the library's configuration, which it reads only: the same for all connections.
type handlers struct {
	channels   map[string]gliderssh.ChannelHandler
	requests   map[string]gliderssh.RequestHandler
	subsystems map[string]gliderssh.SubsystemHandler
}

func (s *Server) newHandlers() handlers {
	return handlers{
		channels: map[string]gliderssh.ChannelHandler{
			"session": func(_ *gliderssh.Server, sc *gossh.ServerConn, nch gossh.NewChannel, _ gliderssh.Context) {
				s.channel(sc, nch)
			},
			"default": func(_ *gliderssh.Server, _ *gossh.ServerConn, nch gossh.NewChannel, _ gliderssh.Context) {
				_ = nch.Reject(gossh.Prohibited, "forwarding is not supported")
			},
		},
		// Empty, not nil: nil means the library's defaults. All other global requests are answered with failure, which is what a client's
		// keepalive expects.
		requests:   map[string]gliderssh.RequestHandler{hostkeysProve: s.prove},
		subsystems: map[string]gliderssh.SubsystemHandler{},
	}
}

// hostSigners returns the host keys for one connection, which is notified when one signs, since the client has then sent its part of the
// key exchange.
func (s *Server) hostSigners(c *conn) []gliderssh.Signer {
	keys := s.hostKeys().current
	out := make([]gliderssh.Signer, len(keys))
	for i, k := range keys {
		out[i] = k
		if m, ok := k.(gossh.MultiAlgorithmSigner); ok {
			out[i] = hostSigner{m, c.exchanged}
		}
	}
	return out
}

type hostSigner struct {
	gossh.MultiAlgorithmSigner
	used func()
}

// Sign implements gossh.Signer.
func (h hostSigner) Sign(rand io.Reader, data []byte) (*gossh.Signature, error) {
	h.used()
	return h.MultiAlgorithmSigner.Sign(rand, data)
}

// SignWithAlgorithm implements gossh.AlgorithmSigner.
func (h hostSigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*gossh.Signature, error) {
	h.used()
	return h.MultiAlgorithmSigner.SignWithAlgorithm(rand, data, algorithm)
}

func cutOffer(s string) (fp, user string, ok bool) {
	for i := range s {
		if s[i] == 0 {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// begin counts a session, unless the server is closing.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.sessions++
	return true
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions--
	if s.closing && s.sessions == 0 {
		close(s.empty)
	}
}

// Shutdown stops listening and refuses new sessions with "try again", waits until running sessions have ended, and then closes all
// connections. If ctx ends first, it closes them immediately and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.init()
	s.mu.Lock()
	if !s.closing {
		s.closing = true
		if s.sessions == 0 {
			close(s.empty)
		}
	}
	for l := range s.lns {
		_ = l.Close()
	}
	s.mu.Unlock()
	var err error
	select {
	case <-s.empty:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	return err
}

// Close is Shutdown without waiting.
func (s *Server) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Shutdown(ctx)
	return nil
}
