package pages

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/approval"
	"corpus-git/project/status"
)

// tab is a link to a part of what is known of a project.
type tab struct {
	Text, Path string
	Here       bool
}

// tabs returns the tabs that the reader may open.
func (p *Pages) tabs(r *http.Request, name project.Name, rights access.Rights) (out []tab) {
	add := func(ok bool, text string, more ...string) {
		if path := pathOf(name, more...); ok {
			out = append(out, tab{text, path, r.URL.EscapedPath() == path})
		}
	}
	add(true, "Deployments")
	add(p.Units != nil || p.Checks != nil, "Units and checks", "units")
	add(true, "Archives", "archives")
	add(true, "Statistics", "statistics")
	verbs := p.Run != nil
	add(verbs && rights.Can(name, project.Configure), "Configuration", "cfg")
	add(verbs && rights.Can(name, project.Admin), "Access", "access")
	// The outbox contains all projects; like its verb, it requires an administrator of the server.
	admin, err := p.Access.IsAdmin(r.Context(), p.reader.Identity(r))
	add(verbs && err == nil && admin, "Notifications", "notifications")
	add(verbs && rights.Can(name, project.Admin), "Audit", "audit")
	return out
}

// may contains the reader's permissions on a project. Promote: may deploy in some project what is live in this one.
type may struct{ Deploy, Promote bool }

func (p *Pages) may(r *http.Request, name project.Name, rights access.Rights) may {
	if p.reader.Identity(r).ReadOnly {
		return may{}
	}
	return may{Deploy: rights.Can(name, project.Deploy), Promote: rights.Somewhere(project.Deploy)}
}

// projectHead is the common data of the pages of a project.
type projectHead struct {
	Project status.Project
	May     may
}

// open loads the common data of the pages of a project.
func (p *Pages) open(r *http.Request, want project.Right) (projectHead, access.Rights, error) {
	name, rights, err := p.allowed(r, want)
	if err != nil {
		return projectHead{}, rights, err
	}
	at, err := p.Status.Project(r.Context(), name)
	return projectHead{at, p.may(r, name, rights)}, rights, err
}

// showTab renders one of the pages of a project.
func (p *Pages) showTab(w http.ResponseWriter, r *http.Request, name project.Name, rights access.Rights, template string, body any, live string) {
	p.Show(w, r, http.StatusOK, template, page{Title: string(name), Tabs: p.tabs(r, name, rights), Body: body, Live: live})
}

// timelineRows is how many deployments a page of the timeline has.
const timelineRows = 20

// projectBody is what the page of a project shows.
type projectBody struct {
	projectHead
	Queue project.Queue
	Rows  []timelineRow
	Live  project.Subject
	Tests trend
	// Approvals are the requests that wait.
	Approvals []approval.Request
	Older     string
	IsOlder   bool
}

type timelineRow struct {
	project.Record
	Code, Pillar project.Subject
	Bars         bars
	// Again: it was live and no longer is, so a rollback to it is possible.
	Again bool
}

func (p *Pages) project(w http.ResponseWriter, r *http.Request) error {
	head, rights, err := p.open(r, project.Read)
	if err != nil {
		return err
	}
	ctx, name := r.Context(), head.Project.Name
	b := projectBody{projectHead: head}
	if b.Queue, err = p.Runs.Queue(ctx, name); err != nil {
		return err
	}
	var list []project.Record
	if before := r.URL.Query().Get("before"); before != "" {
		id, perr := project.ParseIDPrefix(before)
		if perr != nil {
			return perr
		}
		b.IsOlder = true
		list, err = p.Runs.Before(ctx, name, project.ID(id), timelineRows+1)
	} else {
		list, err = p.Runs.Deployments(ctx, name, timelineRows+1)
	}
	if err != nil {
		return err
	}
	if len(list) > timelineRows {
		list = list[:timelineRows]
		b.Older = pathOf(name) + "?" + url.Values{"before": {string(list[timelineRows-1].ID)}}.Encode()
	}
	code, pillar := p.subjects(ctx, name, rights, head.Project, list)
	b.Live = code[head.Project.Code]
	if !b.IsOlder {
		if b.Approvals, err = p.openApprovals(ctx, name); err != nil {
			return err
		}
		b.Tests = trendOf(status.TestRuns(list))
	}
	for _, rec := range list {
		again := rec.State == project.Live && rec.Result != nil && (rec.Result.Code != head.Project.Code || rec.Result.Pillar != head.Project.Pillar)
		b.Rows = append(b.Rows, timelineRow{rec, code[rec.Code], pillar[rec.Pillar], barsOf(rec.Result), again})
	}
	p.showTab(w, r, name, rights, "project.html", b, pathOf(name, "changes"))
	return nil
}

// subjects returns the subjects of deployed commits in repositories that the reader may read.
func (p *Pages) subjects(ctx context.Context, name project.Name, rights access.Rights, at status.Project, list []project.Record) (code, pillar map[project.Commit]project.Subject) {
	if p.Subjects == nil || at.RemoteLess || at.Missing {
		return nil, nil
	}
	codes, pillars := []project.Commit{at.Code}, []project.Commit{at.Pillar}
	for _, rec := range list {
		codes, pillars = append(codes, rec.Code), append(pillars, rec.Pillar)
	}
	read := func(repo project.Repo, commits []project.Commit) map[project.Commit]project.Subject {
		out, err := p.Subjects(ctx, name, repo, commits)
		if err != nil { // the page says without them what is wrong with the repository
			p.Log.Warn().Err(err).Str("project", string(name)).Msg("subjects of commits")
		}
		return out
	}
	code = read(project.Code, codes)
	if rights.Can(name, project.Configure) {
		pillar = read(project.PillarRepo, pillars)
	}
	return code, pillar
}

