package notify_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
	"corpus-git/internal/execx"
	"corpus-git/internal/redact"
	"corpus-git/notify"
	"corpus-git/project"
	"corpus-git/project/config"
)

// rig is an outbox, a worker, and a clock that stands still until it is moved.
type rig struct {
	t     *testing.T
	db    *sql.DB
	out   *notify.Outbox
	work  *notify.Worker
	mu    sync.Mutex
	now   time.Time
	sinks []config.Sink
}

func newRig(t *testing.T, sinks ...config.Sink) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Unix(1_700_000_000, 0), sinks: sinks}
	for i := range r.sinks {
		if r.sinks[i].Timeout == 0 {
			r.sinks[i].Timeout = 10 * time.Second
		}
	}
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	r.db = d
	envs, err := project.ParseEnvironments([]string{"preprod=staging"}, "prod")
	require.NoError(t, err)
	r.out, err = notify.Open(t.Context(), d, func() []config.Sink { return r.sinks }, func() project.Environments { return envs }, r.clock)
	require.NoError(t, err)
	r.work = &notify.Worker{
		Outbox: r.out, Settings: func() config.Notify { return config.Notify{Attempts: 3, RetryAfter: time.Minute, RetryMax: time.Hour} },
		Secrets: func() []redact.Secret {
			return []redact.Secret{{Label: "token", Value: "T0KEN-of-the-sink", Whose: "server"}}
		},
		Exec: execx.OS{}, Host: "machine", Log: zerolog.Nop(),
	}
	return r
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) later(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *rig) list() []notify.Delivery {
	list, err := r.out.List(r.t.Context(), "", "", 100)
	require.NoError(r.t, err)
	return list
}

// only is the one delivery that there is.
func (r *rig) only() notify.Delivery {
	list := r.list()
	require.Len(r.t, list, 1)
	return list[0]
}

func ended(id, event string) project.Notification {
	res := project.Result{State: project.State(strings.ReplaceAll(event, "-", " ")), Reason: "step 010 failed"}
	return project.Notification{
		ID: id, Event: event, Project: "app", Environment: "prod", Result: &res,
		Deployment: &project.Deployment{ID: "0192aabbccdd", Project: "app", Trigger: project.TriggerPush, Pusher: project.Pusher{Key: "marie"}, Code: "1234567890123456789012345678901234567890"},
	}
}

// seen is a receiver that answers as it is told, and keeps what it got.
type seen struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
	heads  []http.Header
	paths  []string
}

func receiver(t *testing.T, answer http.HandlerFunc) *seen {
	t.Helper()
	s := &seen{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		s.mu.Lock()
		s.bodies, s.heads, s.paths = append(s.bodies, body), append(s.heads, r.Header), append(s.paths, r.Method+" "+r.URL.EscapedPath())
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *seen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func ok(http.ResponseWriter, *http.Request) {}

// What is written with a record is there with it, and gone with it; the same ID twice is once.
func TestInTheTransactionOfTheRecord(t *testing.T) {
	r := newRig(t, config.Sink{Name: "a", Kind: "json", URL: "http://x", Private: true}, config.Sink{Name: "b", Kind: "json", URL: "http://x", Events: []string{"live"}})
	tx, err := r.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, r.out.Add(t.Context(), tx, ended("one", "failed")))
	require.NoError(t, tx.Rollback())
	require.Empty(t, r.list())
	for range 2 {
		require.NoError(t, r.out.AddNow(t.Context(), ended("two", "failed")))
	}
	require.Equal(t, "a", r.only().Sink)
}

func TestFilters(t *testing.T) {
	check := project.Notification{Event: project.CheckFailed, Project: "app", Environment: "preprod"}
	access := project.Notification{Event: project.EventAccessChanged}
	recovered := ended("", "live")
	recovered.Event = project.EventRecovered
	for name, c := range map[string]struct {
		sink config.Sink
		n    project.Notification
		want bool
	}{
		"all":                       {config.Sink{}, access, true},
		"glob":                      {config.Sink{Projects: []string{"x", "a*"}}, ended("", "live"), true},
		"another project":           {config.Sink{Projects: []string{"b*"}}, ended("", "live"), false},
		"no project":                {config.Sink{Projects: []string{"*"}}, access, false},
		"environment":               {config.Sink{Environments: []string{"prod"}}, ended("", "live"), true},
		"class":                     {config.Sink{Environments: []string{"staging"}}, check, true},
		"another environment":       {config.Sink{Environments: []string{"dev"}}, ended("", "live"), false},
		"no environment":            {config.Sink{Environments: []string{"prod"}}, access, false},
		"event":                     {config.Sink{Events: []string{"rolled-back"}}, ended("", "rolled-back"), true},
		"another event":             {config.Sink{Events: []string{"rolled-back"}}, ended("", "live"), false},
		"checks":                    {config.Sink{Events: []string{"checks"}}, check, true},
		"verdict":                   {config.Sink{Verdicts: []string{"live"}}, recovered, true},
		"another verdict":           {config.Sink{Verdicts: []string{"failed"}}, recovered, false},
		"a verdict where is none":   {config.Sink{Verdicts: []string{"live"}}, check, false},
		"event and another verdict": {config.Sink{Events: []string{"recovered"}, Verdicts: []string{"failed"}}, recovered, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.sink.Name = "s"
			r := newRig(t, c.sink)
			c.n.ID = "x"
			require.NoError(t, r.out.AddNow(t.Context(), c.n))
			require.Equal(t, c.want, len(r.list()) == 1)
		})
	}
}

