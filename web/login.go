package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"corpus-git/access"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/web/api"
)

const (
	// ticketLife is how long a login link is valid, and sessionLife how long its session lasts.
	ticketLife  = 5 * time.Minute
	sessionLife = 12 * time.Hour
	// cookieName is the name of the session cookie.
	cookieName = "corpus-git"
)

// Sessions stores browser sessions and login links. The database contains only hashes, so it cannot be used to log in.
type Sessions struct {
	db  *sql.DB
	now func() time.Time
}

// OpenSessions migrates the tables. It does not close the database.
func OpenSessions(ctx context.Context, d *sql.DB, now func() time.Time) (*Sessions, error) {
	// Sessions of older versions stored only a display name, and end here.
	err := db.Migrate(ctx, d, "web", []string{`CREATE TABLE web_logins (hash TEXT PRIMARY KEY, ticket INTEGER NOT NULL, who TEXT NOT NULL, ends INTEGER NOT NULL)`,
		`DELETE FROM web_logins`})
	if err != nil {
		return nil, err
	}
	return &Sessions{db: d, now: now}, nil
}

// Ticket returns the secret of a login link for one login as who within five minutes.
func (s *Sessions) Ticket(ctx context.Context, who access.Identity) (string, error) {
	if _, err := s.db.ExecContext(ctx, `DELETE FROM web_logins WHERE ends <= ?`, s.now().Unix()); err != nil {
		return "", err
	}
	return s.add(ctx, s.db, sessionOf(who), true, ticketLife)
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (s *Sessions) add(ctx context.Context, to execer, who string, ticket bool, life time.Duration) (string, error) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	text := hex.EncodeToString(b[:])
	_, err := to.ExecContext(ctx, `INSERT INTO web_logins(hash, ticket, who, ends) VALUES(?, ?, ?, ?)`, hashed(text), ticket, who, s.now().Add(life).Unix())
	return text, err
}

// exchange returns a session for a ticket, once. ok is false if it is unknown, used or expired.
func (s *Sessions) exchange(ctx context.Context, ticket string) (session string, ok bool, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = tx.Rollback() }()
	var who string
	err = tx.QueryRowContext(ctx, `DELETE FROM web_logins WHERE hash = ? AND ticket = 1 AND ends > ? RETURNING who`, hashed(ticket), s.now().Unix()).Scan(&who)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	if err == nil {
		session, err = s.add(ctx, tx, who, false, sessionLife)
	}
	if err == nil {
		err = tx.Commit()
	}
	return session, err == nil, err
}

// who returns the user of a session; ok is false if it is unknown or has ended.
func (s *Sessions) who(ctx context.Context, session string) (who string, ok bool, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT who FROM web_logins WHERE hash = ? AND ticket = 0 AND ends > ?`, hashed(session), s.now().Unix()).Scan(&who)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return who, err == nil, err
}

// end deletes a session.
func (s *Sessions) end(ctx context.Context, session string) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM web_logins WHERE hash = ? AND ticket = 0`, hashed(session))
	return err
}

// hashed returns the stored hash of a secret, which is long and random, so a plain hash is enough.
func hashed(secret string) string {
	h := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(h[:])
}

// takesPassword reports whether password logins are allowed: there is a directory, and the connection is private.
func (s *Server) takesPassword(r *http.Request) bool {
	if s.Passwords == nil || s.Sessions == nil || !s.Passwords.AsksPasswords() {
		return false
	}
	if f, ok := forwardedOf(r); ok {
		return f.https && f.private
	}
	ip := net.ParseIP(s.client(r))
	return r.TLS != nil || ip != nil && ip.IsLoopback() && !proxied(r)
}

// proxied reports whether a request from loopback came through an untrusted proxy on this machine, so its client may be anywhere. Proxies are recognised by
// headers (RFC 7239, RFC 9110 7.6.3, and older ones) or by HTTP/1.0, nginx's default, which no browser uses.
func proxied(r *http.Request) bool {
	for _, h := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"} {
		if len(r.Header.Values(h)) > 0 {
			return true
		}
	}
	return !r.ProtoAtLeast(1, 1)
}

