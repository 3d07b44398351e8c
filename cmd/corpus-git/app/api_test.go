package app

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/web/api"
	"corpus-git/web/api/client"
)

// checked compares every answer with the document.
type checked struct {
	t   *testing.T
	doc *huma.OpenAPI
}

func (c checked) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || strings.HasSuffix(r.URL.Path, "/events") || res.Header.Get("Content-Type") == "application/zstd" {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	answers := c.operation(r).Responses
	want := answers[strconv.Itoa(res.StatusCode)]
	if want == nil {
		want = answers["default"]
	}
	require.NotNil(c.t, want.Content[kind], "%s %s: %d %s", r.Method, r.URL, res.StatusCode, kind)
	var doc any
	require.NoError(c.t, json.Unmarshal(body, &doc))
	var found huma.ValidateResult
	huma.Validate(c.doc.Components.Schemas, want.Content[kind].Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, doc, &found)
	require.Empty(c.t, found.Errors, "%s %s\n%s", r.Method, r.URL, body)
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// operation returns the document's entry for a request.
func (c checked) operation(r *http.Request) *huma.Operation {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, api.Prefix), "/")
	var best *huma.Operation
	words := -1
	for path, item := range c.doc.Paths {
		op := map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodPatch: item.Patch, http.MethodDelete: item.Delete}[r.Method]
		at, n := strings.Split(path, "/"), 0
		fits := op != nil && len(at) == len(parts)
		for i := 0; fits && i < len(at); i++ {
			if !strings.HasPrefix(at[i], "{") {
				n++
				fits = at[i] == parts[i]
			}
		}
		if fits && n > words {
			best, words = op, n
		}
	}
	require.NotNil(c.t, best, "%s %s is not in the document", r.Method, r.URL)
	return best
}

// apiServer is a server with a project that is deployed by hand; as returns a client with a token of a user.
func apiServer(t *testing.T, flags map[string]string) (s *server, as func(user string, admin bool, scope access.Scope) *client.Client) {
	t.Helper()
	root := t.TempDir()
	flags["listen"], flags["http-listen"] = "127.0.0.1:0", "127.0.0.1:0"
	s = running(t, root, flags)
	doc := api.OpenAPI("1")
	local := access.Local("root")
	_, err := s.access.AddPrincipal(t.Context(), local, access.Principal{Name: "boss", Kind: access.Person, Admin: true})
	require.NoError(t, err)
	made := 0
	as = func(user string, admin bool, scope access.Scope) *client.Client {
		if _, err := s.access.FindPrincipal(t.Context(), user); err != nil {
			_, err := s.access.AddPrincipal(t.Context(), local, access.Principal{Name: user, Kind: access.Bot, Admin: admin})
			require.NoError(t, err)
		}
		made++
		_, secret, err := s.access.AddToken(t.Context(), local, access.Token{Name: "t" + strconv.Itoa(made), Principal: user, Scope: scope, Expires: s.web.Now().Add(3600e9)})
		require.NoError(t, err)
		return &client.Client{URL: "http://" + s.webAddr.Addr().String(), Token: secret, HTTP: &http.Client{Transport: checked{t, doc}}}
	}
	return s, as
}

func problem(t *testing.T, err error, status int64) *client.Problem {
	t.Helper()
	var p *client.Problem
	require.True(t, errors.As(err, &p), "%v", err)
	require.Equal(t, status, p.Status, "%v", err)
	require.NotEmpty(t, p.Title)
	return p
}

