package pages

import (
	"net/http"
	"net/url"
	"slices"

	"corpus-git/project"
)

// actionBody is the data of a form that deploys, with the entered values if it is shown again.
type actionBody struct {
	projectHead
	Problem *problem
	Typed   url.Values
	// Target is the deployment of which the form is.
	Target project.Record
	Code   project.Subject
	Tasks  []string
}

// Or returns the entered value of a field, or a default.
func (b actionBody) Or(field, first string) string {
	if b.Typed.Has(field) {
		return b.Typed.Get(field)
	}
	return first
}

// acting checks that the reader may deploy, and returns the common data of a project's forms.
func (p *Pages) acting(r *http.Request) (actionBody, error) {
	head, _, err := p.open(r, project.Deploy)
	if err == nil && !head.May.Deploy {
		err = refused("this token may only read")
	}
	return actionBody{projectHead: head, Typed: r.PostForm}, err
}

// again shows a form with an error.
func (p *Pages) again(w http.ResponseWriter, r *http.Request, template, title string, b actionBody, wrong error) error {
	status := http.StatusOK
	if wrong != nil {
		code, text := p.explain(r, wrong)
		status, b.Problem = code, &text
	}
	p.Show(w, r, status, template, page{Title: title, Body: b})
	return nil
}

func (p *Pages) deployForm(w http.ResponseWriter, r *http.Request) error {
	b, err := p.acting(r)
	if err != nil {
		return err
	}
	if b.Typed == nil {
		b.Typed = r.URL.Query() // what was planned
	}
	return p.again(w, r, "deploy.html", "Deploy "+string(b.Project.Name), b, nil)
}

// run returns the request body for deploy and plan.
type run struct {
	Set       map[string]string `json:"set,omitempty"`
	Only      []string          `json:"only,omitempty"`
	OnlySteps []string          `json:"only_steps,omitempty"`
	Skip      []string          `json:"skip,omitempty"`
}

func (p *Pages) deploy(w http.ResponseWriter, r *http.Request) error {
	if err := p.Parse(w, r); err != nil {
		return err
	}
	b, err := p.acting(r)
	if err != nil {
		return err
	}
	set, err := settings(r.PostForm.Get("set"))
	at := ""
	if err == nil && r.PostForm.Get("do") == "plan" {
		at, err = p.change(r, http.MethodPost, pathOf(b.Project.Name, "plan"), run{Set: set})
	} else if err == nil {
		at, err = p.change(r, http.MethodPost, pathOf(b.Project.Name, "deploy"), run{Set: set, OnlySteps: words(r.PostForm.Get("steps")), Skip: words(r.PostForm.Get("skip"))})
	}
	if err != nil {
		return p.again(w, r, "deploy.html", "Deploy "+string(b.Project.Name), b, err)
	}
	return done(w, r, at)
}

// rollbackTo returns the form's page with the deployment that it would make live again.
func (p *Pages) rollbackTo(r *http.Request, id string) (actionBody, error) {
	b, err := p.acting(r)
	if err != nil || id == "" {
		return b, err
	}
	prefix, err := project.ParseIDPrefix(id)
	if err != nil {
		return b, err
	}
	if b.Target, err = p.Runs.Find(r.Context(), b.Project.Name, prefix); err != nil {
		return b, err
	}
	rights, err := p.Access.Rights(r.Context(), p.reader.Identity(r))
	if err != nil {
		return b, err
	}
	code, _ := p.subjects(r.Context(), b.Project.Name, rights, b.Project, []project.Record{b.Target})
	b.Code = code[b.Target.Code]
	return b, nil
}

func (p *Pages) rollbackForm(w http.ResponseWriter, r *http.Request) error {
	b, err := p.rollbackTo(r, r.URL.Query().Get("to"))
	if err != nil {
		return err
	}
	return p.again(w, r, "rollback.html", "Roll back "+string(b.Project.Name), b, nil)
}

func (p *Pages) rollback(w http.ResponseWriter, r *http.Request) error {
	if err := p.Parse(w, r); err != nil {
		return err
	}
	b, err := p.rollbackTo(r, r.PostForm.Get("to"))
	if err != nil {
		return err
	}
	title := "Roll back " + string(b.Project.Name)
	if live := r.PostForm.Get("live"); live != string(b.Project.Code)+" "+string(b.Project.Pillar) {
		return p.again(w, r, "rollback.html", title, b, refused("something else has gone live since this page was shown: look again"))
	}
	at, err := p.change(r, http.MethodPost, pathOf(b.Project.Name, "rollback"), struct {
		Deployment project.ID `json:"deployment,omitempty"`
	}{b.Target.ID})
	if err != nil {
		return p.again(w, r, "rollback.html", title, b, err)
	}
	return done(w, r, at)
}

