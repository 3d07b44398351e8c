package pages

import (
	"net/http"
	"slices"
	"strings"

	"corpus-git/project"
	"corpus-git/project/registry"
)

// promoteBody is the page that promotes what is live in a project.
type promoteBody struct {
	actionBody
	// Targets are the other projects in which the reader may deploy, Here: this one, in another environment.
	Targets []project.Name
	Here    bool
	// MayPillar: the reader may read the pillar, and so promote it where that is allowed, too.
	MayPillar bool
}

// promoting checks that the reader may promote what is live here to somewhere.
func (p *Pages) promoting(r *http.Request) (promoteBody, error) {
	head, rights, err := p.open(r, project.Read)
	if err != nil {
		return promoteBody{}, err
	}
	b := promoteBody{actionBody: actionBody{projectHead: head, Typed: r.PostForm}, Here: head.May.Deploy, MayPillar: rights.Can(head.Project.Name, project.Configure)}
	if p.reader.Identity(r).ReadOnly {
		return b, refused("this token may only read")
	}
	all, err := p.Status.List(r.Context())
	if err != nil {
		return b, err
	}
	for _, x := range all {
		if x.Name != head.Project.Name && promotable(x) && rights.Can(x.Name, project.Deploy) {
			b.Targets = append(b.Targets, x.Name)
		}
	}
	if len(b.Targets) == 0 && !b.Here {
		return b, notFound("this requires deploy permission on the project in which it goes live")
	}
	code, _ := p.subjects(r.Context(), head.Project.Name, rights, head.Project, nil)
	b.Code = code[head.Project.Code]
	return b, nil
}

// promotable reports whether something can be promoted to a project: it has repositories, and no other server deploys it here.
func promotable(x registry.Project) bool { return !x.RemoteLess && x.Node == nil }

// promoteOf returns the form that promotes as a plan was made.
func promoteOf(rec project.Record) string {
	q := planned(rec)
	if m := rec.Promoted; m.Environment != "" {
		q.Set("env", m.Environment)
	} else {
		q.Set("to", string(rec.Project))
		if m.WithPillar {
			q.Set("pillar", "yes")
		}
	}
	return pathOf(rec.Promoted.From, "promote") + "?" + q.Encode()
}

func (p *Pages) promoteForm(w http.ResponseWriter, r *http.Request) error {
	b, err := p.promoting(r)
	if err != nil {
		return err
	}
	if b.Typed == nil {
		b.Typed = r.URL.Query() // what was planned
	}
	return p.showPromote(w, r, b, nil)
}

func (p *Pages) showPromote(w http.ResponseWriter, r *http.Request, b promoteBody, wrong error) error {
	status := http.StatusOK
	if wrong != nil {
		code, text := p.explain(r, wrong)
		status, b.Problem = code, &text
	}
	p.Show(w, r, status, "promote.html", page{Title: "Promote " + string(b.Project.Name), Body: b})
	return nil
}

// promotion is the body of the API's request.
type promotion struct {
	Set         map[string]string `json:"set,omitempty"`
	To          string            `json:"to,omitempty"`
	Environment string            `json:"environment,omitempty"`
	Pillar      bool              `json:"pillar,omitempty"`
	Force       bool              `json:"force,omitempty"`
	Plan        bool              `json:"plan,omitempty"`
}

func (p *Pages) promote(w http.ResponseWriter, r *http.Request) error {
	if err := p.Parse(w, r); err != nil {
		return err
	}
	b, err := p.promoting(r)
	if err != nil {
		return err
	}
	f := r.PostForm
	if f.Get("live") != string(b.Project.Code)+" "+string(b.Project.Pillar) {
		return p.showPromote(w, r, b, refused("something else has gone live since this page was shown: look again"))
	}
	q := promotion{Environment: strings.TrimSpace(f.Get("env")), Plan: f.Get("do") == "plan"}
	switch q.Set, err = settings(f.Get("set")); {
	case err != nil:
	case f.Get("where") == "environment":
		if q.Environment == "" {
			err = refused("name the environment")
		}
	case !slices.Contains(b.Targets, project.Name(f.Get("to"))):
		err = refused("choose the project in which it goes live")
	default:
		q.To, q.Environment, q.Pillar, q.Force = f.Get("to"), "", f.Get("pillar") != "", f.Get("force") != ""
	}
	at := ""
	if err == nil {
		at, err = p.change(r, http.MethodPost, pathOf(b.Project.Name, "promote"), q)
	}
	if err != nil {
		return p.showPromote(w, r, b, err)
	}
	return done(w, r, at)
}
