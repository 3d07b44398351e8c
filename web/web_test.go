package web_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/internal/audit"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/testutil"
	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/project/status"
	"corpus-git/web"
	"corpus-git/web/pages"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const (
	idLive = project.ID("0198c2f4-0000-4000-8000-000000000001")
	idRun  = project.ID("0298c2f6-0000-4000-8000-000000000002")
)

// machine has one project with a deployment that ended and one that runs.
type machine struct {
	live project.Record
	run  project.Record
	// more are the events of the running deployment that are still to come.
	more chan event.Event
	fail error
}

func newMachine() *machine {
	return &machine{
		live: project.Record{
			Deployment: project.Deployment{ID: idLive, Project: "app", Trigger: project.TriggerPush, Code: "3f2a9c1000000000000000000000000000000000", At: noon.Add(-time.Hour),
				Pusher: project.Pusher{Key: "<script>alert(1)</script>"}},
			State: project.RolledBack, Result: &project.Result{State: project.RolledBack, Reason: "failed in <b>0100</b>", Started: noon.Add(-time.Hour), Ended: noon.Add(-time.Hour + time.Second),
				Outputs: []project.Output{{Step: "010_build", Name: "version", Value: []byte(`"<i>1</i>"`)}, {Step: "010_build", Name: "token", Secret: true}}},
		},
		run:  project.Record{Deployment: project.Deployment{ID: idRun, Project: "app", Trigger: project.TriggerRedeploy, At: noon, Pusher: project.Pusher{Key: "bot"}}, State: project.Running, Step: "0100_build", Estimate: &project.Estimate{Median: 40 * time.Second, P90: time.Minute, Runs: 3}},
		more: make(chan event.Event, 8),
	}
}

func (m *machine) Project(_ context.Context, name project.Name) (status.Project, error) {
	if m.fail != nil {
		return status.Project{}, m.fail
	}
	if name == "shop" || name == "bare" {
		return status.Project{Name: name}, nil
	}
	if name != "app" {
		return status.Project{}, fault.New(fault.Refused, "", "no project %s", name)
	}
	return status.Project{Name: "app", Env: "prod", Branch: "master", Code: m.live.Code, Last: &m.live, Running: &m.run, Waiting: 2, Created: noon}, nil
}

func (m *machine) All(ctx context.Context) ([]status.Project, error) {
	p, err := m.Project(ctx, "app")
	return []status.Project{p}, err
}

func (m *machine) Report(ctx context.Context, name project.Name, limit int) (status.Report, error) {
	p, err := m.Project(ctx, name)
	recs, _ := m.Deployments(ctx, name, limit)
	return status.Report{Project: p, Deployments: recs, Queue: project.Queue{Running: &m.run}, Archives: []status.Archive{{ID: idLive, Name: "2026_x", At: noon, Pinned: true, Verdict: project.Live}}}, err
}

func (m *machine) ArchivesOf(ctx context.Context, name project.Name) ([]status.Archive, error) {
	rep, err := m.Report(ctx, name, 1)
	return rep.Archives, err
}

func (m *machine) Deployments(_ context.Context, _ project.Name, limit int) ([]project.Record, error) {
	all := []project.Record{m.run, m.live}
	return all[:min(limit, len(all))], nil
}

func (m *machine) Find(_ context.Context, _ project.Name, prefix string) (project.Record, error) {
	for _, r := range []project.Record{m.run, m.live} {
		if strings.HasPrefix(string(r.ID), prefix) {
			return r, nil
		}
	}
	return project.Record{}, fault.New(fault.Refused, "", "no deployment %s", prefix)
}

func (m *machine) Before(context.Context, project.Name, project.ID, int) ([]project.Record, error) {
	return nil, nil
}

// written is what Follow gives before it waits.
func (m *machine) written(_ project.Name, id project.ID) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range m.Follow(context.Background(), id, 0) {
			if !yield(e, err) || id != idLive && len(m.more) == 0 {
				return
			}
		}
	}
}

func (m *machine) List(context.Context) ([]registry.Project, error) {
	return []registry.Project{{Name: "app"}, {Name: "shop"}, {Name: "bare", RemoteLess: true}}, m.fail
}

func (m *machine) Describe(ctx context.Context, projects []registry.Project) (out []status.Project, err error) {
	for _, p := range projects {
		at, err := m.Project(ctx, p.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, at)
	}
	return out, nil
}

func (m *machine) Queue(context.Context, project.Name) (project.Queue, error) {
	return project.Queue{Running: &m.run}, nil
}

