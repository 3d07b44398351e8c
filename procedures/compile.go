package procedures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/procedures/filestep"
	"corpus-git/procedures/plantext"
	"corpus-git/procedures/recipe"
	"corpus-git/procedures/waiting"
	"corpus-git/project"
	"corpus-git/sls"
)

// check compiles all steps that will run, and the project's own procedures. The first error ends it.
func (p *Prepared) check(ctx context.Context, t *Tools, d project.Deployment) error {
	return p.checkAll(ctx, t, d, func(err error) error { return err })
}

// checkAll is like check, but passes errors in files to failed, and continues if that returns nil.
func (p *Prepared) checkAll(ctx context.Context, t *Tools, d project.Deployment, failed func(error) error) error {
	err := p.writeFiles(t, d)
	if err != nil {
		return err
	}
	if p.recipe == nil {
		if _, skip := p.Skips(NameInstall); skip || p.files == "" {
			return nil
		}
		p.Steps = []recipe.Step{filestep.Step()} // of a commit without .salt
		return p.checkSteps(ctx, t, d, failed)
	}
	groups, err := t.Groups()
	if err != nil {
		return err
	}
	all, err := recipe.Steps(p.recipe, groups...)
	if err == nil {
		all, err = filestep.First(all, p.Cfg.Files())
	}
	if err != nil {
		return failed(err)
	}
	if p.Steps, err = recipe.Choose(all, p.Cfg.OnlySteps()); err != nil {
		return failed(err)
	}
	if err := p.leaveOut(all); err != nil {
		return failed(err)
	}
	if p.staged {
		led, err := fleet.LeaderSteps(p.recipe, func(name string) bool {
			return slices.ContainsFunc(all, func(s recipe.Step) bool { return s.Name == name })
		})
		if err != nil {
			return failed(err)
		}
		if len(p.nodes) == 0 && (d.Leader == 0 || d.Trigger == project.TriggerRollback) { // also when a node rolls itself back
			p.Steps = slices.DeleteFunc(p.Steps, func(s recipe.Step) bool { return slices.Contains(led, s.Name) })
		}
	}
	if p.outputs, err = outputsOf(p.recipe, all); err != nil && p.holds {
		if err = failed(err); err != nil {
			return err
		}
	}
	if err := p.findWaits(t, d, all); err != nil && p.holds {
		if err = failed(err); err != nil {
			return err
		}
	}
	_, skipsInstall := p.Skips(NameInstall)
	if skipsInstall {
		p.Steps = nil
	}
	own, err := recipe.OwnIn(p.recipe)
	if err != nil {
		return failed(err)
	}
	for _, s := range own {
		if s.Procedure == NameInstall {
			if len(p.Cfg.OnlySteps()) == 0 && !skipsInstall { // only_steps names steps
				if p.Steps = []recipe.Step{s.Step}; p.files != "" {
					p.Steps = []recipe.Step{filestep.Step(), s.Step}
				}
				p.Notes = append(p.Notes, ownNote(s))
			}
			continue // checked with the steps
		}
		if err := p.checkOwn(ctx, t, d, s); err != nil {
			if err = failed(err); err != nil {
				return err
			}
			continue
		}
		p.Notes = append(p.Notes, ownNote(s))
	}
	around, err := recipe.HookSteps(p.recipe)
	if err != nil {
		return failed(err)
	}
	for _, s := range append(recipe.Undeploy(p.recipe), around...) {
		if _, err := p.checkStep(ctx, t, d, s); err != nil {
			if err = failed(err); err != nil {
				return err
			}
		}
	}
	return p.checkSteps(ctx, t, d, failed)
}

// writeFiles makes the SLS file of the step that writes the files of cfg.
func (p *Prepared) writeFiles(t *Tools, d project.Deployment) (err error) {
	list := p.Cfg.Files()
	if len(list) == 0 || !p.coded { // a pillar without code is deployed nowhere yet
		return nil
	}
	user, group := "", ""
	if t.Accounts && t.Host.EUID == 0 {
		user, group = p.Cfg.User(), p.Cfg.Group()
	}
	p.files, err = filestep.Text(list, t.Root.Project(d.Project.String()), user, group)
	return err
}

