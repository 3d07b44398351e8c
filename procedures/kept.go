package procedures

import (
	"slices"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/procedures/recipe"
	"corpus-git/procedures/resume"
	"corpus-git/project"
)

// point returns the current point of the deployment, without the live tree. A later deployment that continues here is compared with it.
func (e *Env) point() (p resume.Point, err error) {
	d := e.Deployment
	p = resume.Point{ID: d.ID, Code: d.Code, Pillar: d.Pillar, Set: d.Set, Select: d.Select, Outputs: e.wrote.list}
	if p.Recipe, err = resume.Files(e.Prepared.recipe); err != nil {
		return p, err
	}
	if p.Cfg, err = resume.Cfg(e.Prepared.Cfg.Dict()); err != nil {
		return p, err
	}
	p.Keys, err = resume.Keys(e.stepCfg().value)
	return p, err
}

// SavePoint records where a deployment that is not rolled back failed, so that another one can continue there.
func (e *Env) SavePoint(failed string) error {
	p, err := e.point()
	if err != nil {
		return err
	}
	p.Failed = failed
	if p, err = e.upTo(p, failed, e.before); err != nil {
		return err
	}
	if p.Tree, err = resume.Tree(e.Paths.Live()); err != nil {
		return err
	}
	return resume.Save(e.Tools.State.Resume(e.Deployment.Project.String()), p)
}

// upTo completes a point with the steps before one; cfg is the configuration as they left it.
func (e *Env) upTo(p resume.Point, step string, cfg *py.Dict) (resume.Point, error) {
	for _, s := range e.Prepared.Steps {
		if s.Name == step {
			break
		}
		p.Steps = append(p.Steps, s.Name)
	}
	p.Outputs = slices.DeleteFunc(slices.Clone(p.Outputs), func(o project.Output) bool { return !slices.Contains(p.Steps, o.Step) })
	if sum, err := resume.Cfg(cfg); err != nil || sum != p.Cfg {
		p.Lost = "an earlier step changed cfg for later ones, which is not stored"
	}
	for _, o := range p.Outputs {
		if o.Secret || e.shortened(o) {
			p.Lost = "the output " + o.Name + " of " + o.Step + " is secret and not stored"
		}
	}
	return p, nil
}

// shortened reports whether the record of an output differs from its value: something in it was redacted.
func (e *Env) shortened(o project.Output) bool {
	step, _ := e.wrote.values.GetStr(o.Step)
	values, ok := step.(*py.Dict)
	if !ok {
		return true
	}
	v, _ := values.GetStr(o.Name)
	kept, err := py.LoadJSON(string(o.Value), true)
	return err != nil || !py.Equal(v, kept)
}

// Resume makes the deployment continue at the step at which an earlier one failed. It is fault.Refused, with the reason, if something
// has changed or there is no such point. from is the ID of the earlier one, a prefix of it, or "last".
func (e *Env) Resume(from project.ID) (project.ID, error) {
	was, err := resume.Load(e.Tools.State.Resume(e.Deployment.Project.String()))
	if err != nil {
		return "", fault.New(fault.Internal, "read where the last deployment failed", "%w", err)
	}
	if was == nil || from != project.ResumeLast && !strings.HasPrefix(string(was.ID), string(from)) {
		return "", fault.New(fault.Refused, "", "there is nothing to resume").
			WithHint("only the last deployment can be resumed, if it failed in a step and its tree stayed in place, as in dev")
	}
	now, err := e.point()
	if err == nil {
		now.Tree, err = resume.Tree(e.Paths.Live())
	}
	if err != nil {
		return "", fault.New(fault.Internal, "compare with "+was.ID.Short(), "%w", err)
	}
	if err := resume.Compare(*was, now); err != nil {
		return "", err
	}
	e.kept, e.keptFrom = was.Steps, was.ID
	return was.ID, e.takeOutputs(was.Outputs)
}

// takeOutputs makes the recorded outputs of kept steps those of the deployment.
func (e *Env) takeOutputs(list []project.Output) error {
	e.wrote = stepOutputs{list: list, values: py.NewDict()}
	for _, o := range list {
		v, err := py.LoadJSON(string(o.Value), true)
		if err != nil {
			return fault.New(fault.Internal, "read the outputs of "+o.Step, "%w", err)
		}
		step, _ := e.wrote.values.GetStr(o.Step)
		values, ok := step.(*py.Dict)
		if !ok {
			values = py.NewDict()
			e.wrote.values.SetStr(o.Step, values)
		}
		values.SetStr(o.Name, v)
	}
	e.stepCfg().value.SetStr(outputsKey, py.DeepCopy(e.wrote.values))
	return nil
}

// keep reports whether a step is kept from the deployment that this one continues, and tells the pusher.
func (e *Env) keep(procedure string, s recipe.Step, n, of int) bool {
	if !slices.Contains(e.kept, s.Name) {
		return false
	}
	e.Report.Append(event.Event{
		Kind: event.StepDone, Status: event.Skipped, Procedure: procedure, Step: s.Name, N: n, Of: of, Text: e.keptText(),
	})
	return true
}

func (e *Env) keptText() string {
	if e.keptFrom == e.Deployment.ID {
		return "kept: it had ended before the server did"
	}
	return "kept from " + e.keptFrom.Short()
}

// DropPoint removes the point: this deployment changes what the earlier one left.
func (e *Env) DropPoint() error {
	return resume.Drop(e.Tools.State.Resume(e.Deployment.Project.String()))
}