// maxForm is the maximum size of a login form, in bytes.
const maxForm = 8 << 10

// password starts a session for a directory user. The response is the same for an unknown name and a wrong password.
func (s *Server) password(w http.ResponseWriter, r *http.Request) {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		http.Error(w, "this form is of another site", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form could not be read", http.StatusBadRequest)
		return
	}
	who, ok, err := s.Passwords.SignIn(r.Context(), r.PostForm.Get("name"), r.PostForm.Get("password"), s.client(r))
	if err != nil {
		c, text := s.pages.Fail(r, err)
		s.loginForm(w, r, c, text)
		return
	}
	if !ok {
		s.loginForm(w, r, http.StatusUnauthorized, "The name or the password is wrong.")
		return
	}
	session, err := s.Sessions.add(r.Context(), s.Sessions.db, sessionOf(who), false, sessionLife)
	if err != nil {
		c, text := s.pages.Fail(r, err)
		s.loginForm(w, r, c, text)
		return
	}
	s.begin(w, r, session)
}

func (s *Server) loginForm(w http.ResponseWriter, r *http.Request, code int, wrong string) {
	s.pages.Login(w, r, code, wrong)
}

// begin sets the session cookie.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, session string) {
	s.shared() // or the next hub that leads knows neither the session, nor that its link was used
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: session, Path: "/", MaxAge: int(sessionLife / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure(r),
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// login starts a session with a link from  corpus-git web login , or with the password of a directory user.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if s.takesPassword(r) && !r.URL.Query().Has("ticket") {
		switch r.Method {
		case http.MethodGet:
			s.loginForm(w, r, http.StatusOK, "")
			return
		case http.MethodPost:
			s.password(w, r)
			return
		}
	}
	if r.Method != http.MethodGet || s.Sessions == nil {
		s.unauthorized(w, r)
		return
	}
	session, ok, err := s.Sessions.exchange(r.Context(), r.URL.Query().Get("ticket"))
	switch {
	case err != nil:
		c, text := s.pages.Fail(r, err)
		http.Error(w, text, c)
	case !ok:
		http.Error(w, "this link was used, or is too old; another one:  corpus-git web login", http.StatusUnauthorized)
	default:
		s.begin(w, r, session)
	}
}

// logout ends the session of the browser.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if err := s.pages.Parse(w, r); err != nil {
		s.pages.Problem(w, r, err)
		return
	}
	if c, err := r.Cookie(cookieName); err == nil && s.Sessions != nil {
		if err := s.Sessions.end(r.Context(), c.Value); err != nil {
			s.pages.Problem(w, r, err)
			return
		}
		s.shared()
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure(r)})
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("You are logged out.\n"))
}

// session returns the user of the session of a request.
func (s *Server) session(r *http.Request) (who string, ok bool, err error) {
	c, err := r.Cookie(cookieName)
	if err != nil || s.Sessions == nil {
		return "", false, nil
	}
	return s.Sessions.who(r.Context(), c.Value)
}

const howToLogIn = "log in with the link that  corpus-git web login  prints, or send an API token (corpus-git token create)"

func (s *Server) unauthorized(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.Header.Get("Authorization") == "" && r.URL.Path != "/login" && strings.Contains(r.Header.Get("Accept"), "text/html") && s.takesPassword(r) {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	w.Header().Add("WWW-Authenticate", `Bearer realm="corpus-git"`)
	w.Header().Add("WWW-Authenticate", `Basic realm="corpus-git: any user, the token as password", charset="UTF-8"`)
	if strings.HasPrefix(r.URL.Path, api.Prefix+"/") {
		api.WriteProblem(w, api.Problem{Status: http.StatusUnauthorized, Detail: "this needs a token or a session", Hint: howToLogIn, Kind: fault.Refused.String(), Exit: fault.Refused.ExitCode()})
		return
	}
	http.Error(w, howToLogIn, http.StatusUnauthorized)
}
