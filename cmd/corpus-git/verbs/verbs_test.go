package verbs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

var update = flag.Bool("update", false, "write the golden files anew")

func (h *house) run(t *testing.T, who, stdin string, argv ...string) (code int, out, errs string) {
	t.Helper()
	return h.runIn(t.Context(), who, stdin, verbs.Terminal{Width: verbs.MaxWidth}, argv...)
}

func (h *house) runIn(ctx context.Context, who, stdin string, term verbs.Terminal, argv ...string) (int, string, string) {
	var out, errs bytes.Buffer
	caller := verbs.Caller{Identity: h.keys[who], Remote: who != "local", Term: term}
	code := verbs.Run(ctx, h.Backend, caller, argv, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// TestGolden runs the commands in testdata and compares what they print. The files hold "$ who: argv", and for each the
// exit status, standard output, and standard error with "! " before each line.
func TestGolden(t *testing.T) {
	scripts := map[string][]string{
		"greeting": {"marie:", "jenkins:", "ops:"},
		"projects": {"local: project list", "marie: project list", "local: project show app", "marie: project show secret", "marie: project show nope", "ops: project show nope",
			"local: project create app --env dev", "local: project create shop", "marie: project create shop", "local: project create Shop", "local: project create hand --remote-less",
			"local: project unlink app", "local: project unlink app", "local: project link app", "local: project destroy shop", "local: project destroy shop --yes", "local: project show shop", "local: project"},
		"keys": {"local: key list", "marie: key list", "local: key add new --admin <" + keyNew, "local: key add new <" + keyNew, "ops: key add x --file /etc/passwd", "local: key remove new", "local: key remove new"},
		"access": {"local: access list app", "marie: access list app", "local: access grant app marie configure", "local: access grant app nobody read",
			"local: access grant app marie everything", "local: access revoke app marie configure", "marie: access grant app marie admin"},
		"deploy": {"marie: deploy app", "marie: deploy app -v", "jenkins: deploy app", "marie: deploy secret", "marie: deploy nope", "marie: deploy app --only nonsense",
			"marie: deploy app --json", "marie: rollback app 0198c2f4", "marie: rollback app 0198", "marie: task app ../x", "marie: task app task_hello.sls", "marie: plan app", "marie: cancel app"},
		"history": {"marie: deployments app", "marie: deployments app -n 1 --json", "local: deployments secret", "marie: logs app 0198c2f4", "marie: logs app 0198c2f4 --short", "marie: logs app 0198c2f4 -v", "marie: logs app 0198c2f4 --verbose=false", "marie: logs app 0198c2f4 -v --short",
			"marie: logs app 0198c2f4 --json", "marie: logs app", "local: logs app", "local: logs secret", "marie: logs app 0198c2f4 -f"},
		"archives": {"marie: archives list app", "marie: archives show app 0198c2f4", "marie: archives show app 0198c2f4 --export -", "ops: archives show app 0198c2f4 --export -",
			"ops: archives show app 0198c2f4 --export x.tar", "marie: archives show app 0198", "marie: archives show app ffff", "marie: archives pin app 0198c2f5", "marie: archives restore app 0198c2f5",
			"marie: archives restore app 0198c2f4", "jenkins: archives prune app", "marie: archives prune app", "marie: archives prune app --keep 2", "marie: archives prune app --dry-run", "marie: archives prune app --json",
			"marie: archives prune app --keep=-1", "local: archives list secret", "marie: archives list app --json"},
		"look": {"local: cfg app data", "local: cfg app data.db.password", "local: cfg app data:db:name", "local: cfg app data.db.password --reveal", "local: cfg app data.db", "local: cfg app nope", "marie: cfg app", "local: cfg app data.hosts --json",
			"local: doctor", "marie: doctor", "ops: doctor --json", "local: version", "local: audit", "marie: audit", "local: audit app -n 2 --json"},
		"usage": {"local: nonsense", "ops: serve", "local: deployments", "local: deployments app 0198 extra", "local: deployments app --nope", "local: deployments app -n 0", "local: deployments app -n x", "local: deployments app -n 99999999999999999999", "local: deployments app --json=maybe",
			"local: archives nope app", "local: access grant app marie", "local: deployments app --json --nope", "local: logs app 0198",
			"local: deployments app --limti 3", "local: deplyo app", "marie: deplyo app", "ops: lint", "local: archives lits app", "marie: logs apq", "marie: logs secrte", "local: logs secrte"},
		"users": {
			"local: user list", "local: user add marie --email marie@example.org", "local: user add marie", "local: user add bot1 --kind bot", "local: user add x --kind robot",
			"local: user set bot1 --email nonsense", "local: user set bot1 --email bot@example.org", "local: user set bot1", "local: key add phone --user marie --expires 30d <" + keyNew,
			"marie: user show", "marie: user show jenkins", "jenkins: user list", "local: user show ops", "local: user disable marie", "marie: user show", "local: user enable marie",
			"local: user remove nobody", "local: user remove jenkins", "local: principal list",
		},
		"tokens": {
			"local: token create ci", "local: token list", "marie: token create ci --user jenkins", "marie: token create ci --project secret", "marie: token create ci --expires 1000d",
			"marie: token create ci --expires soon", "marie: token create ci --right everything", "marie: token revoke ci", "marie: token list",
		},
		"times": {"marie: deployments app -n 1 --time", "marie: archives list app --time", "local: key list --time", "local: audit -n 1 --time", "marie: logs app 0198c2f4 -t --short", "marie: logs --app app -t", "marie: logs app 0198c2f4 -t --json"},
	}
	for name, lines := range scripts {
		t.Run(name, func(t *testing.T) {
			h := build(t)
			var got strings.Builder
			for _, l := range lines {
				who, rest, _ := strings.Cut(l, ":")
				rest, stdin, _ := strings.Cut(rest, "<")
				code, out, errs := h.run(t, who, stdin, strings.Fields(rest)...)
				fmt.Fprintf(&got, "$ %s:%s\n[%d]\n%s", who, strings.TrimRight(rest, " "), code, out)
				for line := range strings.Lines(errs) {
					got.WriteString("! " + line)
				}
				got.WriteString("\n")
				for line := range strings.Lines(out) {
					if !strings.HasPrefix(strings.TrimSpace(line), `"`) && !strings.HasPrefix(line, "{") && !strings.Contains(line, "ssh://") {
						require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), verbs.MaxWidth, line)
					}
				}
			}
			path := filepath.Join("testdata", name+".golden")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(path, []byte(got.String()), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), got.String())
		})
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name   string
		result project.Result
		start  error
		want   int
	}{
		{"live", project.Result{State: project.Live}, nil, 0},
		{"done", project.Result{State: project.Done}, nil, 0},
		{"rolled back", project.Result{State: project.RolledBack, Kind: "failed"}, nil, 1},
		{"failed in dev", project.Result{State: project.Failed, Kind: "failed"}, nil, 1},
		{"bad YAML", project.Result{State: project.Refused, Kind: "failed"}, nil, 1},
		{"refused", project.Result{State: project.Refused, Kind: "refused"}, nil, 3},
		{"usage", project.Result{State: project.Refused, Kind: "usage"}, nil, 2},
		{"busy", project.Result{State: project.Refused, Kind: "busy"}, nil, 4},
		{"our fault", project.Result{State: project.RolledBack, Kind: "internal"}, nil, 70},
		{"shutting down", project.Result{}, fault.New(fault.Busy, "", "shutting down"), 4},
		{"a bug", project.Result{}, errors.New("nil map"), 70},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := build(t)
			h.runs.result, h.runs.startErr = c.result, c.start
			code, _, _ := h.run(t, "marie", "", "deploy", "app")
			require.Equal(t, c.want, code)
		})
	}
}

