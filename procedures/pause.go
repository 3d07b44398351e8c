package procedures

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/procedures/others"
	"corpus-git/procedures/outfile"
	"corpus-git/procedures/recipe"
	"corpus-git/procedures/resume"
	"corpus-git/signals"
	"corpus-git/sls"
)

// pause records that a step of the deployment begins to wait; see Env.Pause.
func (e *Env) pause(step, wait string, ended bool, so func() sls.Done) error {
	p, err := e.pausedAt(step, wait, ended, so)
	if err != nil {
		return fault.New(fault.Internal, "record the wait", "%w", err)
	}
	if p.Lost != "" {
		e.Note("%s: a restart of the server would end this wait: %s", wait, p.Lost)
	}
	return e.Pause(p)
}

// pausedAt returns where the deployment waits. What steps wrote is durable on return, if it can be continued.
func (e *Env) pausedAt(step, wait string, ended bool, so func() sls.Done) (p resume.Paused, err error) {
	if p.Point, err = e.point(); err != nil {
		return p, err
	}
	p.At, p.Step, p.Wait, p.Ended = e.Tools.Now(), step, wait, ended
	cfg := e.before
	if ended {
		cfg = e.stepCfg().value
		p.Done = resume.DoneOf(e.running.res)
	} else {
		p.Done, p.Waits = so(), e.waits().Received()
	}
	if p.Point, err = e.upTo(p.Point, step, cfg); err != nil {
		return p, err
	}
	if p.Lost == "" {
		p.Lost = p.Done.Lost
	}
	if e.running.procedure != NameInstall {
		p.Lost = "it is not a step of the release"
	}
	if p.Lost == "" {
		p.Written, p.Lost = e.written(e.running.step, ended)
	}
	if p.Lost != "" {
		p.Done = sls.Done{}
		return p, nil
	}
	p.Install, p.Begun, p.Timings, p.Tests, p.Since = e.installing, e.running.begun, e.Timings, e.wrote.tests, e.Since
	if p.Others, err = others.Digests(e.Prepared.others, recipe.TextsOf(e.Prepared.recipe), nil); err != nil {
		return p, err
	}
	if err = e.Undo.Keep(); err == nil {
		_, err = e.SyncWritten()
	}
	if err == nil {
		err = e.syncRoot()
	}
	if err == nil {
		p.Tree, err = resume.Tree(e.Paths.Live())
	}
	return p, err
}

// syncRoot makes durable what states wrote to the file system of /etc.
func (e *Env) syncRoot() error {
	d, err := e.Tools.FS.OpenDir("/etc")
	if err != nil {
		return err
	}
	return errors.Join(d.SyncFS("."), d.Close())
}

// written returns what a step has written into the file of its outputs, or why that cannot be stored.
func (e *Env) written(s recipe.Step, ended bool) (text, lost string) {
	file := outfile.Path(e.Tools.State, e.Deployment.ID)
	if reports, err := os.ReadDir(outfile.Reports(file)); err != nil || !ended && len(reports) > 0 {
		return "", "its test reports are not stored"
	}
	data, err := os.ReadFile(file)
	wrote, rerr := e.readOutputs(file, s)
	if err != nil || rerr != nil {
		return "", "its outputs cannot be read"
	}
	for _, o := range wrote {
		if o.Secret {
			return "", "the output " + o.Name + " of " + s.Name + " is secret and not stored"
		}
	}
	if e.Hide(string(data)) != string(data) {
		return "", "an output of " + s.Name + " contains a secret, and is not stored"
	}
	return string(data), ""
}

// Continue makes the deployment go on where it waited when the server ended. It is fault.Refused, naming all differences, if something has changed
// since.
func (e *Env) Continue(was resume.Paused) error {
	now, err := e.point()
	if err == nil {
		now.Tree, err = resume.Tree(e.Paths.Live())
	}
	if err != nil {
		return fault.New(fault.Internal, "compare with what was recorded", "%w", err)
	}
	other, err := others.Changed(e.Prepared.others, was.Others)
	if err != nil {
		return fault.New(fault.Internal, "compare with what was recorded", "%w", err)
	}
	differs := append(resume.Differences(was.Point, now), other...)
	if e.Deployment.Approval != nil {
		e.CloseRecipes()
	}
	if now.Tree != was.Tree {
		if names := resume.Changed(e.Paths.Live(), was.At); len(names) > 0 {
			differs = append(differs, "changed since: "+strings.Join(names, ", "))
		}
	}
	if len(differs) > 0 {
		return fault.New(fault.Refused, "", "%s", strings.Join(differs, "; "))
	}
	e.kept, e.keptFrom, e.installing = was.Steps, e.Deployment.ID, was.Install
	err = e.takeOutputs(was.Outputs)
	e.wrote.tests, e.Timings, e.Since = was.Tests, was.Timings, was.Since
	e.paused = &was
	return err
}

// suspended reports that the server stops, and leaves the deployment where it waits.
func (e *Env) suspended(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), signals.ErrSuspended)
}

// running is the step that is being applied.
type running struct {
	procedure string
	step      recipe.Step
	begun     time.Time
	res       *sls.StepResult // once it has ended
	was       *resume.Paused  // where it goes on, if an earlier process began it
}

// takeUp returns where a step goes on that waited when an earlier process ended; nil if it begins.
func (e *Env) takeUp(s recipe.Step) *resume.Paused {
	was := e.paused
	if was == nil || was.Step != s.Name {
		return nil
	}
	e.paused = nil
	return was
}

// run runs a step, or goes on where it waited when an earlier process ended.
func (e *Env) run(ctx context.Context, s recipe.Step, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	was := e.running.was
	if was == nil {
		return e.Tools.runner(s).Apply(ctx, in, sink)
	}
	if err := os.WriteFile(outfile.Path(e.Tools.State, e.Deployment.ID), []byte(was.Written), 0o600); err != nil {
		return nil, fault.New(fault.Internal, "write the file for outputs", "%w", err)
	}
	if was.Ended {
		return was.Result(), nil
	}
	if err := e.waits().Again(ctx, s.Name, was.Waits); err != nil {
		return nil, err
	}
	in.Done = &was.Done
	return e.Tools.runner(s).Apply(ctx, in, sink)
}
