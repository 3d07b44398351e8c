package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/internal/db"
	"corpus-git/project"
	"corpus-git/web"
)

// requests answers below the API's prefix, and remembers what it was asked.
type requests struct {
	asked   []string
	refuses bool
	// answer is the body of what succeeds.
	answer string
}

func (q *requests) Serve(w http.ResponseWriter, r *http.Request, who access.Identity) {
	body, _ := io.ReadAll(r.Body)
	q.asked = append(q.asked, who.Name+" "+r.Method+" "+r.URL.Path+" "+string(body))
	if q.refuses {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"status": 403, "detail": "not <b>now</b>", "hint": "later"}`)
		return
	}
	w.Header().Set("Location", "/api/v1/projects/app/deployments/"+string(idRun))
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, q.answer)
}

// browser is one that has logged in as somebody.
func browser(t *testing.T, s *web.Server, who access.Identity) (get func(path string) (int, string), post func(path string, form url.Values) (int, string, string)) {
	t.Helper()
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	s.Sessions, err = web.OpenSessions(t.Context(), d, func() time.Time { return noon })
	require.NoError(t, err)
	ticket, err := s.Sessions.Ticket(t.Context(), who)
	require.NoError(t, err)
	h := s.Handler()
	var cookie string
	ask := func(r *http.Request) *http.Response {
		r.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	c := ask(httptest.NewRequest(http.MethodGet, "/login?ticket="+ticket, nil)).Cookies()[0]
	cookie = c.Name + "=" + c.Value
	read := func(res *http.Response) string {
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return string(text)
	}
	get = func(path string) (int, string) {
		res := ask(httptest.NewRequest(http.MethodGet, path, nil))
		return res.StatusCode, read(res)
	}
	post = func(path string, form url.Values) (int, string, string) {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res := ask(r)
		return res.StatusCode, res.Header.Get("Location"), read(res)
	}
	return get, post
}

// formToken is what the forms of a page carry.
func formToken(t *testing.T, body string) string {
	t.Helper()
	m := regexp.MustCompile(`name="token" value="([0-9a-f]+)"`).FindStringSubmatch(body)
	require.NotNil(t, m, body)
	return m[1]
}

// A form becomes one request to the API, as the reader; its answer is the page that is shown.
func TestForms(t *testing.T) {
	m, q := newMachine(), &requests{}
	s := server(m)
	s.API, s.Tasks = q, tasksOf("migrate")
	get, post := browser(t, s, access.Local("root"))
	_, home := get("/")
	token := formToken(t, home)
	at := "/projects/app/deployments/" + string(idRun)
	live := string(m.live.Code) + " "
	for _, c := range []struct {
		path string
		form url.Values
		want string
		page string
	}{
		{"/projects/app/deploy", url.Values{"do": {"deploy"}, "set": {"data.port=8080\r\n\r\ndata.x=a=b\r\n"}, "steps": {"0100_build, 0200_run"}}, `POST /api/v1/projects/app/deploy {"set":{"data.port":"8080","data.x":"a=b"},"only_steps":["0100_build","0200_run"]}`, at},
		{"/projects/app/deploy", url.Values{"do": {"plan"}}, `POST /api/v1/projects/app/plan {}`, at},
		{"/projects/app/rollback", url.Values{"to": {string(idLive)}, "live": {live}}, `POST /api/v1/projects/app/rollback {"deployment":"` + string(idLive) + `"}`, at},
		{"/projects/app/rollback", url.Values{"to": {""}, "live": {live}}, `POST /api/v1/projects/app/rollback {}`, at},
		{"/projects/app/tasks", url.Values{"task": {"migrate"}, "set": {"data.to=3"}}, `POST /api/v1/projects/app/tasks/migrate {"set":{"data.to":"3"}}`, at},
		{"/projects/app/promote", url.Values{"where": {"project"}, "to": {"shop"}, "live": {live}, "env": {"ignored"}, "pillar": {"yes"}, "set": {"data.port=1"}, "do": {"plan"}}, `POST /api/v1/projects/app/promote {"set":{"data.port":"1"},"to":"shop","pillar":true,"plan":true}`, at},
		{"/projects/app/promote", url.Values{"where": {"environment"}, "env": {" qa "}, "to": {"shop"}, "force": {"yes"}, "live": {live}, "do": {"promote"}}, `POST /api/v1/projects/app/promote {"environment":"qa"}`, at},
		{at + "/cancel", url.Values{}, "POST /api/v1" + at + "/cancel null", at},
		{"/create", url.Values{"name": {"shop"}, "env": {"qa"}}, `POST /api/v1/projects {"name":"shop","env":"qa"}`, at},
		{"/keys", url.Values{"name": {"marie"}, "key": {"ssh-ed25519 AAAA"}, "admin": {"yes"}}, `POST /api/v1/keys {"name":"marie","key":"ssh-ed25519 AAAA","admin":true}`, "/keys"},
	} {
		q.asked = nil
		status, _, _ := post(c.path, c.form)
		require.Equal(t, http.StatusForbidden, status, "%s without the token of a form", c.path)
		require.Empty(t, q.asked, c.path)
		c.form.Set("token", token)
		status, location, body := post(c.path, c.form)
		require.Equal(t, http.StatusSeeOther, status, "%s\n%s", c.path, body)
		require.Equal(t, c.page, location)
		require.Equal(t, []string{"root " + c.want}, q.asked)
		if c.path == "/keys" {
			continue // shows the list of keys beside the form
		}
		q.refuses = true
		status, _, body = post(c.path, c.form)
		q.refuses = false
		require.Equal(t, http.StatusForbidden, status, c.path)
		require.Contains(t, body, "not &lt;b&gt;now&lt;/b&gt;")
		require.Contains(t, body, "hint: later")
		if status, body := get(c.path); c.path != at+"/cancel" || status == http.StatusOK {
			require.Equal(t, http.StatusOK, status, c.path)
			require.Contains(t, body, `<form`, "the page that asks first: %s", c.path)
		}
	}
	q.asked = nil
	for _, form := range []url.Values{{"to": {"absent"}, "live": {live}}, {"to": {"app"}, "live": {live}}, {"to": {"shop"}, "live": {"something else"}}, {"where": {"environment"}, "live": {live}}} {
		form.Set("token", token)
		status, _, body := post("/projects/app/promote", form)
		require.Equal(t, http.StatusForbidden, status, form)
		require.Contains(t, body, `role="alert"`)
		require.Empty(t, q.asked, form)
	}
	for path, form := range map[string]url.Values{
		"/projects/app/deploy":   {"token": {token}, "do": {"deploy"}, "set": {"nonsense"}},
		"/projects/app/tasks":    {"token": {token}, "task": {"none"}},
		"/projects/app/rollback": {"token": {token}, "live": {"something else"}},
	} {
		status, _, body := post(path, form)
		require.Contains(t, []int{http.StatusBadRequest, http.StatusForbidden}, status, path)
		require.Contains(t, body, `role="alert"`)
		require.Empty(t, q.asked, path)
	}
}

func tasksOf(names ...string) func(name project.Name) ([]string, error) {
	return func(project.Name) ([]string, error) { return names, nil }
}

// The attack: a session of one user is used with the form token of another, or a session's token is guessed. Whoever may only read sees no form, and a form
// that is sent all the same changes nothing.
func TestFormsAreForWhoMay(t *testing.T) {
	q := &requests{}
	s := server(newMachine())
	s.API = q
	open, post := browser(t, s, access.Local("root"))
	_, home := open("/")
	other := server(newMachine())
	other.API = q
	_, otherPost := browser(t, other, access.Local("root"))
	status, _, _ := otherPost("/projects/app/deploy", url.Values{"token": {formToken(t, home)}, "do": {"deploy"}})
	require.Equal(t, http.StatusForbidden, status, "the token of another session")
	status, _, _ = post("/projects/app/deploy", url.Values{"token": {""}})
	require.Equal(t, http.StatusForbidden, status)
	for _, path := range []string{"/projects/app/deploy", "/projects/app/rollback", "/projects/app/promote", "/projects/app/tasks", "/projects/app/deployments/0298c2f6/cancel", "/create"} {
		res, _ := get(t, s, path)
		require.Equal(t, http.StatusForbidden, res.StatusCode, "%s with the token that only reads", path)
		res, _ = get(t, s, path, "Authorization", "Bearer reader")
		require.Equal(t, http.StatusNotFound, res.StatusCode, path)
	}
	for _, path := range []string{"/audit", "/system", "/keys", "/projects/app/audit", "/projects/app/cfg", "/projects/app/access", "/projects/app/notifications", "/projects/app/changes"} {
		res, _ := get(t, s, path, "Authorization", "Bearer reader")
		require.Equal(t, http.StatusNotFound, res.StatusCode, path)
	}
	require.Empty(t, q.asked)
}

// Who logs out is out, at once.
func TestLogout(t *testing.T) {
	s := server(newMachine())
	get, post := browser(t, s, access.Local("root"))
	_, home := get("/")
	status, _, _ := post("/logout", url.Values{})
	require.Equal(t, http.StatusForbidden, status)
	status, _, _ = post("/logout", url.Values{"token": {formToken(t, home)}})
	require.Equal(t, http.StatusOK, status)
	status, _ = get("/")
	require.Equal(t, http.StatusUnauthorized, status)
}
