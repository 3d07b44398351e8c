package web_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/internal/db"
	"corpus-git/web"
)

// The attack: on the server's machine every local account reaches 127.0.0.1, and read there what all projects' deployments print. Nothing but /healthz is
// given to who carries neither the token nor a session.
func TestLoopbackIsNoRight(t *testing.T) {
	s := server(newMachine())
	for _, path := range []string{"/", "/projects/app", "/api/v1/projects", "/api/v1/projects/app/deployments/0198c2f4/events", "/metrics", "/assets/style.css", "/login", "/login?ticket=x", "/nope"} {
		res, body := get(t, s, path, "Authorization", "", "Cookie", "corpus-git=x")
		require.Equal(t, http.StatusUnauthorized, res.StatusCode, path)
		require.NotContains(t, body, "0198c2f4", path)
	}
	s.Token = ""
	res, _ := get(t, s, "/", "Authorization", "Bearer ")
	require.Equal(t, http.StatusUnauthorized, res.StatusCode, "no token lets nobody in")
	s.OpenMetrics = true
	res, _ = get(t, s, "/metrics", "Authorization", "")
	require.Equal(t, http.StatusOK, res.StatusCode)
	res, _ = get(t, s, "/healthz", "Authorization", "")
	require.Equal(t, http.StatusOK, res.StatusCode)
}

func TestLogin(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	defer d.Close()
	now := noon
	sessions, err := web.OpenSessions(t.Context(), d, func() time.Time { return now })
	require.NoError(t, err)
	s := server(newMachine())
	s.Sessions = sessions

	shared := 0
	s.Shared = func() { shared++ }
	ticket, err := sessions.Ticket(t.Context(), access.Local("root"))
	require.NoError(t, err)
	res, _ := get(t, s, "/login?ticket="+ticket, "Authorization", "")
	require.Equal(t, 1, shared, "the hub that leads next knows the session, and that the link was used")
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
	require.Equal(t, "/", res.Header.Get("Location"))
	require.Len(t, res.Cookies(), 1)
	c := res.Cookies()[0]
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	open := func(cookie string) int {
		t.Helper()
		res, _ := get(t, s, "/projects/app", "Authorization", "", "Cookie", c.Name+"="+cookie)
		return res.StatusCode
	}
	require.Equal(t, http.StatusOK, open(c.Value))

	// A link is good once, and no session; the database holds neither.
	res, _ = get(t, s, "/login?ticket="+ticket, "Authorization", "")
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	require.Equal(t, http.StatusUnauthorized, open(ticket))
	var hash string
	require.NoError(t, d.QueryRow(`SELECT hash FROM web_logins`).Scan(&hash))
	require.NotEqual(t, c.Value, hash)
	require.Equal(t, http.StatusUnauthorized, open(hash))

	// Both end.
	late, err := sessions.Ticket(t.Context(), access.Local("root"))
	require.NoError(t, err)
	now = now.Add(5 * time.Minute)
	res, _ = get(t, s, "/login?ticket="+late, "Authorization", "")
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	require.Equal(t, http.StatusOK, open(c.Value))
	now = now.Add(12 * time.Hour)
	require.Equal(t, http.StatusUnauthorized, open(c.Value))

	// A session has the rights of who it is, and ends with them.
	for name, want := range map[string]int{"marie": http.StatusOK, "removed": http.StatusUnauthorized} {
		ticket, err := sessions.Ticket(t.Context(), access.Identity{Name: name, Fingerprint: "SHA256:x"})
		require.NoError(t, err)
		res, _ := get(t, s, "/login?ticket="+ticket, "Authorization", "")
		require.Equal(t, want, open(res.Cookies()[0].Value), name)
	}
}
