package procedures

import (
	"fmt"

	"corpus-git/procedures/recipe"
	"corpus-git/procedures/waiting"
	"corpus-git/project"
)

// findWaits reads what the recipe waits for, and hides the addresses of its signals.
func (p *Prepared) findWaits(t *Tools, d project.Deployment, steps []recipe.Step) error {
	names, err := recipe.StepNames(p.recipe, steps)
	if err != nil {
		return err
	}
	if p.waits, err = waiting.Read(p.recipe, names); err != nil || p.waits.Len() == 0 {
		return err
	}
	if p.Rollout != nil {
		return waiting.OnNodes(waiting.Shown())
	}
	if p.holds && d.Trigger != project.TriggerPlan {
		if err := p.waits.Possible(t.Signals); err != nil {
			return err
		}
	}
	secrets, over := p.waits.Address(d.ID, t.Signals)
	if t.Signals != nil && !over {
		p.Notes = append(p.Notes, waiting.Shown()+": http_listen is not set: signals can be sent only with  corpus-git signal")
	}
	p.Redactor.Extend(secrets)
	return nil
}

// waits returns the waits of the deployment, the same object each time.
func (e *Env) waits() *waiting.Run {
	if e.waiting == nil {
		e.waiting = &waiting.Run{Signals: e.Tools.Signals, Deployment: e.Deployment, Set: e.Prepared.waits, SkipReason: e.waitSkipReason, Shows: e.Waits, Hide: e.Hide, Note: e.Note}
		if e.Pause != nil {
			e.waiting.Pause, e.waiting.Goes = e.pause, e.Goes
		}
		e.waiting.Node = e.Prepared.staged && len(e.Prepared.nodes) == 0
	}
	return e.waiting
}

// waitSkipReason returns why this deployment does not wait for signals, "" if it does.
func (e *Env) waitSkipReason() string {
	switch {
	case e.back || e.Deployment.Trigger == project.TriggerRollback:
		return "a rollback does not wait for signals"
	case !e.Prepared.holds:
		return fmt.Sprintf("%s does not wait for signals", e.Deployment.Trigger)
	}
	return ""
}