func (m *machine) Follow(ctx context.Context, id project.ID, seq uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if seq < 1 && !yield(event.Event{Seq: 1, Time: noon, Kind: event.Head, Text: "app  <img src=x onerror=alert(1)>"}, nil) {
			return
		}
		if id == idLive {
			yield(event.Event{Seq: 2, Time: noon, Kind: event.Verdict, Status: event.Bad, Text: "rolled back"}, nil)
			return
		}
		for {
			select {
			case e, open := <-m.more:
				if !open || !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				yield(event.Event{}, ctx.Err())
				return
			}
		}
	}
}

// authority lets in who has the token of a user called "reader", who may read "mine" only, and asks nothing else.
type authority struct{ access.Authority }

func (authority) FindByToken(_ context.Context, secret, from string) (access.Identity, bool, error) {
	return access.Identity{Name: "reader", Fingerprint: "token:1", From: from}, secret == "reader", nil
}
func (authority) ForSession(_ context.Context, name, from string) (access.Identity, bool, error) {
	return access.Identity{Name: name, Fingerprint: "session", Admin: true, From: from}, name == "marie", nil
}
func (authority) Can(_ context.Context, who access.Identity, name project.Name, _ project.Right) (bool, error) {
	return who.Admin || name == "mine", nil
}
func (authority) Rights(ctx context.Context, who access.Identity) (access.Rights, error) {
	if who.Admin { // a local identity is what it says, in the real one, too
		return (&access.Store{}).Rights(ctx, access.Local("root"))
	}
	return access.Rights{}, nil
}
func (authority) IsAdmin(_ context.Context, who access.Identity) (bool, error) { return who.Admin, nil }
func (authority) Used(context.Context, string) error                           { return nil }

// resources answers below the API's prefix.
type resources struct{}

func (resources) Serve(w http.ResponseWriter, r *http.Request, who access.Identity) {
	_, _ = io.WriteString(w, r.Method+" as "+who.Name)
}

func server(m *machine) *web.Server {
	return &web.Server{Metrics: web.NewMetrics(), Token: token, Config: pages.Config{
		Access: authority{}, API: resources{}, Status: m, Runs: m, Events: m.written, Host: "host.example", Build: status.Build{Release: "1.2.3"}, Now: func() time.Time { return noon }, Log: zerolog.Nop(),
	}}
}

const token = "0123456789abcdef0123456789abcdef"

// get carries the token, unless header says otherwise.
func get(t *testing.T, s *web.Server, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080"+path, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	res := w.Result()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(body)
}

func TestPages(t *testing.T) {
	m := newMachine()
	close(m.more)
	s := server(m)
	for path, want := range map[string][]string{
		"/":                        {"app", "prod", "rolled back", "deploying", "2 waiting"},
		"/projects/app":            {"0198c2f4", "0100_build"},
		"/projects/app/archives":   {"0198c2f4", "pinned"},
		"/projects/app/statistics": {"0 % ", "0 of 1"},
		"/projects/app/deployments/" + string(idLive): {"=====&gt; rolled back", "failed in &lt;b&gt;0100", "&lt;i&gt;1&lt;/i&gt;</td>", "<td>token</td>", "[secret]</td>"},
		"/projects/app/deployments/0298c2f6":          {`data-live="/projects/app/deployments/0298c2f6-`, "<noscript>", "running", "usually 40s"},
	} {
		res, body := get(t, s, path)
		require.Equal(t, 200, res.StatusCode, path)
		require.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
		for _, w := range want {
			require.Contains(t, body, w, path)
		}
		require.NotContains(t, body, "<script>alert", path)
		require.NotContains(t, body, "<img src=x", path)
		require.NotRegexp(t, regexp.MustCompile(`(?:src|href)="(?:https?:)?//`), body, "no asset comes from elsewhere")
		require.NotRegexp(t, regexp.MustCompile(`<script>|<style>|style="|\son[a-z]+="`), body, "the policy allows nothing inline")
	}
}