// The commands, over HTTP, with the generated client; the document describes each answer.
func TestAPI(t *testing.T) {
	s, as := apiServer(t, map[string]string{})
	ctx := t.Context()
	boss := as("boss", true, access.Scope{})
	var h http.Header
	made, err := boss.CreateProject(ctx, &client.CreateProjectBody{Name: "app", RemoteLess: new(true)}, client.Into(&h))
	require.NoError(t, err)
	require.Equal(t, "app", made.Project.Name)
	require.Equal(t, "/api/v1/projects/app", h.Get("Location"))
	salt := filepath.Join(string(s.root), "projects", "app", "project", ".salt")
	require.NoError(t, os.MkdirAll(salt, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(salt, "0100_say.sls"), []byte("say:\n  cmd.run:\n    - name: echo said\n"), 0o644))

	// A deployment is in the queue when the answer arrives; its events can be followed, and resumed where they stopped.
	run, err := boss.Deploy(ctx, "app", &client.DeployBody{Set: map[string]string{"greeting": "hello"}}, client.Into(&h))
	require.NoError(t, err)
	id := run.Deployment.ID
	require.Equal(t, "/api/v1/projects/app/deployments/"+id, h.Get("Location"))
	var events []client.Event
	follow := func(after uint64) (all []client.Event) {
		require.NoError(t, boss.Follow(ctx, "app", id, after, func(e client.Event) bool { all = append(all, e); return true }))
		return all
	}
	events = follow(0)
	last := events[len(events)-1].Seq
	require.EqualValues(t, len(events), last, "no gap")
	require.Len(t, follow(uint64(last-1)), 1)
	one, err := boss.GetDeployment(ctx, "app", id)
	require.NoError(t, err)
	require.Equal(t, "live", one.Deployment.State)
	require.Equal(t, "boss", one.Deployment.Pusher.Key)
	_, err = boss.GetDeployment(ctx, "app", "ffffffff")
	problem(t, err, 404)

	// An archive is a file, or a problem.
	archives, err := boss.ListArchives(ctx, "app")
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, boss.Export(ctx, "app", archives.Archives[0].ID, &file))
	require.Equal(t, "28b52ffd", hex.EncodeToString(file.Bytes()[:4]), "zstd")
	problem(t, boss.Export(ctx, "app", "ffffffff", &file), 404)

	// Pages.
	for range 2 {
		run, err := boss.Check(ctx, "app")
		require.NoError(t, err)
		require.NoError(t, boss.Follow(ctx, "app", run.Deployment.ID, 0, func(client.Event) bool { return true }))
	}
	var seen []string
	next := ""
	for pages := 0; pages < 5; pages++ {
		list, err := boss.ListDeployments(ctx, "app", client.Query("limit", "2"), client.Query("cursor", next), client.Into(&h))
		require.NoError(t, err)
		for _, d := range list.Deployments {
			seen = append(seen, d.ID)
		}
		link := h.Get("Link")
		if link == "" {
			break
		}
		next, _, _ = strings.Cut(link[strings.Index(link, "cursor=")+7:], "&")
		next, _, _ = strings.Cut(next, ">")
	}
	require.Len(t, seen, 3)
	require.Equal(t, id, seen[2])

	for name, get := range map[string]func() error{
		"projects": func() error { _, err := boss.ListProjects(ctx); return err }, "report": func() error { _, err := boss.ReportProject(ctx, "app"); return err },
		"reports": func() error { _, err := boss.Report(ctx); return err }, "archives": func() error { _, err := boss.ListArchives(ctx, "app"); return err },
		"prune": func() error {
			_, err := boss.PruneArchives(ctx, "app", &client.PruneBody{DryRun: new(true)})
			return err
		},
		"cfg": func() error { _, err := boss.GetCfg(ctx, "app"); return err }, "units": func() error { _, err := boss.ListUnits(ctx, "app"); return err },
		"checks": func() error { _, err := boss.ListChecks(ctx, "app"); return err }, "audit": func() error { _, err := boss.Audit(ctx, client.Query("limit", "3")); return err },
		"audit of app": func() error { _, err := boss.AuditProject(ctx, "app"); return err }, "users": func() error { _, err := boss.ListUsers(ctx); return err },
		"user": func() error { _, err := boss.GetUser(ctx, "boss"); return err }, "self": func() error { _, err := boss.WhoAmI(ctx); return err },
		"keys": func() error { _, err := boss.ListKeys(ctx); return err }, "tokens": func() error { _, err := boss.ListTokens(ctx); return err },
		"grants": func() error { _, err := boss.ListGrants(ctx, "app"); return err }, "version": func() error { _, err := boss.Version(ctx); return err },
		"host keys": func() error { _, err := boss.HostKeys(ctx); return err }, "gc": func() error { _, err := boss.Gc(ctx, &client.GcBody{DryRun: new(true)}); return err },
		"configs": func() error {
			all, err := boss.ListAllConfigs(ctx)
			if err != nil {
				return err
			}
			require.NotEmpty(t, all.Deployments)
			list, err := boss.ListConfigs(ctx, "app", client.Query("limit", "1"))
			if err != nil {
				return err
			}
			one, err := boss.GetConfig(ctx, "app", list.Deployments[0].Config[:12])
			if err == nil {
				require.Equal(t, list.Deployments[0].Config, one.Config.ID)
				require.NotEmpty(t, one.Config.Source)
			}
			return err
		},
		"waits":    func() error { _, err := boss.ListWaits(ctx, "app"); return err },
		"converge": func() error { _, err := boss.Converge(ctx, "app", &client.ConvergeBody{Report: new(true)}); return err },
		"doctor":   func() error { _, err := boss.Doctor(ctx); return err }, "plan": func() error { _, err := boss.Plan(ctx, "app", nil); return err },
		"add key": func() error {
			_, err := boss.AddKey(ctx, &client.AddKeyBody{Name: "marie", Key: publicKey})
			return err
		},
		"link": func() error { _, err := boss.UnlinkProject(ctx, "app"); return err },
	} {
		require.NoError(t, get(), name)
	}
	_, err = boss.Grant(ctx, "app", "marie", "deploy")
	require.NoError(t, err)
	grants, err := boss.ListGrants(ctx, "app")
	require.NoError(t, err)
	require.Equal(t, "marie", grants.Grants[0].Principal)
	_, err = boss.SetUser(ctx, "marie", &client.SetUserBody{Email: new("marie@example.org")})
	require.NoError(t, err)
	_, err = boss.AddUser(ctx, &client.AddUserBody{Name: "--admin"})
	require.Contains(t, problem(t, err, 400).Detail, "not a valid name", "what a client sends is not an option")
	_, err = boss.CreateToken(ctx, &client.CreateTokenBody{Name: "more"})
	require.Contains(t, problem(t, err, 403).Detail, "tokens cannot create or revoke tokens")
	_, err = boss.DestroyProject(ctx, "app")
	require.NoError(t, err)
	_, err = boss.GetProject(ctx, "app")
	problem(t, err, 404)
}