// endless is a deployment that says nothing and does not end.
type endless struct{ verbs.Runs }

func (endless) Follow(ctx context.Context, _ project.ID, _ uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		<-ctx.Done()
		yield(event.Event{}, ctx.Err())
	}
}

// Who follows a log and loses the right to read it sees no more of it.
func TestFollowingEndsWithTheRight(t *testing.T) {
	for _, flags := range [][]string{{"-f"}, {"-f", "--json"}} {
		h := build(t)
		h.Backend.Runs, h.Backend.Recheck = endless{h.Backend.Runs}, time.Millisecond
		done := make(chan string, 1)
		go func() {
			code, _, errs := h.run(t, "marie", "", append([]string{"logs", "app", "0198c2f4"}, flags...)...)
			done <- fmt.Sprint(code, " ", errs)
		}()
		_, err := h.Backend.Access.SetPrincipal(t.Context(), access.Local("op"), "marie", access.Change{Disabled: new(true)})
		require.NoError(t, err)
		require.Contains(t, <-done, "3 error: ")
	}
}

// Keys that a host publishes are shown before any of them is added, and what is added is what was shown.
func TestPublishedKeysAreShownFirst(t *testing.T) {
	h := build(t)
	published, err := access.FetchKeys(t.Context(), keyHost(t, keyNew), "https://keys.example/marie.keys")
	require.NoError(t, err)
	h.Backend.PublishedKeys = func(_ context.Context, address string) ([]access.Published, error) {
		require.Equal(t, "https://keys.example/marie.keys", address)
		return published, nil
	}
	add := []string{"key", "add", "gh", "--user", "marie", "--from", "https://keys.example/marie.keys"}
	code, out, errs := h.run(t, "ops", "", add...)
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, published[0].Fingerprint)
	require.Contains(t, out, "nothing was added")
	code, _, errs = h.run(t, "ops", "", append(add, "--fingerprint", "SHA256:other")...)
	require.Equal(t, 3, code, errs)
	_, list, _ := h.run(t, "ops", "", "key", "list")
	require.NotContains(t, list, "gh")
	code, out, errs = h.run(t, "ops", "", append(add, "--fingerprint", published[0].Fingerprint)...)
	require.Equal(t, 0, code, errs)
	require.Equal(t, "added gh  ssh-ed25519  "+published[0].Fingerprint+"\n", out)
	code, _, _ = h.run(t, "marie", "", add...)
	require.Equal(t, 3, code, "administrators only: the server asks for it")
}