// A receiver that fails is tried again, later each time, until it is given up; retry makes it due again.
func TestRetryAndGiveUp(t *testing.T) {
	answer := http.StatusInternalServerError
	s := receiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) })
	r := newRig(t, config.Sink{Name: "a", Kind: "json", URL: project.Secret(s.URL), Private: true})
	require.NoError(t, r.out.AddNow(t.Context(), ended("one", "failed")))
	for i, pause := range []time.Duration{2 * time.Minute, 3 * time.Minute, time.Hour} {
		r.work.Drain(t.Context())
		r.work.Drain(t.Context()) // not due again yet
		require.Equal(t, i+1, s.count())
		d := r.only()
		require.Equal(t, i+1, d.Attempts)
		require.Contains(t, d.Error, "answered 500")
		r.later(pause)
	}
	require.Equal(t, notify.GivenUp, r.only().State)
	r.work.Drain(t.Context())
	require.Equal(t, 3, s.count())
	n, err := r.out.Retry(t.Context(), "one")
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	answer = http.StatusNoContent
	r.work.Drain(t.Context())
	require.Equal(t, notify.Delivered, r.only().State)
	n, err = r.out.Retry(t.Context(), "one")
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = r.out.Retry(t.Context(), "two")
	require.ErrorContains(t, err, "there is no notification two")
	for _, body := range s.bodies {
		var got project.Notification
		require.NoError(t, json.Unmarshal(body, &got))
		require.Equal(t, "one", got.ID, "the ID is the same each time")
	}
}

func TestPause(t *testing.T) {
	for _, c := range []struct {
		attempts int
		chance   float64
		want     time.Duration
	}{{1, 0.5, time.Second}, {2, 0.5, 2 * time.Second}, {5, 0, 12 * time.Second}, {5, 1, 20 * time.Second}, {20, 0.5, time.Hour}, {1000, 0.5, time.Hour}} {
		require.Equal(t, c.want, notify.Pause(c.attempts, time.Second, time.Hour, c.chance), c.attempts)
	}
}

// What a receiver does to a delivery, and what is recorded of it.
func TestReceiversThatMisbehave(t *testing.T) {
	elsewhere := receiver(t, ok)
	hold := make(chan struct{})
	t.Cleanup(func() {
		close(hold)
		require.Zero(t, elsewhere.count())
	})
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		error  string
		state  notify.State
	}{
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}, "no answer within 1s", notify.Waiting},
		"closes": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			_ = c.Close()
		}, "EOF", notify.Waiting},
		"answers a part, and late": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}, "no answer within 1s", notify.Waiting},
		"answers without an end": {func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "", notify.Delivered},
		"redirects elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "answered 307: a redirect", notify.Waiting},
		"redirects to a GET": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusFound)
		}, "answered 302: a redirect", notify.Waiting},
		"redirects in circles": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusPermanentRedirect)
		}, "answered 308", notify.Waiting},
		"redirects to itself": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/other" {
				http.Redirect(w, r, "/other", http.StatusPermanentRedirect)
			}
		}, "", notify.Delivered},
		"is gone": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, "answered 410", notify.GivenUp},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := receiver(t, c.answer)
			timeout := time.Minute
			if strings.HasSuffix(c.error, "within 1s") {
				timeout = time.Second
			}
			r := newRig(t, config.Sink{Name: "a", Kind: "json", URL: project.Secret(s.URL + "/T0KEN-of-the-sink"), Private: true, Timeout: timeout})
			require.NoError(t, r.out.AddNow(t.Context(), ended("one", "failed")))
			r.work.Drain(t.Context())
			d := r.only()
			require.Equal(t, c.state, d.State, d.Error)
			require.Contains(t, d.Error, c.error)
			require.NotContains(t, d.Error, "T0KEN")
		})
	}
}

