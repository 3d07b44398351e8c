package procedures

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"corpus-git/hooks"
	"corpus-git/internal/py"
	"corpus-git/layout"
	"corpus-git/procedures/filestep"
	"corpus-git/procedures/others"
	"corpus-git/procedures/outfile"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/sls/makina"
	"corpus-git/sls/modules"
	"corpus-git/sls/run"
)

// stepCfg is cfg for the steps of one deployment, in sequence: what a template changes in it, the templates of later steps find changed. A running
// deployment has one; the checks before it, and a plan, work on copies. The native procedures use the configuration that was prepared.
//
// Source: makina-states, mc_states/modules/mc_project_2.py: opts.ms_project is one dict for the whole run.
type stepCfg struct {
	value *py.Dict
	// note reports changes that later steps will not see; nil reports nothing.
	note func(format string, args ...any)
	// unsure is a step that was not rendered and may change cfg.
	unsure string
	// later: earlier steps may write outputs. staged: this machine is a node, and earlier stages may.
	later, staged bool
}

// stepCfg is that of the deployment.
func (e *Env) stepCfg() *stepCfg {
	if e.cfg == nil {
		e.cfg = &stepCfg{value: e.Prepared.dict(), note: e.Note}
	}
	return e.cfg
}

// dict is cfg as the first step gets it.
func (p *Prepared) dict() *py.Dict {
	v := p.Cfg.Dict()
	if p.exports != nil {
		v.SetStr(exportsKey, py.DeepCopy(p.exports))
	}
	if p.kv != nil {
		p.kv(v)
	}
	p.waits.Into(v)
	return v
}

// over returns the pillar for a step: above the values of PILLAR.sample, which cfg has as sls_default_pillar.
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

// changed takes over cfg from the templates of a step.
func (c *stepCfg) changed(cfg *py.Dict) error {
	next, left, err := run.Carry(cfg)
	if err != nil {
		return err
	}
	if len(left) > 0 && c.note != nil {
		c.note("cfg: %s is not a plain value: later steps will not see it", strings.Join(left, ", "))
	}
	c.value = next
	return nil
}

// changes finds what may change cfg in a template: a do statement, or another template whose macros may have one.
var changes = regexp.MustCompile(`\{%[-+]?\s*(do|import|from|include)\b`)

// mayChange records a step that was not rendered and whose templates may change cfg.
func (c *stepCfg) mayChange(files fs.FS, s recipe.Step) {
	text, err := fs.ReadFile(files, s.File)
	if c.unsure == "" && (err != nil || changes.Match(text)) {
		c.unsure = fmt.Sprintf("the step %s", s.Name)
	}
}

// input returns what a step of a recipe is rendered with while the deployment runs.
func (p *Prepared) input(e *Env, r *recipe.Recipe, s recipe.Step, mode sls.Mode) *sls.Input {
	in := p.inputFor(e.Tools, e.Deployment, r, s, mode, e.stepCfg())
	in.Undo, in.Yield = e.Undo, e.Yield
	in.Wait = func(ctx context.Context, id string, args *py.Dict, so func() sls.Done) (string, error) {
		return e.waits().For(ctx, s.Name, id, args, so)
	}
	return in
}

// host returns the machine with the environment of the deployment's commands: the clean one, the project's key env, the CORPUS_* variables.
func (p *Prepared) host(t *Tools, d project.Deployment) *host.Host {
	out := *t.Host
	told := hooks.Describe(d, t.Root.Project(d.Project.String()), p.Environment(), NameInstall)
	outputs := outfile.Path(t.State, d.ID)
	own := []string{outfile.Variable + "=" + outputs, outfile.ReportsVariable + "=" + outfile.Reports(outputs)}
	out.Environ = slices.Concat(t.Host.Environ, p.Cfg.Environ(), told.Env(), own, p.waits.Environ())
	return &out
}

func (p *Prepared) inputFor(t *Tools, d project.Deployment, r *recipe.Recipe, s recipe.Step, mode sls.Mode, cfg *stepCfg) *sls.Input {
	in := &sls.Input{
		SLS: s.SLS(d.Project), Roots: t.roots(d.Project, r, p.others), Cfg: cfg.value, Changed: cfg.changed, Pillar: cfg.over(p.pillar), Grains: p.grains,
		Opts: py.NewDict("id", t.facts(d.Project, p.grains).MinionID), Host: p.host(t, d), Mode: mode, Passwords: p.passwords, KV: t.Keys.Of(d.Project, p.nodes...),
		Plan: d.Trigger == project.TriggerPlan, Locations: py.NewDict("resetperms", t.State.ResetPerms()), Projects: t.Root.Projects(),
	}
	if s.Tool == recipe.ToolFiles {
		in.SLS, in.Roots = filestep.SLS, append(fileroot.Roots{filestep.Root(p.files)}, in.Roots...)
		return in
	}
	if (s.Script || s.Tool != "") && r != nil {
		in.Script, in.ScriptFile = r.Script(s.File), path.Join(layout.SaltDir, s.File)
	}
	return in
}

// roots returns the file roots of salt://: the private copy of the project's recipe in its place, where the permanent link would lead into the
// working copy, those of the other projects likewise, then what is on disk, and last the files that replace makina-states.
func (t *Tools) roots(name project.Name, r *recipe.Recipe, foreign fileroot.Roots) fileroot.Roots {
	mount := fileroot.Root{FS: others.Nothing{}}
	if r != nil {
		mount = r.Root()
	}
	mount.Mount = layout.ProjectsNamespace + "/" + name.String()
	mount.Label = layout.SaltDir
	out := append(fileroot.Roots{mount}, foreign...)
	for _, dir := range append([]string{t.Root.Salt()}, t.FileRoots...) {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
			out = append(out, fileroot.OnDisk(dir))
		}
	}
	return append(out, makina.Root())
}

func (t *Tools) facts(name project.Name, grains *py.Dict) project.Facts {
	str := func(k string) string {
		v, _ := grains.GetStr(k)
		s, _ := v.(string)
		return s
	}
	f := project.Facts{FQDN: str("fqdn"), MinionID: str("id"), OS: str("os"), OSFamily: str("os_family")}
	if t.Remotes != nil {
		f.PushSaltURL, f.PushPillarURL = t.Remotes(name)
	}
	return f
}
