package pages

import (
	"net/http"
	"net/url"
	"strings"

	"corpus-git/project"
	"corpus-git/project/approval"
	"corpus-git/project/status"
)

// deploymentBody is what the page of a deployment shows.
type deploymentBody struct {
	Project      status.Project
	Record       project.Record
	Code, Pillar project.Subject
	Bars         bars
	Tests        testsOf
	Log          part
	Live         bool
	May          may
	// Restores: what it brought live can be made live again. Plan: it is a plan of a deployment that can follow.
	Restores, Plan bool
	// Deploy is the form that deploys what was planned.
	Deploy string
	// Approval is the request for approval that it made; nil is none.
	Approval *approval.Request
	Decide   mayDecide
}

// planned returns the fields of a form that starts what a plan was of.
func planned(rec project.Record) url.Values {
	var set []string
	for _, s := range rec.Set {
		if !s.Secret && (rec.Promoted == nil || rec.Promoted.Environment == "" || s.Key != "default_env") {
			set = append(set, s.Key+"="+s.Value)
		}
	}
	q := url.Values{"planned": {rec.ID.Short()}}
	if len(set) > 0 {
		q.Set("set", strings.Join(set, "\n"))
	}
	return q
}

// deployOf returns the form that deploys as a plan was made; values that are secret in the pillar are not recorded, and are typed again.
func deployOf(rec project.Record) string {
	return pathOf(rec.Project, "deploy") + "?" + planned(rec).Encode()
}

func (p *Pages) deployment(w http.ResponseWriter, r *http.Request) error {
	rec, rights, err := p.record(r)
	if err != nil {
		return err
	}
	at, err := p.Status.Project(r.Context(), rec.Project)
	if err != nil {
		return err
	}
	n, err := number(r, "part", 0, 1_000_000)
	if err != nil {
		return err
	}
	b := deploymentBody{Project: at, Record: rec, Live: !rec.State.Terminal(), Bars: barsOf(rec.Result), Tests: newTestsOf(rec.Result), May: p.may(r, rec.Project, rights)}
	code, pillar := p.subjects(r.Context(), rec.Project, rights, at, []project.Record{rec})
	b.Code, b.Pillar = code[rec.Code], pillar[rec.Pillar]
	b.Restores = rec.State == project.Live && rec.Result != nil && (rec.Result.Code != at.Code || rec.Result.Pillar != at.Pillar)
	if b.Approval, err = p.approvalOf(r.Context(), rec); err != nil {
		return err
	}
	b.Decide = p.mayDecide(r, b.Approval, rights)
	b.Plan = rec.Trigger == project.TriggerPlan && rec.State == project.Done
	if b.Deploy = deployOf(rec); rec.Promoted != nil {
		b.Plan, b.Deploy = b.Plan && rights.Can(rec.Promoted.From, project.Read), promoteOf(rec)
	} else if rec.Code != at.Code || rec.Pillar != at.Pillar {
		b.Plan = false // what was planned was pushed, and is deployed by a push
	}
	b.Log = partAt(p.Events(rec.Project, rec.ID), n, r.URL.Query().Get("q"))
	p.Show(w, r, http.StatusOK, "deployment.html", page{Title: string(rec.Project) + " " + rec.ID.Short(), Body: b})
	return nil
}