// A sink whose receiver hangs keeps no other from being told.
func TestSinksDoNotWaitForEachOther(t *testing.T) {
	hold := make(chan struct{})
	hangs := receiver(t, func(http.ResponseWriter, *http.Request) { <-hold })
	good := receiver(t, ok)
	r := newRig(t, config.Sink{Name: "a", Kind: "json", URL: project.Secret(hangs.URL), Private: true, Timeout: time.Minute}, config.Sink{Name: "b", Kind: "json", URL: project.Secret(good.URL), Private: true})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		r.work.Run(ctx)
		close(done)
	}()
	require.NoError(t, r.out.AddNow(t.Context(), ended("one", "failed")))
	require.Eventually(t, func() bool { return good.count() == 1 && hangs.count() == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, r.out.AddNow(t.Context(), ended("two", "live")))
	require.Eventually(t, func() bool { return good.count() == 2 }, time.Minute, time.Millisecond)
	stop()
	close(hold)
	<-done
	for _, d := range r.list() {
		require.False(t, d.Sink == "a" && d.State == notify.GivenUp, "an attempt that the end cut off is none")
	}
}

// A name that resolves to an address of this machine is not connected to, whatever it is called, unless the sink allows it.
func TestPrivateAddresses(t *testing.T) {
	s := receiver(t, ok)
	r := newRig(t, config.Sink{Name: "a", Kind: "json", URL: project.Secret(strings.Replace(s.URL, "127.0.0.1", "localhost", 1))})
	require.NoError(t, r.out.AddNow(t.Context(), ended("one", "failed")))
	r.work.Drain(t.Context())
	require.Contains(t, r.only().Error, "address of this machine or of a private network")
	require.Zero(t, s.count())
}

// What is posted is verified with the reference implementation, with either of two secrets; one byte that was changed fails.
func TestStandardWebhooks(t *testing.T) {
	s := receiver(t, ok)
	secrets := []project.Secret{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "TmV3IHNlY3JldCBvZiB0aGUgcmVjZWl2ZXIsIHJvdGF0ZWQ="}
	r := newRig(t, config.Sink{Name: "a", Kind: "webhook", URL: project.Secret(s.URL), Secrets: secrets, Private: true})
	r.now = time.Now() // a verifier refuses old timestamps
	require.NoError(t, r.out.AddNow(t.Context(), ended("deployment_1_failed", "failed")))
	r.work.Drain(t.Context())
	require.Equal(t, notify.Delivered, r.only().State)
	body, head := s.bodies[0], s.heads[0]
	for _, secret := range secrets {
		w, err := standardwebhooks.NewWebhook(string(secret))
		require.NoError(t, err)
		require.NoError(t, w.Verify(body, head))
		for i := range body {
			flipped := append([]byte{}, body...)
			flipped[i] ^= 1
			require.Error(t, w.Verify(flipped, head), i)
		}
		other := head.Clone()
		other.Set("Webhook-Id", "deployment_2_failed")
		require.Error(t, w.Verify(body, other))
	}
	w, err := standardwebhooks.NewWebhook("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	require.NoError(t, err)
	require.Error(t, w.Verify(body, head))
	var doc struct {
		Type string
		Data project.Notification
	}
	require.NoError(t, json.Unmarshal(body, &doc))
	require.Equal(t, "failed", doc.Type)
	require.Equal(t, project.Name("app"), doc.Data.Project)
}

// The bodies of chats: what formats there, or calls somebody, is escaped.
func TestChats(t *testing.T) {
	n := ended("one two", "rolled-back")
	n.Result.Reason = "<!channel> *bold* @everyone & `x`"
	for kind, c := range map[string]struct {
		path, has string
	}{
		"slack":   {"POST /hook", `"text":"app (prod): rolled back\ndeployment 0192aabb: push 1234567 by marie\n&lt;!channel&gt; *bold* @everyone &amp; `},
		"discord": {"POST /hook", `\\<!channel\\> \\*bold\\*`},
		"matrix":  {"PUT /hook/_matrix/client/v3/rooms/%21room:x/send/m.room.message/one%20two", `"msgtype":"m.notice"`},
	} {
		t.Run(kind, func(t *testing.T) {
			s := receiver(t, ok)
			r := newRig(t, config.Sink{Name: "a", Kind: kind, URL: project.Secret(s.URL + "/hook"), Room: "!room:x", Token: "T0KEN-of-the-sink", Private: true})
			require.NoError(t, r.out.AddNow(t.Context(), n))
			r.work.Drain(t.Context())
			require.Equal(t, notify.Delivered, r.only().State, r.only().Error)
			require.Equal(t, c.path, s.paths[0])
			var text bytes = s.bodies[0]
			require.Contains(t, text.unescaped(t), c.has)
			if kind == "discord" {
				require.Contains(t, string(text), `"allowed_mentions":{"parse":[]}`)
			}
			require.Equal(t, "Bearer T0KEN-of-the-sink", s.heads[0].Get("Authorization"))
		})
	}
}

// bytes is a JSON document, with what Go's encoder escapes for HTML written out.
type bytes []byte

func (b bytes) unescaped(t *testing.T) string {
	t.Helper()
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b))
}