// What somebody else wrote is seen as it is on pages, in the API and in logs.
func TestEveryCharacterIsSeen(t *testing.T) {
	m := newMachine()
	m.live.Task, m.run.Task = "x", "x"
	m.live.Result.Hint = "x"
	require.NotZero(t, testutil.Fill(&m.live, testutil.Hostile))
	require.NotZero(t, testutil.Fill(&m.run, testutil.Hostile))
	events := testutil.Events(testutil.Hostile)
	m.more = make(chan event.Event, len(events))
	for _, e := range events {
		e.Seq += 100
		m.more <- e
	}
	close(m.more)
	s := server(m)
	oneLine := strings.NewReplacer("\n", " ") // a browser shows a line feed as a space
	for _, path := range []string{"/", "/projects/app", "/projects/app/deployments/0198c2f4", "/projects/app/deployments/0298c2f6", "/nope" + url.PathEscape(testutil.Hostile)} {
		_, body := get(t, s, path)
		testutil.Seen(t, path, oneLine.Replace(body))
	}
	for _, path := range []string{"/metrics", "/projects/app/deployments/" + url.PathEscape(testutil.Hostile)} {
		_, body := get(t, s, path)
		testutil.Seen(t, path, body)
	}
	for _, accept := range []string{"text/plain", "text/event-stream"} {
		m.more = make(chan event.Event, len(events))
		for _, e := range events {
			m.more <- e
		}
		close(m.more)
		_, body := get(t, s, "/projects/app/deployments/0298c2f6/lines", "Accept", accept)
		require.Contains(t, body, "turned")
		testutil.SeenLog(t, accept, body)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	s := server(newMachine())
	for _, path := range []string{"/", "/nope", "/api/v1/projects", "/api/v1/projects/none", "/metrics", "/healthz", "/assets/style.css", "/assets/../server.go"} {
		res, _ := get(t, s, path)
		require.Contains(t, res.Header.Get("Content-Security-Policy"), "default-src 'none'", path)
		require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"), path)
	}
}

// Forms are sent here and nowhere else, and only pages have some.
func TestWhereFormsAreSent(t *testing.T) {
	s := server(newMachine())
	for path, want := range map[string]string{"/": "'self'", "/nope": "'self'", "/api/v1/projects": "'none'", "/assets/style.css": "'none'"} {
		res, _ := get(t, s, path)
		require.Contains(t, res.Header.Get("Content-Security-Policy"), "form-action "+want, path)
		require.NotContains(t, res.Header.Get("Content-Security-Policy"), "unsafe")
	}
}

func TestNotFound(t *testing.T) {
	s := server(newMachine())
	for _, path := range []string{"/nope", "/projects/none", "/projects/..%2fetc", "/projects/app/deployments/ffff", "/assets/doc.go"} {
		res, _ := get(t, s, path)
		require.Equal(t, 404, res.StatusCode, path)
	}
}

// Who has no right on a project is notified of it what is notified of one that does not exist.
func TestNoRightNoKnowledge(t *testing.T) {
	s := server(newMachine())
	_, home := get(t, s, "/", "Authorization", "Bearer reader")
	require.NotContains(t, home, "/projects/app")
	for _, path := range []string{"/projects/app", "/projects/app/deployments/0198c2f4", "/projects/app/deployments/0198c2f4/lines"} {
		res, body := get(t, s, path, "Authorization", "Bearer reader")
		require.Equal(t, 404, res.StatusCode, path)
		_, none := get(t, s, strings.Replace(path, "app", "nil", 1), "Authorization", "Bearer reader")
		require.Equal(t, strings.ReplaceAll(none, "nil", "app"), body, path)
	}
	res, _ := get(t, s, "/metrics", "Authorization", "Bearer reader")
	require.Equal(t, 404, res.StatusCode, "the metrics name every project")
}

// Who guesses tokens is slowed down, and nobody else.
func TestFailedLogins(t *testing.T) {
	h := server(newMachine()).Handler()
	ask := func(from, secret string) int {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = from
		r.Header.Set("Authorization", "Bearer "+secret)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusTooManyRequests {
			require.NotEmpty(t, w.Header().Get("Retry-After"))
		}
		return w.Code
	}
	for range 30 {
		require.Equal(t, 401, ask("192.0.2.1:1", "guess"))
	}
	require.Equal(t, 429, ask("192.0.2.1:2", "guess"))
	require.Equal(t, 401, ask("192.0.2.2:1", "guess"))
	require.Equal(t, 200, ask("192.0.2.1:3", token))
}

// The attack: a page elsewhere has the browser of somebody who is logged in send a request that changes something.
func TestForeignSitesChangeNothing(t *testing.T) {
	h := server(newMachine()).Handler()
	ask := func(method, site string) int {
		r := httptest.NewRequest(method, "http://deploy.example/api/v1/projects", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, 200, ask(http.MethodPost, ""), "a program")
	require.Equal(t, 200, ask(http.MethodPost, "same-origin"))
	require.Equal(t, 403, ask(http.MethodPost, "cross-site"))
	require.Equal(t, 403, ask(http.MethodPost, "same-site"))
	require.Equal(t, 200, ask(http.MethodGet, "cross-site"))
}

func TestDetailsOfOurOwnFaultsStayHere(t *testing.T) {
	m := newMachine()
	m.fail = errors.New("disk on fire at /secret/place")
	for _, path := range []string{"/", "/projects/app"} {
		res, body := get(t, server(m), path)
		require.Equal(t, 500, res.StatusCode, path)
		require.NotContains(t, body, "secret", path)
	}
}

func request(method, url string) *http.Request {
	r := httptest.NewRequest(method, url, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func TestPagesChangeNothing(t *testing.T) {
	s := server(newMachine())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, request(method, "http://localhost/projects/app"))
		require.Equal(t, 405, w.Code, method)
	}
}

// A page elsewhere whose name was made to point here has nothing that lets it in, whatever it calls us.
func TestRebinding(t *testing.T) {
	s := server(newMachine())
	for _, host := range []string{"127.0.0.1:8080", "localhost:1", "[::1]:8080", "evil.example", "127.0.0.1.evil.example", ""} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		require.Equal(t, http.StatusUnauthorized, w.Code, host)
	}
}

func TestToken(t *testing.T) {
	s := server(newMachine())
	for header, want := range map[string]int{"": 401, "Bearer wrong": 401, "Bearer ": 401, "Bearer " + s.Token: 200, "Basic eDowMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg==": 200, "Basic eDp3cm9uZw==": 401} {
		for _, path := range []string{"/", "/api/v1/projects", "/metrics"} {
			res, _ := get(t, s, path, "Authorization", header)
			require.Equal(t, want, res.StatusCode, header+path)
		}
	}
	res, body := get(t, s, "/healthz")
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "ok\n", body)
}

