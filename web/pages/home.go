package pages

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/project/status"
)

const (
	// homeRows is how many projects a page has, stripMarks how many deployments the strip of one.
	homeRows, stripMarks = 50, 20
	// nowRows is how many deployments are named that run now.
	nowRows = 20
)

// homeBody is what the page of all projects shows.
type homeBody struct {
	Rows []homeRow
	// All is how many the reader may read, Found how many fit the search.
	All, Found int
	Search     string
	// Failed: only those are shown whose newest deployment failed; FailedCount is how many these are.
	Failed      bool
	FailedCount int
	// Asked: only those are shown that have something that waits for approval; AskedCount is how many deployments wait.
	Asked      bool
	AskedCount int
	Now        []project.Record
	NowMore    int
	Previous   string
	Next       string
	MayCreate  bool
}

type homeRow struct {
	status.Project
	Strip strip
	// Asked is how many deployments of it wait for approval.
	Asked int
}

func (p *Pages) home(w http.ResponseWriter, r *http.Request) error {
	ctx, who := r.Context(), p.reader.Identity(r)
	rights, err := p.Access.Rights(ctx, who)
	if err != nil {
		return err
	}
	all, err := p.Status.List(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(x registry.Project) bool { return !rights.Can(x.Name, project.Read) })
	names := make([]project.Name, len(all))
	for i, x := range all {
		names[i] = x.Name
	}
	b := homeBody{All: len(all), Search: strings.TrimSpace(r.URL.Query().Get("q")), Failed: r.URL.Query().Get("show") == "failed", Asked: r.URL.Query().Get("show") == "approval"}
	if err := p.running(r, names, &b); err != nil {
		return err
	}
	failed, asked, err := p.counts(r, names)
	if err != nil {
		return err
	}
	b.FailedCount = len(failed)
	for _, n := range asked {
		b.AskedCount += n
	}
	all = slices.DeleteFunc(all, func(x registry.Project) bool {
		return !strings.Contains(string(x.Name), strings.ToLower(b.Search)) || b.Failed && !failed[x.Name] || b.Asked && asked[x.Name] == 0
	})
	b.Found = len(all)
	n, err := number(r, "page", 1, 1_000_000)
	if err != nil {
		return err
	}
	all = b.cut(all, n)
	if err := p.rows(r, all, asked, &b); err != nil {
		return err
	}
	b.MayCreate, err = p.Access.IsAdmin(ctx, who)
	b.MayCreate = b.MayCreate && !who.ReadOnly
	if err != nil {
		return err
	}
	p.Show(w, r, http.StatusOK, "home.html", page{Title: "Projects", Body: b, Live: "/changes"})
	return nil
}

// cut takes one page of the projects.
func (b *homeBody) cut(all []registry.Project, n int) []registry.Project {
	link := func(n int) string {
		q := url.Values{"page": {strconv.Itoa(n)}}
		if b.Search != "" {
			q.Set("q", b.Search)
		}
		if b.Show() != "" {
			q.Set("show", b.Show())
		}
		return "/?" + q.Encode()
	}
	from := min((n-1)*homeRows, len(all))
	to := min(from+homeRows, len(all))
	if n > 1 {
		b.Previous = link(n - 1)
	}
	if to < len(all) {
		b.Next = link(n + 1)
	}
	return all[from:to]
}

// running are the deployments that run now.
func (p *Pages) running(r *http.Request, names []project.Name, b *homeBody) error {
	for _, name := range names {
		q, err := p.Runs.Queue(r.Context(), name)
		if err != nil {
			return err
		}
		switch {
		case q.Running == nil:
		case len(b.Now) < nowRows:
			b.Now = append(b.Now, *q.Running)
		default:
			b.NowMore++
		}
	}
	return nil
}

// Show is the parameter that selects what is shown; "" for all.
func (b homeBody) Show() string {
	switch {
	case b.Failed:
		return "failed"
	case b.Asked:
		return "approval"
	}
	return ""
}

// counts returns the projects whose newest deployment that ended did not succeed, and how many deployments of each wait for approval.
func (p *Pages) counts(r *http.Request, names []project.Name) (failed map[project.Name]bool, asked map[project.Name]int, err error) {
	if p.Recent == nil {
		return nil, nil, nil
	}
	if failed, err = p.Recent.Failed(r.Context(), names); err == nil {
		asked, err = p.Recent.Asked(r.Context(), names)
	}
	return failed, asked, err
}

// rows describes what one page shows.
func (p *Pages) rows(r *http.Request, all []registry.Project, asked map[project.Name]int, b *homeBody) error {
	shown, err := p.Status.Describe(r.Context(), all)
	if err != nil {
		return err
	}
	names := make([]project.Name, len(shown))
	for i, x := range shown {
		names[i] = x.Name
	}
	marks := map[project.Name][]status.Mark{}
	if p.Recent != nil {
		if marks, err = p.Recent.Newest(r.Context(), names, stripMarks); err != nil {
			return err
		}
	}
	for _, x := range shown {
		b.Rows = append(b.Rows, homeRow{x, stripOf(marks[x.Name]), asked[x.Name]})
	}
	return nil
}