// A command reads the notification on its standard input, in a clean environment; what it prints last says why it failed.
func TestCommand(t *testing.T) {
	t.Setenv("SECRET_OF_THE_SERVER", "s3cret")
	out := filepath.Join(t.TempDir(), "out")
	r := newRig(t, config.Sink{Name: "a", Kind: "command", Command: []string{"/bin/sh", "-c", "cat > " + out + "; env | sort >> " + out}},
		config.Sink{Name: "b", Kind: "command", Command: []string{"/bin/sh", "-c", "echo one; echo T0KEN-of-the-sink is wrong >&2; exit 3"}})
	require.NoError(t, r.out.AddNow(t.Context(), ended("one", "failed")))
	r.work.Drain(t.Context())
	text := read(t, out)
	require.Contains(t, text, `"id":"one"`)
	require.Contains(t, text, "CORPUS_EVENT=failed\n")
	require.NotContains(t, text, "SECRET_OF_THE_SERVER")
	d, err := r.out.Get(t.Context(), "one", "b")
	require.NoError(t, err)
	require.Equal(t, "exit status 3: [server:token] is wrong", d.Error)
	_, err = r.out.Get(t.Context(), "two", "b")
	require.Error(t, err)
}

// A delivery to a sink that the configuration no longer has is given up, and says so.
func TestASinkThatIsGone(t *testing.T) {
	r := newRig(t, config.Sink{Name: "a", Kind: "json", URL: "http://x"})
	require.NoError(t, r.out.AddNow(t.Context(), ended("one", "failed")))
	r.sinks = nil
	r.work.Drain(t.Context())
	require.Equal(t, notify.GivenUp, r.only().State)
	require.Contains(t, r.only().Error, "no such sink")
	_, err := r.out.Test(t.Context(), "a", project.Pusher{})
	require.ErrorContains(t, err, `there is no sink "a"`)
}

// What is old goes, and what is too much: delivered first, then given up, then what waits.
func TestPrune(t *testing.T) {
	s := receiver(t, ok)
	r := newRig(t, config.Sink{Name: "good", Kind: "json", URL: project.Secret(s.URL), Private: true, Events: []string{"live"}},
		config.Sink{Name: "gone", Kind: "command", Command: []string{"/nonexistent"}, Events: []string{"failed"}})
	require.NoError(t, r.out.AddNow(t.Context(), ended("one", "live"), ended("two", "failed")))
	r.work.Drain(t.Context())
	for range 3 {
		r.later(time.Hour)
		r.work.Drain(t.Context())
	}
	require.NoError(t, r.out.AddNow(t.Context(), ended("three", "live"), ended("four", "live")))
	c, err := notify.Count(t.Context(), r.db)
	require.NoError(t, err)
	require.Equal(t, []int64{2, 1, 1}, []int64{c.Waiting, c.Delivered, c.GivenUp})
	require.Equal(t, r.now, c.Oldest)
	prune := func(before time.Time, limit int, want ...string) {
		t.Helper()
		_, err := r.out.Prune(t.Context(), before, limit)
		require.NoError(t, err)
		var left []string
		for _, d := range r.list() {
			left = append(left, d.ID)
		}
		require.Equal(t, want, left)
		var n int
		require.NoError(t, r.db.QueryRow(`SELECT count(*) FROM notifications`).Scan(&n))
		require.Equal(t, len(want), n)
	}
	prune(r.now.Add(-24*time.Hour), 0, "four", "three", "two", "one")
	prune(time.Time{}, 3, "four", "three", "two")
	prune(r.now.Add(time.Hour), 0, "four", "three")
	prune(time.Time{}, 1, "four")
}

// A notification that cannot be written takes the record with it: nothing is recorded that nobody is notified of.
func TestAddFails(t *testing.T) {
	r := newRig(t, config.Sink{Name: "a", Kind: "json", URL: "http://x"})
	_, err := r.db.Exec(`DROP TABLE deliveries`)
	require.NoError(t, err)
	require.Error(t, r.out.AddNow(t.Context(), ended("one", "failed")))
	var n int
	require.NoError(t, r.db.QueryRow(`SELECT count(*) FROM notifications`).Scan(&n))
	require.Zero(t, n)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