func TestMetrics(t *testing.T) {
	m := newMachine()
	s := server(m)
	s.Metrics.Ended(m.live)
	s.Metrics.Audited(audit.Entry{Action: "push", Outcome: "refused"})
	s.Metrics.Audited(audit.Entry{Action: "push", Outcome: "ok"})
	s.Metrics.Session()
	s.Metrics.RefusedLogin()
	_, body := get(t, s, "/metrics")
	for _, line := range []string{
		`corpus_deployments_total{project="app",trigger="push",verdict="rolled back"} 1`, `corpus_deployment_duration_seconds_sum{project="app",verdict="rolled back"} 1`,
		`corpus_refusals_total{action="push"} 1`, `corpus_ssh_sessions_total 1`, `corpus_ssh_refused_logins_total 1`,
		`corpus_deployments_running{project="app"} 1`, `corpus_deployments_waiting{project="app"} 2`,
	} {
		require.Contains(t, body, line+"\n")
	}
}

// TestFollowing watches a running deployment as a browser does: what was said, what is said later, and where it broke off.
func TestFollowing(t *testing.T) {
	m := newMachine()
	s := server(m)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	open := func(after string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/projects/app/deployments/0298c2f6/lines", nil)
		require.NoError(t, err)
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Authorization", "Bearer "+token)
		if after != "" {
			r.Header.Set("Last-Event-ID", after)
		}
		res, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
		return res
	}
	res := open("")
	read := func(want string) {
		buf := make([]byte, len(want))
		_, err := io.ReadFull(res.Body, buf)
		require.NoError(t, err)
		require.Equal(t, want, string(buf))
	}
	read("id: 1\ndata: {\"g\":\"\",\"l\":[{\"n\":1,\"c\":\"head\",\"at\":\"12:00:00\",\"t\":\"-----\\u003e app  \\u003cimg src=x onerror=alert(1)\\u003e\"}]}\n\n")
	m.more <- event.Event{Seq: 2, Time: noon, Kind: event.Output, Step: "0100_build", Text: "building"}
	read("id: 2\ndata: {\"g\":\"0100_build\",\"l\":[{\"n\":2,\"c\":\"out\",\"at\":\"12:00:00\",\"t\":\"         | building\"}]}\n\n")
	require.NoError(t, res.Body.Close())

	m.more <- event.Event{Seq: 3, Time: noon, Kind: event.Verdict, Status: event.OK, Text: "live"}
	close(m.more)
	res = open("2")
	rest, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.True(t, strings.HasSuffix(string(rest), "event: end\ndata: {}\n\n"), string(rest))
	require.NotContains(t, string(rest), "id: 1\n")
	require.NoError(t, s.Close())
	require.NoError(t, <-done)
}

// Close must end what would follow for ever.
func TestCloseEndsFollowers(t *testing.T) {
	m := newMachine()
	s := server(m)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/projects/app/deployments/0298c2f6/lines", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	require.NoError(t, s.Close())
	_, err = io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, <-done)
}

// The room's rule: web knows project, access and internal packages, nothing else of ours.
func TestImports(t *testing.T) {
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	more, err := filepath.Glob("pages/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, more)
	names = append(names, more...)
	for _, n := range names {
		text, err := os.ReadFile(n)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`"corpus-git/([a-z]+)`).FindAllStringSubmatch(string(text), -1) {
			if !strings.HasSuffix(n, "_test.go") {
				require.Contains(t, []string{"project", "internal", "access", "signals", "web"}, m[1], n)
			}
		}
	}
}
