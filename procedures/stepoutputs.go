package procedures

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/redact"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures/keyplace"
	"corpus-git/procedures/outfile"
	"corpus-git/procedures/recipe"
	"corpus-git/procedures/testreports"
	"corpus-git/project"
	"corpus-git/project/junit"
	"corpus-git/project/schema"
	"corpus-git/sls"
	"corpus-git/sls/host"
)

const (
	// outputsKey is where later steps find them in cfg: outputs, the step, the name.
	outputsKey = "outputs"
	// exportsKey is where the steps of a node find what the nodes of earlier stages wrote.
	exportsKey = "exports"
)

// outputsOf returns what a recipe declares of the outputs of its steps; nil if it declares nothing.
func outputsOf(files fs.FS, steps []recipe.Step) (*schema.Outputs, error) {
	shown := path.Join(layout.SaltDir, schema.OutputsFile)
	text, err := fs.ReadFile(vfs.Bounded{FS: files, Max: keyplace.MaxSearched}, schema.OutputsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "read "+shown, "%w", err)
	}
	names, err := recipe.StepNames(files, steps)
	if err != nil {
		return nil, err
	}
	return schema.ParseOutputs(shown, text, names)
}

// stepOutputs are what the steps of a deployment wrote.
type stepOutputs struct {
	list    []project.Output
	values  *py.Dict // by step
	secrets []redact.Secret
	wrong   []string // what the outputs of a step that failed by itself say
	tests   []junit.Summary
}

// Outputs returns what the steps wrote, as it is recorded.
func (e *Env) Outputs() []project.Output { return e.wrote.list }

// Tests returns what the steps' reports of tests say, as it is recorded.
func (e *Env) Tests() []junit.Summary { return e.wrote.tests }

// keepTests adds a step's reports of tests to the record and says in the log what they are; they never fail it.
func (e *Env) keepTests(dir string, s recipe.Step) {
	show := func(text string) string { return e.Prepared.Redactor.String(event.Scrub(text)) }
	if t := testreports.Read(dir, s.Name, show); t != nil {
		e.wrote.tests = append(e.wrote.tests, *t)
		lines := t.Lines()
		e.Report.Append(event.Event{Kind: event.Note, Step: s.Name, Text: lines[0], Lines: lines[1:]})
	}
}

// SecretOutputs returns the values of those that are declared as secret.
func (e *Env) SecretOutputs() []redact.Secret { return e.wrote.secrets }

// apply runs one step, with an empty file for its outputs, and adds what it wrote to cfg of the later steps, and to the record. more reports that another
// step follows if this one succeeds.
func (e *Env) apply(ctx context.Context, r *recipe.Recipe, s recipe.Step, in *sls.Input, sink sls.Sink, more bool) (res *sls.StepResult, err error) {
	files := e.series()
	file := files.File
	defer func() { files.End(err == nil && res.OK()) }()
	if err := files.Begin(e.writers(), more); err != nil {
		return nil, fault.New(fault.Internal, "make the file for outputs", "%w", err)
	}
	if err := e.waits().Open(ctx); err != nil {
		return nil, fault.New(fault.Internal, "open the waits", "%w", err)
	}
	e.before = e.stepCfg().value
	done := e.record(r, s)
	res, err = e.run(ctx, s, in, sink)
	failed := err != nil || !res.OK()
	wrote, outErr := e.readOutputs(file, s)
	e.keepTests(outfile.Reports(file), s)
	if !failed && outErr == nil {
		e.running.res = res
		outErr = e.waits().Behind(ctx, s.Name)
	}
	if e.suspended(ctx) {
		return nil, context.Cause(ctx) // the step has not ended
	}
	wrote = append(wrote, e.waits().Take()...)
	e.keepOutputs(s, wrote)
	if why := e.Prepared.outputs.Failure(s.Name, wrote); why != "" && outErr == nil {
		outErr = fault.New(fault.Failed, "", "%s", why)
	}
	e.wrote.wrong = nil
	switch {
	case !failed:
		err = outErr
	case err == nil && outErr != nil:
		e.wrote.wrong = strings.Split(fault.Cause(outErr), "\n")
	}
	done(res, err)
	return res, err
}

