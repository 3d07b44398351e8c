package web_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/project"
	"corpus-git/project/approval"
	"corpus-git/project/demands"
	"corpus-git/project/status"
	"corpus-git/web"
)

// waitingFor is a server on which the deployment idLive waits for the approval of others, asked for by somebody.
func waitingFor(asked string, q *requests) (*web.Server, *approval.Request) {
	m := newMachine()
	m.live.State, m.live.Result = project.Refused, &project.Result{State: project.Refused, Reason: demands.Waiting + string(idLive), Started: noon, Ended: noon}
	r := &approval.Request{ID: idLive, Project: "app", At: noon.Add(-time.Hour), Expires: noon.Add(time.Hour), Need: 2, Plan: "0123456789abcdef", State: approval.Open}
	r.Deployment.Pusher.Key = asked
	s := server(m)
	s.API = q
	s.Approvals = func(_ context.Context, _ project.Name, open bool, _ int) ([]approval.Request, error) {
		if open && r.State != approval.Open {
			return nil, nil
		}
		return []approval.Request{*r}, nil
	}
	return s, r
}

// What waits for approval is on the pages of its project and of its deployment, and is decided about by a form.
func TestApprovalPages(t *testing.T) {
	q := &requests{answer: `{"version": 1, "approval": {}, "deployment": "` + string(idRun) + `"}`}
	s, request := waitingFor("<b>paul</b>", q)
	get, post := browser(t, s, access.Local("root"))
	at := "/projects/app/deployments/" + string(idLive)
	_, body := get("/projects/app")
	require.Contains(t, body, "Waiting for approval")
	require.Contains(t, body, at+"/approve")
	require.Contains(t, body, "&lt;b&gt;paul&lt;/b&gt;")
	_, body = get(at)
	require.Contains(t, body, "0 of 2 approvals")
	require.Contains(t, body, "Approve or reject…")
	require.Contains(t, body, "asked for approval")
	_, body = get(at + "/approve")
	require.Contains(t, body, "More must approve before it is deployed.")
	token := formToken(t, body)
	for _, c := range []struct {
		form url.Values
		want string
	}{
		{url.Values{"do": {"approve"}}, `/approve {}`},
		{url.Values{"do": {"reject"}, "reason": {" not <b>today</b> "}}, `/reject {"reason":"not \u003cb\u003etoday\u003c/b\u003e"}`},
		{url.Values{"do": {"break-glass"}, "glass": {"shop is down"}}, `/approve {"break_glass":true,"reason":"shop is down"}`},
	} {
		q.asked = nil
		status, _, _ := post(at+"/approve", c.form)
		require.Equal(t, http.StatusForbidden, status, "without the token of a form")
		require.Empty(t, q.asked)
		c.form.Set("token", token)
		status, location, body := post(at+"/approve", c.form)
		require.Equal(t, http.StatusSeeOther, status, body)
		require.Equal(t, "/projects/app/deployments/"+string(idRun), location)
		require.Equal(t, []string{"root POST /api/v1/projects/app/approvals/" + string(idLive) + c.want}, q.asked)
	}
	status, _, _ := post(at+"/approve", url.Values{"do": {"else"}, "token": {token}})
	require.Equal(t, http.StatusBadRequest, status)

	q.refuses = true
	status, _, body = post(at+"/approve", url.Values{"do": {"reject"}, "reason": {"typed"}, "token": {token}})
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "not &lt;b&gt;now&lt;/b&gt;")
	require.Contains(t, body, `value="typed"`)

	request.Votes = []approval.Vote{{By: project.Pusher{Key: "root"}, At: noon}}
	_, body = get(at + "/approve")
	require.NotContains(t, body, ">Approve</button>", "who has approved")
	require.Contains(t, body, ">Reject</button>")
	request.State, request.Reason, request.By = approval.Rejected, "no", "zoe"
	_, body = get(at + "/approve")
	require.NotContains(t, body, "<form class=\"fields\"", "it has ended")
	require.Contains(t, body, "It no longer waits.")
	_, body = get("/projects/app")
	require.NotContains(t, body, "Waiting for approval")
}

// Who asked may withdraw, and not approve; a deployment that asks for nothing has no such page.
func TestApprovalOfOnesOwn(t *testing.T) {
	s, _ := waitingFor("root", &requests{})
	get, _ := browser(t, s, access.Local("root"))
	_, body := get("/projects/app/deployments/" + string(idLive) + "/approve")
	require.NotContains(t, body, ">Approve</button>")
	require.Contains(t, body, ">Withdraw</button>")
	require.Contains(t, body, "somebody else must approve it")
	status, _ := get("/projects/app/deployments/" + string(idRun) + "/approve")
	require.Equal(t, http.StatusNotFound, status)
}

// recentOf are the newest deployments of the project app, whose newest one waits for approval.
type recentOf struct{}

func (recentOf) Newest(context.Context, []project.Name, int) (map[project.Name][]status.Mark, error) {
	return map[project.Name][]status.Mark{"app": {{State: project.Refused, Asked: true}, {State: project.Live}}}, nil
}

func (recentOf) Failed(context.Context, []project.Name) (map[project.Name]bool, error) {
	return nil, nil
}

func (recentOf) Asked(context.Context, []project.Name) (map[project.Name]int, error) {
	return map[project.Name]int{"app": 1}, nil
}

// The page of all projects counts what waits for approval, shows which projects that is, and calls none of it failed.
func TestHomeShowsWhatWaitsForApproval(t *testing.T) {
	s, _ := waitingFor("paul", &requests{})
	s.Recent = recentOf{}
	get, _ := browser(t, s, access.Local("root"))
	_, body := get("/")
	require.Contains(t, body, `<a href="/?show=approval">1 deployment waits for approval</a>`)
	require.Contains(t, body, ">1 waits for approval</span>")
	require.Contains(t, body, "1 of 2 went well, the newest: waits for approval")
	require.NotContains(t, body, "show=failed")
	_, body = get("/?show=approval")
	require.Contains(t, body, `href="/projects/app"`)
	require.Contains(t, body, "all projects</a>")
	_, body = get("/?show=failed")
	require.NotContains(t, body, `<th scope="row"><a href="/projects/app"`)
}
