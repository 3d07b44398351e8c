package procedures

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/procedures/recipe"
	"corpus-git/sls/modules"
	"corpus-git/sls/run"
)

// stepCfg is cfg as the steps of one deployment see it, one after the other: what a template changes in it, the templates of the steps that
// follow find changed. A deployment that runs has one; the checks before it, and a plan, work on copies of their own. The
// native procedures keep to the configuration that was prepared.
//
// Source: makina-states, mc_states/modules/mc_project_2.py: opts.ms_project is one dict for the whole run.
type stepCfg struct {
	value *py.Dict
	// note tells what later steps will not see; nil says nothing.
	note func(format string, args ...any)
	// unsure is a step that was not rendered and may change cfg.
	unsure string
}

// stepCfg is that of the deployment.
func (e *Env) stepCfg() *stepCfg {
	if e.cfg == nil {
		e.cfg = &stepCfg{value: e.Prepared.Cfg.Dict(), note: e.Note}
	}
	return e.cfg
}

// over is the pillar as a step gets it: above the values of PILLAR.sample, which cfg holds as sls_default_pillar.
//
// Source: makina-states, mc_states/modules/mc_project_2.py, _sls_exec.
func (c *stepCfg) over(pillar *py.Dict) *py.Dict {
	v, _ := c.value.GetStr("sls_default_pillar")
	below, ok := v.(*py.Dict)
	if !ok || below.Len() == 0 {
		return pillar
	}
	out := py.DeepCopy(below).(*py.Dict)
	modules.Merge(out, py.DeepCopy(pillar).(*py.Dict), false)
	return out
}

// changed takes cfg as the templates of a step left it.
func (c *stepCfg) changed(cfg *py.Dict) error {
	next, left, err := run.Carry(cfg)
	if err != nil {
		return err
	}
	if len(left) > 0 && c.note != nil {
		c.note("cfg: %s is no plain value: the steps that follow do not see it", strings.Join(left, ", "))
	}
	c.value = next
	return nil
}

// changes finds what may change cfg in a template: a do statement, or another template whose macros may have one.
var changes = regexp.MustCompile(`\{%[-+]?\s*(do|import|from|include)\b`)

// mayChange notes a step that was not rendered and whose templates may change cfg.
func (c *stepCfg) mayChange(files fs.FS, s recipe.Step) {
	text, err := fs.ReadFile(files, s.File)
	if c.unsure == "" && (err != nil || changes.Match(text)) {
		c.unsure = fmt.Sprintf("the step %s", s.Name)
	}
}