// EndSteps removes what was made for a step that did not begin. No step runs.
func (e *Env) EndSteps() { e.files.Close() }

// series is that of the deployment's steps.
func (e *Env) series() *outfile.Series {
	if e.files.File == "" {
		e.files = outfile.Series{File: outfile.Path(e.Tools.State, e.Deployment.ID), Machine: e.Tools.Host}
	}
	return &e.files
}

// writers returns the group whose members may write the file: steps may run as the project's user. nil means none.
func (e *Env) writers() *host.Group {
	if !e.Tools.Accounts {
		return nil
	}
	g, err := e.Tools.Host.Users.Group(e.Prepared.Cfg.Group())
	if err != nil {
		return nil // a project without a group of its own has no such steps
	}
	return &g
}

// readOutputs reads what a step wrote. Valid outputs are returned beside the error.
func (e *Env) readOutputs(file string, s recipe.Step) ([]schema.Output, error) {
	f, err := outfile.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := schema.ReadLimited(f)
	if err != nil {
		return nil, fault.New(fault.Internal, "read the outputs", "%w", err)
	}
	wrote, err := schema.ReadOutputs(text)
	if err != nil {
		return nil, err
	}
	return e.Prepared.outputs.Hold(s.Name, wrote)
}

// keepOutputs adds a step's outputs to cfg of the later steps, hides secrets from now on, and records them.
func (e *Env) keepOutputs(s recipe.Step, wrote []schema.Output) {
	if e.wrote.values == nil {
		e.wrote.values = py.NewDict()
	}
	values := py.NewDict()
	for _, w := range wrote {
		values.SetStr(w.Name, w.Value)
		if w.Secret {
			secrets := schema.Secrets("output", s.Name+"."+w.Name, w.Value)
			e.wrote.secrets = append(e.wrote.secrets, secrets...)
			e.Prepared.Redactor.Extend(secrets)
		}
	}
	for _, w := range wrote {
		o := project.Output{Step: s.Name, Name: w.Name, Secret: w.Secret}
		if !w.Secret {
			o.Value = e.recorded(w.Value)
		}
		e.wrote.list = append(e.wrote.list, o)
	}
	if len(wrote) > 0 {
		e.wrote.values.SetStr(s.Name, values)
	}
	e.stepCfg().value.SetStr(outputsKey, py.DeepCopy(e.wrote.values))
}

// recorded returns a value as JSON, without secrets.
func (e *Env) recorded(v any) json.RawMessage {
	text, err := py.ToJSON(project.Show{Redact: e.Prepared.Redactor.String}.Of(v), py.JSONOptions{Unicode: true})
	if err != nil || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

// waitsForOutputs returns the check result of a step that reads an output: it is compiled when it runs. nil is any other error.
func (c *stepCfg) waitsForOutputs(s recipe.Step, d project.Deployment, err error) *sls.Checked {
	if err == nil || !sls.IsUndefined(err) {
		return nil
	}
	reads := func(key string) bool { return strings.Contains(fault.Cause(err), "'"+key+"'") }
	why := ""
	switch {
	case c.later && reads(outputsKey):
		why = fmt.Sprintf("it reads cfg.%s, which earlier steps write", outputsKey)
	case c.staged && reads(exportsKey):
		why = fmt.Sprintf("it reads cfg.%s, which earlier stages write", exportsKey)
	default:
		return nil
	}
	at, _ := fault.PosOf(err)
	return &sls.Checked{SLS: s.SLS(d.Project), File: at.File, Deferred: &sls.Deferred{File: at.File, Line: at.Line, Why: why}}
}

// SetExports adds the outputs of earlier stages to cfg.exports: by role, node and name.
func (e *Env) SetExports(text json.RawMessage) error {
	v, err := py.FromJSON(string(text))
	if err != nil {
		return fault.New(fault.Refused, "", "outputs of earlier stages: %w", err)
	}
	e.stepCfg().value.SetStr(exportsKey, v)
	return nil
}