// checkSteps compiles the steps in their order.
func (p *Prepared) checkSteps(ctx context.Context, t *Tools, d project.Deployment, failed func(error) error) (err error) {
	p.Checked, p.refused = make([]*sls.Checked, len(p.Steps)), make([]error, len(p.Steps))
	for i, s := range p.Steps {
		if p.checking != nil {
			p.checking.later, p.checking.staged = i > 0, p.staged
		} else if i > 0 {
			p.checking = &stepCfg{value: p.dict(), later: true, staged: p.staged}
		}
		c, err := p.checkStep(ctx, t, d, s)
		if !s.Script {
			p.Checked[i] = c
		}
		if p.refused[i] = err; err != nil {
			if err = failed(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOwn compiles a project's own file for a procedure, with a failed result if it uses the
// result.
func (p *Prepared) checkOwn(ctx context.Context, t *Tools, d project.Deployment, s recipe.OwnStep) error {
	if s.Procedure == NameRollback || s.Procedure == NameNotify {
		of := p.checking
		defer func() { p.checking = of }()
		p.checking = &stepCfg{value: p.dict(), later: true, staged: p.staged}
		setVerdict(p.checking.value, d, s.Procedure == NameRollback, s.Procedure != NameRollback, "")
	}
	_, err := p.checkStep(ctx, t, d, s.Step)
	return err
}

func (p *Prepared) checkStep(ctx context.Context, t *Tools, d project.Deployment, s recipe.Step) (*sls.Checked, error) {
	if p.checking == nil {
		p.checking = &stepCfg{value: p.dict(), staged: p.staged}
	}
	in := p.inputFor(t, d, p.Recipe, s, sls.Static, p.checking)
	in.First = !p.checking.later && !recipe.Has(p.recipe, layout.HooksDir)
	c, err := t.runner(s).Check(ctx, in)
	if p.Rollout != nil && (s.Script || s.Tool != "") && (err == nil || fault.KindOf(err) == fault.Refused) {
		c, err = &sls.Checked{SLS: in.SLS, File: in.ScriptFile, Runner: t.runner(s).Name()}, nil // the nodes check what they have
	}
	if waits := p.checking.waitsForOutputs(s, d, err); waits != nil {
		c, err = waits, nil
	}
	if before := p.checking.unsure; before != "" && sls.IsUndefined(err) {
		at, _ := fault.PosOf(err)
		c, err = &sls.Checked{SLS: s.SLS(d.Project), File: at.File, Deferred: &sls.Deferred{File: at.File, Line: at.Line,
			Why: fmt.Sprintf("%s, which %s before it may set", fault.Cause(err), before)}}, nil
	}
	if err != nil {
		var f *fault.Error
		if !errors.As(err, &f) {
			err = fault.New(fault.Internal, "check "+s.Name, "%w", err)
		}
		if fault.HintOf(err) == "" && fault.KindOf(err) == fault.Failed {
			err = f.WithHint("nothing was run: fix %s/%s, commit, and push again", layout.SaltDir, s.File)
		}
		return nil, err
	}
	if p.Rollout != nil && p.holds && len(c.Waits) > 0 {
		return nil, waiting.OnNodes(c.Waits[0].String())
	}
	p.ignored = append(p.ignored, c.Warnings...)
	if s.Script {
		for _, w := range c.Warnings {
			p.Notes = append(p.Notes, w.String())
		}
	}
	if c.Deferred != nil {
		p.checking.mayChange(p.recipe, s)
		p.Notes = append(p.Notes, fmt.Sprintf("%s is compiled right before it runs: %s (%s:%d)", s.Name, c.Deferred.Why, c.Deferred.File, c.Deferred.Line))
	}
	if len(c.Needs) > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%s is run by %s: it needs %s (%s:%d)", s.Name, c.Runner, c.Needs[0].What, c.Needs[0].File, c.Needs[0].Line))
	}
	if c.Runner == plantext.SaltRunner {
		if line := recipe.UndoLine(p.recipe, s.File); line > 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("%s is run by %s, which ignores undo: a rollback does not undo that command (%s/%s:%d)", s.Name, c.Runner, layout.SaltDir, s.File, line))
		}
	}
	return c, nil
}

// taskOf finds a task of a recipe.
func taskOf(files fs.FS, name project.Name, task string) (recipe.Step, error) {
	tasks, err := recipe.Tasks(files)
	if err != nil {
		return recipe.Step{}, err
	}
	want := strings.TrimSuffix(task, ".sls")
	i := slices.IndexFunc(tasks, func(s recipe.Step) bool { return s.Name == want || s.Name == recipe.TaskPrefix+want })
	if i < 0 {
		return recipe.Step{}, fault.New(fault.Usage, "task", "%s has no task %q", name, task).WithHint("its tasks are: %s", recipe.NamesOf(tasks))
	}
	return tasks[i], nil
}

// task finds and checks one task.
func (p *Prepared) task(ctx context.Context, t *Tools, d project.Deployment) error {
	s, err := taskOf(p.recipe, d.Project, d.Task)
	if err != nil {
		return err
	}
	groups, err := t.Groups()
	if err != nil {
		return err
	}
	steps, err := recipe.Steps(p.recipe, groups...)
	if err != nil {
		return err
	}
	if p.outputs, err = outputsOf(p.recipe, steps); err != nil {
		return err
	}
	if err := p.findWaits(t, d, steps); err != nil {
		return err
	}
	p.Steps = []recipe.Step{s}
	c, err := p.checkStep(ctx, t, d, p.Steps[0])
	p.Checked = []*sls.Checked{c}
	return err
}