// keyHost is a client whose every request is answered with a text.
func keyHost(t *testing.T, text string) *http.Client {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	t.Cleanup(s.Close)
	c := s.Client()
	tr := c.Transport.(*http.Transport)
	tr.TLSClientConfig.InsecureSkipVerify = true
	tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
	return c
}

// A token is shown once, in the one place that is for it, and belongs to who made it.
func TestTokenIsShownOnce(t *testing.T) {
	h := build(t)
	code, secret, note := h.run(t, "marie", "", "token", "create", "ci", "--project", "app", "--right", "deploy")
	require.Equal(t, 0, code, note)
	require.Regexp(t, `^cgt_[A-Za-z0-9_-]{43}\n$`, secret)
	require.Regexp(t, `^token ci \([0-9a-f]{10}\) of marie: deploy on app, expires in 90 days; it is not shown again`, note)
	_, list, _ := h.run(t, "marie", "", "token", "list", "--json")
	require.Contains(t, list, `"name": "ci"`)
	require.NotContains(t, list, strings.TrimSpace(secret))
	_, list, _ = h.run(t, "jenkins", "", "token", "list", "--json")
	require.NotContains(t, list, "ci")
	code, _, _ = h.run(t, "jenkins", "", "token", "revoke", "ci")
	require.Equal(t, 3, code)
	code, out, errs := h.run(t, "ops", "", "token", "revoke", "ci")
	require.Equal(t, 0, code, errs)
	require.Equal(t, "revoked ci of marie\n", out)
}

func TestSelectionAndPusherReachThePipeline(t *testing.T) {
	h := build(t)
	code, _, errs := h.run(t, "marie", "", "deploy", "app", "--only", "install,fixperms", "--only-steps", "0100_a", "--skip", "notify")
	require.Equal(t, 0, code, errs)
	d := h.runs.started[0]
	require.Equal(t, project.Selection{Only: []string{"install", "fixperms"}, OnlySteps: []string{"0100_a"}, Skip: []string{"notify"}}, d.Select)
	require.Equal(t, project.TriggerRedeploy, d.Trigger)
	require.Equal(t, "marie", d.Pusher.Key)
	require.NotEmpty(t, d.Pusher.Fingerprint)
	code, _, _ = h.run(t, "marie", "", "rollback", "app", "0198c2f5")
	require.Equal(t, 0, code)
	require.Equal(t, idBad, h.runs.started[1].Restore)
	code, _, _ = h.run(t, "marie", "", "archives", "restore", "app", "0198c2f4")
	require.Equal(t, 0, code)
	require.EqualValues(t, h.archives.all[1].Name, h.runs.started[2].Restore, "the folder's name means that very tree")
}

// What a stranger is told about a project that exists must be what is told about one that does not.
func TestNoRightNoKnowledge(t *testing.T) {
	h := build(t)
	for _, verb := range []string{"ps X", "restart X", "start X", "stop X", "run X id", "logs --app X", "deploy X", "plan X", "rollback X", "task X t", "cancel X", "deployments X", "logs X", "archives list X", "archives show X 0198",
		"archives restore X 0198", "archives pin X 0198", "archives unpin X 0198", "archives prune X", "cfg X", "report X", "audit X", "project show X",
		"project link X", "project unlink X", "access list X", "access grant X marie read", "access revoke X marie read", "deployments X --json"} {
		answer := func(name string) string {
			code, out, errs := h.run(t, "marie", "", strings.Fields(strings.ReplaceAll(verb, "X", name))...)
			require.Equal(t, 3, code, "%s: %s%s", verb, out, errs)
			return strings.ReplaceAll(out+errs, name, "X")
		}
		require.Equal(t, answer("nothere"), answer("secret"), verb)
	}
	entries, err := h.audit.List(t.Context(), "secret", 100)
	require.NoError(t, err)
	require.Len(t, entries, 29, "each refusal is on record")
}