// unitsWait is how long a page waits for systemd and similar tools.
const unitsWait = 5 * time.Second

// shownPeriods is how much of the history of checks a page shows.
const shownPeriods = 20

// unitsBody is what a project runs, and what watches it.
type unitsBody struct {
	projectHead
	Units   []project.UnitState
	Problem string
	Checks  status.Checks
}

func (p *Pages) units(w http.ResponseWriter, r *http.Request) error {
	head, rights, err := p.open(r, project.Read)
	if err != nil {
		return err
	}
	b, name := unitsBody{projectHead: head}, head.Project.Name
	if p.Checks != nil {
		b.Checks.Checks = p.Checks.States(name)
		if b.Checks.History, err = p.Checks.History(r.Context(), name, shownPeriods); err != nil {
			return err
		}
	}
	if p.Units != nil {
		ctx, cancel := context.WithTimeout(r.Context(), unitsWait)
		defer cancel()
		if b.Units, err = p.Config.Units(ctx, name); err != nil {
			_, b.Problem = p.Fail(r, err)
		}
	}
	p.showTab(w, r, name, rights, "units.html", b, "")
	return nil
}

// archiveRows is how many archives a page has.
const archiveRows = 50

func (p *Pages) archives(w http.ResponseWriter, r *http.Request) error {
	name, rights, err := p.readable(r)
	if err != nil {
		return err
	}
	rep, err := p.Status.Report(r.Context(), name, 1)
	if err != nil {
		return err
	}
	n, err := number(r, "page", 1, 1_000_000)
	if err != nil {
		return err
	}
	b := struct {
		projectHead
		Disk     status.Disk
		Shown    []status.Archive
		Count, N int
		More     bool
	}{projectHead: projectHead{rep.Project, p.may(r, name, rights)}, Disk: rep.Disk, Count: len(rep.Archives), N: n}
	from := min((n-1)*archiveRows, len(rep.Archives))
	to := min(from+archiveRows, len(rep.Archives))
	b.Shown, b.More = rep.Archives[from:to], to < len(rep.Archives)
	p.showTab(w, r, name, rights, "archives.html", b, "")
	return nil
}

func (p *Pages) statistics(w http.ResponseWriter, r *http.Request) error {
	head, rights, err := p.open(r, project.Read)
	if err != nil {
		return err
	}
	list, err := p.Runs.Deployments(r.Context(), head.Project.Name, status.StatisticsOf)
	if err != nil {
		return err
	}
	s := status.Summarize(list, p.Now())
	b := struct {
		projectHead
		status.Statistics
		Plot  plot
		Trend trend
	}{head, s, plotOf(s.Days), trendOf(s.Tests)}
	p.showTab(w, r, head.Project.Name, rights, "statistics.html", b, "")
	return nil
}

// maxCfg is how many bytes of a configuration a page shows.
const maxCfg = 64 << 10

func (p *Pages) cfg(w http.ResponseWriter, r *http.Request) error {
	head, rights, err := p.open(r, project.Configure)
	if err != nil {
		return err
	}
	var doc cfgDocument
	if err := p.read(r, &doc, "cfg", string(head.Project.Name)); err != nil {
		return err
	}
	rows, cut := doc.rows(r.URL.Query().Get("q"), maxCfg)
	b := struct {
		projectHead
		Rows   []cfgRow
		Cut    bool
		Search string
	}{head, rows, cut, r.URL.Query().Get("q")}
	p.showTab(w, r, head.Project.Name, rights, "cfg.html", b, "")
	return nil
}

func (p *Pages) access(w http.ResponseWriter, r *http.Request) error {
	head, rights, err := p.open(r, project.Admin)
	if err != nil {
		return err
	}
	var doc access.Grants
	if err := p.read(r, &doc, "access list", string(head.Project.Name)); err != nil {
		return err
	}
	b := struct {
		projectHead
		Grants []access.Grant
	}{head, doc.Grants}
	p.showTab(w, r, head.Project.Name, rights, "access.html", b, "")
	return nil
}

// notifications are deliveries, as  notify list --json  prints them.
type notifications struct {
	Sinks      []struct{ Name, Kind string }
	Deliveries []struct {
		Event, Sink, State, Error string
		At                        time.Time
		Attempts                  int
	}
}

func (p *Pages) notifications(w http.ResponseWriter, r *http.Request) error {
	head, rights, err := p.open(r, project.Read)
	if err != nil {
		return err
	}
	b := struct {
		projectHead
		notifications
	}{projectHead: head}
	if err := p.read(r, &b.notifications, "notify list --limit=50", string(head.Project.Name)); err != nil {
		if code(err) == http.StatusNotFound {
			return fault.New(fault.Refused, "", "notifications are for administrators")
		}
		return err
	}
	p.showTab(w, r, head.Project.Name, rights, "notifications.html", b, "")
	return nil
}