// canceling returns the page of a deployment that would be cancelled.
func (p *Pages) canceling(r *http.Request) (actionBody, error) {
	b, err := p.acting(r)
	if err != nil {
		return b, err
	}
	b.Target, _, err = p.record(r)
	return b, err
}

func (p *Pages) cancelForm(w http.ResponseWriter, r *http.Request) error {
	b, err := p.canceling(r)
	if err != nil {
		return err
	}
	return p.again(w, r, "cancel.html", "Cancel "+b.Target.ID.Short(), b, nil)
}

func (p *Pages) cancel(w http.ResponseWriter, r *http.Request) error {
	if err := p.Parse(w, r); err != nil {
		return err
	}
	b, err := p.canceling(r)
	if err != nil {
		return err
	}
	at := pathOf(b.Project.Name, "deployments", string(b.Target.ID))
	if _, err := p.change(r, http.MethodPost, at+"/cancel", nil); err != nil {
		return p.again(w, r, "cancel.html", "Cancel "+b.Target.ID.Short(), b, err)
	}
	return done(w, r, at)
}

// tasked returns the page of a project's tasks.
func (p *Pages) tasked(r *http.Request) (actionBody, error) {
	b, err := p.acting(r)
	if err == nil && p.Tasks != nil {
		b.Tasks, err = p.Tasks(b.Project.Name)
	}
	return b, err
}

func (p *Pages) taskForm(w http.ResponseWriter, r *http.Request) error {
	b, err := p.tasked(r)
	if err != nil {
		return err
	}
	return p.again(w, r, "task.html", "Tasks of "+string(b.Project.Name), b, nil)
}

func (p *Pages) task(w http.ResponseWriter, r *http.Request) error {
	if err := p.Parse(w, r); err != nil {
		return err
	}
	b, err := p.tasked(r)
	if err != nil {
		return err
	}
	name, at := r.PostForm.Get("task"), ""
	set, err := settings(r.PostForm.Get("set"))
	if err == nil && !slices.Contains(b.Tasks, name) {
		err = refused("there is no task " + name)
	}
	if err == nil {
		at, err = p.change(r, http.MethodPost, pathOf(b.Project.Name, "tasks", name), run{Set: set})
	}
	if err != nil {
		return p.again(w, r, "task.html", "Tasks of "+string(b.Project.Name), b, err)
	}
	return done(w, r, at)
}

// forAdmins requires an administrator.
func (p *Pages) forAdmins(r *http.Request) error {
	admin, err := p.Access.IsAdmin(r.Context(), p.reader.Identity(r))
	if err == nil && !admin {
		err = NoPage()
	}
	return err
}

// acts is forAdmins for requests that change something.
func (p *Pages) acts(r *http.Request) error {
	err := p.forAdmins(r)
	if err == nil && p.reader.Identity(r).ReadOnly {
		err = refused("this token may only read")
	}
	return err
}

// form reads a form of administrators that changes something.
func (p *Pages) form(w http.ResponseWriter, r *http.Request) error {
	if err := p.Parse(w, r); err != nil {
		return err
	}
	return p.acts(r)
}

func (p *Pages) createForm(w http.ResponseWriter, r *http.Request) error {
	if err := p.acts(r); err != nil {
		return err
	}
	return p.again(w, r, "create.html", "Create a project", actionBody{}, nil)
}

func (p *Pages) create(w http.ResponseWriter, r *http.Request) error {
	if err := p.form(w, r); err != nil {
		return err
	}
	at, err := p.change(r, http.MethodPost, "/projects", struct {
		Name       string `json:"name"`
		Env        string `json:"env,omitempty"`
		RemoteLess bool   `json:"remote_less,omitempty"`
	}{r.PostForm.Get("name"), r.PostForm.Get("env"), r.PostForm.Get("remote-less") != ""})
	if err != nil {
		return p.again(w, r, "create.html", "Create a project", actionBody{Typed: r.PostForm}, err)
	}
	return done(w, r, at)
}