func TestInternalDetailsStayOnTheMachine(t *testing.T) {
	h := build(t)
	code, out, errs := h.run(t, "marie", "", "logs", "app", "0198c2f5")
	require.Equal(t, 70, code)
	require.NotContains(t, out+errs, "/secret/place")
	code, _, errs = h.run(t, "local", "", "logs", "app", "0198c2f5")
	require.Equal(t, 70, code)
	require.Contains(t, errs, "/secret/place")
}

// cancelOnWrite ends a context when something is printed: the caller leaves in the middle.
type cancelOnWrite struct {
	cancel func()
	text   strings.Builder
}

func (c *cancelOnWrite) Write(p []byte) (int, error) {
	c.cancel()
	return c.text.Write(p)
}

func TestWhoLeavesAServerLeavesTheDeployment(t *testing.T) {
	for _, detached := range []bool{true, false} {
		h := build(t)
		h.runs.hang, h.Detached = true, detached
		h.runs.result = project.Result{State: project.RolledBack, Kind: "failed"}
		ctx, cancel := context.WithCancel(t.Context())
		out := &cancelOnWrite{cancel: cancel}
		var errs bytes.Buffer
		code := verbs.Run(ctx, h.Backend, verbs.Caller{Identity: h.keys["local"]}, []string{"deploy", "app"}, strings.NewReader(""), out, &errs)
		if detached {
			require.Equal(t, 4, code)
			require.Contains(t, errs.String(), "continues")
			require.Empty(t, h.runs.cancelled)
		} else {
			require.Equal(t, 1, code, "the verdict of what was cancelled")
			require.Len(t, h.runs.cancelled, 1)
			require.Equal(t, 1, strings.Count(out.text.String(), "91bd0e2..3f2a9c1"), "nothing is shown twice")
		}
	}
}

func TestJSONDocumentsCarryTheirVersion(t *testing.T) {
	h := build(t)
	for _, argv := range []string{"project list", "project show app", "key list", "access list app", "deployments app", "archives list app", "archives show app 0198c2f4",
		"cfg app", "report", "report app", "audit", "audit app", "doctor", "version", "deploy app", "plan app", "rollback app", "task app hello", "project create app",
		"deployments nope", "logs nope"} {
		_, out, errs := h.run(t, "local", "", append(strings.Fields(argv), "--json")...)
		var doc map[string]any
		require.NoError(t, json.Unmarshal([]byte(out), &doc), "%s: %s%s", argv, out, errs)
		require.EqualValues(t, 1, doc["version"], argv)
	}
	_, out, _ := h.run(t, "local", "", "logs", "app", "0198c2f4", "--json")
	n := 0
	for line := range strings.Lines(out) {
		var doc map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &doc))
		require.EqualValues(t, 1, doc["version"])
		n++
	}
	require.Equal(t, 4, n)
}

// What goes to no terminal is whole: a user whose name had eight letters read "pinned, pack…" in a pipe, and a program would have, too.
func TestOnlyTerminalsAreCutFor(t *testing.T) {
	h := build(t)
	const long = "npm ci exited with status 1 after a very long explanation"
	_, out, _ := h.runIn(t.Context(), "local", "", verbs.Terminal{}, "deployments", "app")
	require.Contains(t, out, long)
	_, out, _ = h.runIn(t.Context(), "local", "", verbs.Terminal{Width: 200}, "deployments", "app")
	require.NotContains(t, out, long)
}

func TestColourOnlyOnATerminalThatWantsIt(t *testing.T) {
	h := build(t)
	_, out, _ := h.runIn(t.Context(), "local", "", verbs.Terminal{}, "project", "list")
	require.NotContains(t, out, "\x1b")
	_, out, _ = h.runIn(t.Context(), "local", "", verbs.Terminal{Colour: true, Width: 80}, "project", "list")
	require.Contains(t, out, "\x1b[1m")
	for line := range strings.Lines(out) {
		require.LessOrEqual(t, len([]rune(stripped(line))), 81, line)
	}
}

func stripped(s string) string {
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			return s
		}
		s = s[:i] + s[i+strings.IndexByte(s[i:], 'm')+1:]
	}
}