// The attack: a token with few permissions requests everything else. It learns nothing about other projects and changes
// nothing.
func TestAPIRights(t *testing.T) {
	s, as := apiServer(t, map[string]string{})
	ctx := t.Context()
	boss := as("boss", true, access.Scope{})
	for _, name := range []string{"app", "other"} {
		_, err := boss.CreateProject(ctx, &client.CreateProjectBody{Name: name})
		require.NoError(t, err)
	}
	ci := as("ci", false, access.Scope{})
	require.NoError(t, s.access.Grant(ctx, access.Local("root"), "app", "ci", "deploy"))
	list, err := ci.ListProjects(ctx)
	require.NoError(t, err)
	require.Len(t, list.Projects, 1)
	_, err = ci.GetProject(ctx, "other")
	there := problem(t, err, 404)
	_, err = ci.GetProject(ctx, "nosuchone")
	require.Equal(t, strings.ReplaceAll(there.Error(), "other", "nosuchone"), problem(t, err, 404).Error())
	for name, do := range map[string]func() error{
		"create": func() error { _, err := ci.CreateProject(ctx, &client.CreateProjectBody{Name: "mine"}); return err },
		"deploy": func() error { _, err := ci.Deploy(ctx, "other", nil); return err }, "destroy": func() error { _, err := ci.DestroyProject(ctx, "app"); return err },
		"grant": func() error { _, err := ci.Grant(ctx, "app", "ci", "admin"); return err }, "undeploy": func() error { _, err := ci.Undeploy(ctx, "app"); return err },
		"user": func() error { _, err := ci.AddUser(ctx, &client.AddUserBody{Name: "x", Admin: new(true)}); return err },
	} {
		t.Log(name)
		problem(t, do(), 403)
	}
	reader := as("boss", true, access.Scope{ReadOnly: true})
	_, err = reader.GetProject(ctx, "app")
	require.NoError(t, err)
	_, err = reader.Deploy(ctx, "app", nil)
	problem(t, err, 403)
	require.NoError(t, s.access.RevokeAll(ctx, access.Local("root"), "app"))
	_, err = ci.GetProject(ctx, "app")
	problem(t, err, 404)
	_, err = (&client.Client{URL: ci.URL, Token: "cgt_wrong"}).ListProjects(ctx)
	problem(t, err, 401)
}

