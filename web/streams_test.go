package web_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/internal/db"
	"corpus-git/web"
)

// revocable is an authority whose token of "reader" can end.
type revocable struct {
	authority
	revoked *atomic.Bool
}

func (a revocable) FindByToken(_ context.Context, secret, from string) (access.Identity, bool, error) {
	return access.Identity{Name: "reader", Fingerprint: "token:1", Admin: true, From: from}, secret == "reader" && !a.revoked.Load(), nil
}

// Valid is true of any session: that one has ended is known to the sessions alone.
func (a revocable) Valid(context.Context, access.Identity) (bool, error) { return true, nil }

// A session that ends and a token that is revoked end the streams that were opened with them, and no others.
func TestStreamsEndWithTheirCredential(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	defer d.Close()
	revoked := new(atomic.Bool)
	s := server(newMachine())
	s.Sessions, err = web.OpenSessions(t.Context(), d, time.Now)
	require.NoError(t, err)
	s.Access, s.CheckEvery = revocable{revoked: revoked}, 10*time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()

	client := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(method, path, header, value string, form url.Values) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+l.Addr().String()+path, strings.NewReader(form.Encode()))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(header, value)
		res, err := client.Do(r)
		require.NoError(t, err)
		return res
	}
	type stream struct {
		res   *http.Response
		ended chan error
	}
	follow := func(header, value string) stream {
		res := ask(http.MethodGet, "/projects/app/deployments/0298c2f6/lines", header, value, nil)
		require.Equal(t, http.StatusOK, res.StatusCode)
		f := stream{res, make(chan error, 1)}
		go func() {
			_, err := io.Copy(io.Discard, res.Body)
			f.ended <- err
		}()
		return f
	}
	session := func() string {
		ticket, err := s.Sessions.Ticket(t.Context(), access.Local("root"))
		require.NoError(t, err)
		res := ask(http.MethodGet, "/login?ticket="+ticket, "Accept", "text/html", nil)
		require.Len(t, res.Cookies(), 1)
		return res.Cookies()[0].Name + "=" + res.Cookies()[0].Value
	}
	leaves, stays := session(), session()
	byLeaving, byStaying, byToken := follow("Cookie", leaves), follow("Cookie", stays), follow("Authorization", "Bearer reader")

	home, err := io.ReadAll(ask(http.MethodGet, "/", "Cookie", leaves, nil).Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, ask(http.MethodPost, "/logout", "Cookie", leaves, url.Values{"token": {formToken(t, string(home))}}).StatusCode)
	require.NoError(t, <-byLeaving.ended)
	require.Empty(t, byToken.ended)
	revoked.Store(true)
	require.NoError(t, <-byToken.ended)
	require.Empty(t, byStaying.ended)
	require.NoError(t, byStaying.res.Body.Close())
	require.NoError(t, s.Close())
	require.NoError(t, <-done)
}
