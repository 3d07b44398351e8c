package procedures

import (
	"context"
	"fmt"

	"corpus-git/fleet"
	"corpus-git/internal/event"
	"corpus-git/internal/humanize"
	"corpus-git/procedures/plantext"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/project/planned"
	"corpus-git/sls"
)

// Plan reports what a deployment would change: files, procedures, and the states of each step as reported by a
// test run, or the nodes on which the steps run. It changes nothing. It returns the number of things that would change.
func Plan(ctx context.Context, env *Env, desc project.Description) (int, error) {
	n := desc.Files
	if desc.Files > 0 {
		e := event.Event{Kind: event.Plan, Status: event.Changed, Procedure: NameReleaseSync, Text: fmt.Sprintf("%s  %s", NameReleaseSync, humanize.Plural(desc.Files, "file")), Lines: plantext.Files(desc)}
		if more := desc.Files - len(desc.Paths); more > 0 {
			e.Lines = append(e.Lines, fmt.Sprintf("and %d more", more))
		}
		env.Report.Append(e)
	} else {
		env.Report.Append(event.Event{Kind: event.Plan, Status: event.OK, Procedure: NameReleaseSync, Text: NameReleaseSync + "  no file differs"})
	}
	for _, name := range Names() {
		if why, skip := env.Prepared.Skips(name); skip {
			env.Report.Append(event.Event{Kind: event.Plan, Status: event.Skipped, Procedure: name, Text: name + "  skipped: " + why})
		}
	}
	if _, skip := env.Prepared.Skips(NameFixperms); !skip {
		changed, err := env.planFixperms(ctx)
		if err != nil {
			return n, err
		}
		n += changed
	}
	if _, skip := env.Prepared.Skips(NameInstall); skip {
		return n, nil
	}
	if env.Prepared.Rollout != nil {
		for _, e := range plantext.Rollout(env.Prepared.Rollout, NameInstall, env.Prepared.Steps) { // nothing of a step runs on this machine
			env.Report.Append(e)
		}
		return n + len(env.Prepared.Steps), nil
	}
	for i, s := range env.Prepared.Steps {
		changed, err := env.planStep(ctx, i, s)
		if err != nil {
			return n, err
		}
		n += changed
	}
	return n, nil
}

// PlanNodes asks the nodes of the deployment what would keep them from it, reports what they said, and changes nothing there. refused is the error with which the deployment itself
// would be refused for that; nil without nodes. brings is that of fleet.Nodes.
func (e *Env) PlanNodes(ctx context.Context, brings fleet.Brings) (nodes *planned.Readiness, refused, err error) {
	if e.Prepared.Rollout == nil {
		return nil, nil, nil
	}
	r, err := e.rollout(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer e.closeRollout()
	found, refused, err := r.Look(ctx, brings)
	if err != nil {
		return nil, nil, err
	}
	all, ready := found.Count()
	status := event.OK
	if ready < all {
		status = event.Bad
	}
	e.Report.Append(event.Event{Kind: event.Plan, Status: status, Procedure: NameNodes, Text: fmt.Sprintf("%s  %d of %d ready", NameNodes, ready, all), Lines: fleet.PlanLines(found, e.Deployment)})
	return &found, refused, nil
}

// planStep tests one step.
func (e *Env) planStep(ctx context.Context, i int, s recipe.Step) (int, error) {
	title := fmt.Sprintf("%d/%d %s", i+1, len(e.Prepared.Steps), s.Name)
	say := func(st event.Status, lines []string, format string, args ...any) {
		e.Report.Append(event.Event{Kind: event.Plan, Status: st, Procedure: NameInstall, Step: s.Name, N: i + 1, Of: len(e.Prepared.Steps),
			Text: title + "  " + fmt.Sprintf(format, args...), Lines: lines})
	}
	// The live step ran before: its conditions may be evaluated, and its templates may read the machine.
	live := e.Deployment.Trigger == project.TriggerConverge
	if s.Script && live {
		say(event.Skipped, nil, "an executable: its changes are unknown")
		return 0, nil
	}
	if s.Script {
		say(event.Changed, nil, "an executable: its changes are known after it has run")
		return 1, nil
	}
	if c := e.Prepared.Checked[i]; c != nil && c.Deferred != nil && !live {
		say(event.Changed, nil, "decided when it runs: %s (%s:%d)", c.Deferred.Why, c.Deferred.File, c.Deferred.Line)
		return 1, nil
	}
	in := e.Prepared.input(e, e.Prepared.Recipe, s, sls.Static)
	in.Test, in.Plan = true, !live
	res, err := e.Tools.runner(s).Apply(ctx, in, sls.Discard{})
	if err != nil {
		return 0, err
	}
	var lines []string
	changed, failed := 0, 0
	e.differs(s.Name, res.States)
	for _, st := range res.States {
		switch {
		case live && st.Always && st.Outcome != sls.FailedState:
			continue
		case st.Outcome == sls.FailedState:
			failed++
		case st.Outcome == sls.WouldChange || st.Changed:
			changed++
		}
		lines = append(lines, plantext.State(st, e.Prepared.Redactor.String)...)
	}
	if changed == 0 && len(lines) == 0 {
		say(event.OK, nil, "%s unchanged", humanize.Plural(len(res.States), "state"))
		return 0, nil
	}
	status, and := event.Changed, ""
	if failed > 0 {
		status, and = event.Bad, fmt.Sprintf(", %d would currently fail", failed)
	}
	say(status, lines, "%d of %s would change%s", changed, humanize.Plural(len(res.States), "state"), and)
	return changed, nil
}
