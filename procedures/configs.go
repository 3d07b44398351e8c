package procedures

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/procedures/keyplace"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/project/configs"
	"corpus-git/project/schema"
	"corpus-git/sls"
)

// record records that a step is being applied, and returns a function that records its end. Both are written beside the steps, until the deployment ends (see
// Tools.Open). Failures to record are reported, but do not fail the step.
func (e *Env) record(r *recipe.Recipe, s recipe.Step) (done func(*sls.StepResult, error)) {
	store := e.Tools.Configs
	if store == nil || r == nil {
		return func(*sls.StepResult, error) {}
	}
	d := e.Deployment
	bound := configs.Deployment{Deployment: d.ID, Project: d.Project, Step: s.Name, Action: actionOf(d.Trigger), Inputs: e.recorded(e.Prepared.Cfg.Inputs())}
	if v, ok := e.Prepared.Cfg.Get("minion_id"); ok && v != nil {
		bound.Server = py.Str(v)
	}
	end := store.Begin(configOf(r, s, e.Prepared), bound, func(err error) { e.Note("%s is not in the list of configs: %v", s.Name, err) })
	return func(res *sls.StepResult, err error) {
		state, reason := configs.Complete, ""
		switch {
		case err != nil:
			state, reason = configs.Failed, fault.Cause(err)
		case !res.OK():
			f := res.Failed()
			state, reason = configs.Failed, "state "+f.ID
			if f.Command == nil && f.Comment != "" {
				reason += ": " + f.Comment
			}
		}
		reason, _, _ = strings.Cut(e.Prepared.Redactor.String(reason), "\n")
		end(state, reason, e.outputsOf(s))
	}
}

// outputsOf returns what a step wrote, as a JSON object without secrets; nil if it wrote nothing.
func (e *Env) outputsOf(s recipe.Step) json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, o := range e.wrote.list {
		if o.Step == s.Name && !o.Secret {
			out[o.Name] = o.Value
		}
	}
	if len(out) == 0 {
		return nil
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	return text
}

// actionOf returns what a deployment that began by a trigger does with its configs.
func actionOf(t project.Trigger) configs.Action {
	switch t {
	case project.TriggerPush, project.TriggerBundle, project.TriggerPromote:
		return configs.Deploy
	case project.TriggerRollback:
		return configs.Rollback
	}
	return configs.Action(strings.ToUpper(string(t)))
}

// configOf returns a step as an immutable config. A text that contains a secret of the pillar is replaced by its hash.
func configOf(r *recipe.Recipe, s recipe.Step, p *Prepared) configs.Config {
	shown := func(text []byte, err error) string {
		if errors.Is(err, os.ErrNotExist) {
			return ""
		}
		if sum := sha256.Sum256(text); err != nil || len(text) > configs.MaxSource || !utf8.Valid(text) || p.Redactor.String(string(text)) != string(text) {
			return "sha256:" + hex.EncodeToString(sum[:])
		}
		return string(text)
	}
	read := func(file string) string { return shown(readSome(r.Script(file))) }
	group := "salt"
	switch {
	case s.Script:
		group = "script"
	case s.Tool != "":
		group = s.Tool
	}
	c := configs.Config{Group: group, File: s.File, Inputs: read(schema.InputsFile), Outputs: read(schema.OutputsFile)}
	if s.Tool == recipe.ToolFiles {
		c.File, c.Source = s.Name, shown([]byte(p.files), nil)
	} else {
		c.Source = read(s.File)
	}
	if runner := p.Cfg.Runner(); runner != "" && group == "salt" {
		c.Options = `{"runner":"` + runner + `"}`
	}
	return c
}

// readSome reads a file, or of a very large one only enough to identify it.
func readSome(file string) ([]byte, error) {
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, keyplace.MaxSearched))
}
