package app

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/receive/sshd"
	"corpus-git/web/api"
	"corpus-git/web/api/client"
)

// Each changing verb of the API calls the check of its request before it changes anything, and changes nothing after its error.
func TestEachChangeIsChecked(t *testing.T) {
	s, as := apiServer(t, map[string]string{})
	boss := as("boss", true, access.Scope{})
	_, err := boss.CreateProject(t.Context(), &client.CreateProjectBody{Name: "app", RemoteLess: new(true)})
	require.NoError(t, err)
	_, err = s.access.AddPrincipal(t.Context(), access.Local("root"), access.Principal{Name: "marie", Kind: access.Person})
	require.NoError(t, err)
	_, _, err = s.access.AddToken(t.Context(), access.Local("root"), access.Token{Name: "ci", Principal: "marie", Expires: s.web.Now().Add(3600e9)})
	require.NoError(t, err)
	_, err = s.access.AddKeyTo(t.Context(), access.Local("root"), access.NewKey{Name: "laptop", Principal: "marie", Text: []byte(publicKey)})
	require.NoError(t, err)
	rows := func() (n int) {
		for _, table := range []string{"projects", "deployments", "principals", "keys", "tokens", "grants", "notifications"} {
			var of int
			require.NoError(t, s.db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&of), table)
			n += of
		}
		return n
	}
	before := rows()
	for _, line := range []string{
		"project create other", "project destroy app --yes", "project link app", "project unlink app",
		"deploy app --detach", "plan app --detach", "task app hello --detach", "rollback app --detach", "check app --detach", "converge app --detach", "undeploy app --yes --detach", "cancel app",
		"archives prune app", "restart app", "user add otto", "user set marie --email=m@example.org", "user disable marie", "user enable marie", "user remove marie", "key add second --user=marie", "key remove laptop",
		"token create more --user=marie", "token revoke ci --user=marie", "access grant app marie read", "access revoke app marie read", "notify retry", "rollout pause app",
	} {
		called := 0
		check := func() error { called++; return fault.New(fault.Refused, "", "it is another one now") }
		var out, errs bytes.Buffer
		stdin := strings.NewReader(strings.Replace(publicKey, "AAAAIAAB", "AAAAIAAC", 1))
		code := s.apiRequest(t.Context(), access.Local("root"), strings.Fields(line), check, stdin, &out, &errs)
		require.NotZero(t, code, "%s\n%s%s", line, &out, &errs)
		require.Equal(t, 1, called, "%s\n%s%s", line, &out, &errs)
		require.Contains(t, errs.String(), "it is another one now", line)
		require.Equal(t, before, rows(), line)
	}
}

// A tag that no longer fits when the change comes is found, though it did when the request came: here a change over ssh is made in between.
func TestIfMatchIsComparedAtTheChange(t *testing.T) {
	s, as := apiServer(t, map[string]string{})
	boss := as("boss", true, access.Scope{})
	_, err := boss.CreateProject(t.Context(), &client.CreateProjectBody{Name: "app", RemoteLess: new(true)})
	require.NoError(t, err)
	for _, name := range []string{"marie", "otto"} {
		_, err = s.access.AddPrincipal(t.Context(), access.Local("root"), access.Principal{Name: name, Kind: access.Person})
		require.NoError(t, err)
	}
	a := s.web.API.(*api.API)
	run, between := a.Run, func() {}
	a.Run = func(ctx context.Context, who access.Identity, argv []string, check func() error, stdin io.Reader, stdout, stderr io.Writer) int {
		if check != nil {
			between()
		}
		return run(ctx, who, argv, check, stdin, stdout, stderr)
	}
	grants := func() (tag string, of []string) {
		var h http.Header
		all, err := boss.ListGrants(t.Context(), "app", client.Into(&h))
		require.NoError(t, err)
		for _, g := range all.Grants {
			of = append(of, g.Principal)
		}
		return h.Get("ETag"), of
	}
	tag, _ := grants()
	between = func() {
		var out bytes.Buffer
		require.Zero(t, s.Run(t.Context(), access.Local("root"), strings.Fields("access grant app otto read"), strings.NewReader(""), &out, &out, sshd.Terminal{}), "%s", &out)
	}
	_, err = boss.Grant(t.Context(), "app", "marie", "read", client.Header("If-Match", tag))
	problem(t, err, 412)
	tag, of := grants()
	require.Equal(t, []string{"otto"}, of)
	between = func() {}
	_, err = boss.Grant(t.Context(), "app", "marie", "read", client.Header("If-Match", tag))
	require.NoError(t, err)
	_, of = grants()
	require.Len(t, of, 2)

	// The action on all archives is compared with their list, not with an archive of its name.
	var h http.Header
	_, err = boss.ListArchives(t.Context(), "app", client.Into(&h))
	require.NoError(t, err)
	_, err = boss.PruneArchives(t.Context(), "app", &client.PruneBody{}, client.Header("If-Match", h.Get("ETag")))
	require.NoError(t, err)
}