// A program that lost the answer repeats the request, and nothing is done twice; a conditional request changes only the
// version that was read.
func TestAPIOnce(t *testing.T) {
	s, as := apiServer(t, map[string]string{})
	ctx := t.Context()
	boss := as("boss", true, access.Scope{})
	_, err := boss.CreateProject(ctx, &client.CreateProjectBody{Name: "app", RemoteLess: new(true)})
	require.NoError(t, err)
	key := client.Header("Idempotency-Key", "build-4711")
	first, err := boss.Plan(ctx, "app", nil, key)
	require.NoError(t, err)
	var h http.Header
	again, err := boss.Plan(ctx, "app", nil, key, client.Into(&h))
	require.NoError(t, err)
	require.Equal(t, first.Deployment.ID, again.Deployment.ID)
	require.Equal(t, "true", h.Get("Idempotency-Replayed"))
	_, err = boss.Deploy(ctx, "app", nil, key)
	problem(t, err, 422)
	other, err := as("second", true, access.Scope{}).Plan(ctx, "app", nil, key)
	require.NoError(t, err)
	require.NotEqual(t, first.Deployment.ID, other.Deployment.ID, "a key is its sender's own")
	// The server died during the request.
	_, err = s.db.ExecContext(ctx, `UPDATE web_answers SET status = NULL`)
	require.NoError(t, err)
	_, err = boss.Plan(ctx, "app", nil, key)
	require.Contains(t, problem(t, err, 409).Detail, "look whether it was done")

	_, err = boss.ListGrants(ctx, "app", client.Into(&h))
	require.NoError(t, err)
	tag := h.Get("ETag")
	_, err = boss.Grant(ctx, "app", "second", "read", client.Header("If-Match", tag))
	require.NoError(t, err)
	_, err = boss.Grant(ctx, "app", "second", "deploy", client.Header("If-Match", tag))
	problem(t, err, 412)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, boss.URL+"/api/v1/version", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+boss.Token)
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	r.Header.Set("If-None-Match", res.Header.Get("ETag"))
	res, err = http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusNotModified, res.StatusCode)
}

// The request rate of one token is limited, without delaying others.
func TestAPIRate(t *testing.T) {
	_, as := apiServer(t, map[string]string{"http-rate": "1"})
	busy, calm := as("busy", false, access.Scope{}), as("calm", false, access.Scope{})
	var err error
	for range 50 {
		if _, err = busy.Version(context.Background()); err != nil {
			break
		}
	}
	var h http.Header
	_, err = busy.Version(context.Background(), client.Into(&h))
	problem(t, err, 429)
	require.NotEmpty(t, h.Get("Retry-After"))
	_, err = calm.Version(context.Background())
	require.NoError(t, err)
}
