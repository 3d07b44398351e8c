package procedures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/redact"
	"corpus-git/layout"
	"corpus-git/procedures/passwords"
	"corpus-git/procedures/pillar"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/sls/makina"
)

// Sources are what a deployment is made from, before any of it is on disk.
type Sources struct {
	// Code and Pillar are the files of the two commits; nil where there is none.
	Code, Pillar fs.FS
	// Environment is the operator's choice for the project.
	Environment string
	RemoteLess  bool
	// Node says that another server decides which nodes there are, and which of them this is; nil where this server does.
	Node *project.Node
	// Private is where the private copy of the recipe is made, of which everything runs; "" makes none, and nothing can run.
	Private string
}

// Prepared is a deployment of which everything was checked that can be checked before it runs.
type Prepared struct {
	Cfg *project.Cfg
	// Redactor hides the pillar's values in everything the deployment says.
	Redactor *redact.Redactor
	// Steps are those that will run, in order; Checked tells what was found of each, nil for executables.
	Steps   []recipe.Step
	Checked []*sls.Checked
	// Recipe is the private copy of the recipe; nil where nothing of it can run.
	Recipe *recipe.Recipe
	// Notes are lines for the pusher: what could not be checked, what goes to salt-call.
	Notes []string

	// Rollout is which nodes get the deployment; nil deploys on this machine.
	Rollout *fleet.Plan

	// nodes are those of the pillar that this server decides about; none where it deploys here.
	nodes []fleet.Member

	pillar, grains *py.Dict
	recipe         fs.FS
	others         fileroot.Roots
	passwords      *passwords.File
	refused        []error // why a step was refused, by its place in Steps; Lint goes on
	checking       *stepCfg
}

// Environment is the name of the environment.
func (p *Prepared) Environment() string { return p.Cfg.Env() }

// Dev reports whether the environment is of the class dev: a failed tree stays in place.
func (p *Prepared) Dev() bool { return p.Cfg.EnvClass() == project.ClassDev }

// KeepsEdits reports whether files that somebody changed on the machine stay: in environments of the class dev, unless that is forced.
func (p *Prepared) KeepsEdits(d project.Deployment) bool {
	return p.Dev() && !d.Forced && !d.Overwrite
}

// Skips reports whether a procedure is left out, and by what.
func (p *Prepared) Skips(name string) (why string, skip bool) {
	if !p.Cfg.Skip(name) {
		return "", false
	}
	if only := p.Cfg.Only(); len(only) > 0 && !slices.Contains(only, project.ProcedureKey(name)) {
		return "only=" + strings.Join(only, ","), true
	}
	return "skip_" + project.ProcedureKey(name), true
}

// Prepare reads the configuration and compiles every step that will run. It changes nothing on the machine. Errors
// are the pusher's (fault.Failed or fault.Usage, with file and line) or ours. hide is extended by the pillar's values.
func Prepare(ctx context.Context, t *Tools, d project.Deployment, src Sources, hide *redact.Redactor) (*Prepared, error) {
	p, err := configure(ctx, t, d, src, hide)
	if err != nil {
		return nil, err
	}
	switch d.Trigger {
	case project.TriggerCheck:
		return p, nil
	case project.TriggerRollback:
		return p, p.planNodes(ctx, t, src)
	case project.TriggerTask:
		return p, p.task(ctx, t, d)
	case project.TriggerUndeploy:
		for _, s := range recipe.Undeploy(p.recipe) {
			p.Steps = append(p.Steps, s)
			if _, err := p.checkStep(ctx, t, d, s); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
	if err := p.planNodes(ctx, t, src); err != nil {
		return nil, err
	}
	if err := p.check(ctx, t, d); err != nil {
		return p, err
	}
	return p, p.noteIdle(t)
}

// noteIdle names the files of the recipe that look as if they would run, and do not.
func (p *Prepared) noteIdle(t *Tools) error {
	if p.recipe == nil {
		return nil
	}
	groups, err := t.Groups()
	if err != nil {
		return err
	}
	idle, err := recipe.Warnings(p.recipe, groups...)
	if err != nil {
		return fault.New(fault.Internal, "read "+layout.SaltDir, "%w", err)
	}
	for _, w := range idle {
		p.Notes = append(p.Notes, w.File+": "+w.Text)
	}
	return nil
}

// asNode puts into the settings, below those of the command line, what nodes find in the configuration as data.node. Where steps are only checked, on the
// server that decides about the nodes, that is the first one's.
func asNode(set []project.Setting, src Sources, members []fleet.Member) ([]project.Setting, error) {
	var node project.Node
	switch {
	case src.Node != nil:
		node = *src.Node
	case len(members) > 0:
		node = project.Node{Name: members[0].Name, Roles: members[0].Roles}
	}
	if node.Name == "" {
		return set, nil
	}
	own, err := project.ParseSettings([]string{"node.name=" + node.Name, "node.roles=[" + strings.Join(node.Roles, ", ") + "]"}, &project.Selection{})
	return slices.Concat(own, set), err
}

// planNodes reads which nodes the deployment goes to, and in which stages.
func (p *Prepared) planNodes(ctx context.Context, t *Tools, src Sources) error {
	if len(p.nodes) == 0 {
		return nil
	}
	if t.Fleet == nil {
		return fault.New(fault.Refused, fleet.NodesFile, "this server deploys on no nodes")
	}
	stages, err := fleet.ReadStages(src.Code)
	if err != nil {
		return err
	}
	known, err := t.Fleet.Known(ctx)
	if err != nil {
		return err
	}
	plan, err := fleet.NewPlan(p.nodes, stages, known)
	if err == nil && src.Code != nil { // a pillar that comes before the code goes nowhere yet
		p.Rollout = plan
	}
	return err
}

// StorePasswords makes durable what the templates generated while the deployment was prepared. Secrets that they generate after it are durable
// at once. A plan stores nothing.
func (p *Prepared) StorePasswords() error {
	if err := p.passwords.Store(); err != nil {
		return fault.New(fault.Internal, "store generated passwords", "%w", err)
	}
	return nil
}

// PrepareRollback reads the configuration only: what comes back was checked when it went live.
func PrepareRollback(ctx context.Context, t *Tools, d project.Deployment, src Sources, hide *redact.Redactor) (*Prepared, error) {
	p, err := configure(ctx, t, d, src, hide)
	if err != nil {
		return nil, err
	}
	if len(p.nodes) > 0 {
		p.Rollout = &fleet.Plan{OnFailure: fleet.Rollback} // its steps run there; whoever needs the plan makes it
	}
	return p, nil
}

// Compile checks every step of what PrepareRollback prepared, from sources with a private copy, as Prepare does. The live tree must be
// back by then: templates may read it.
func (p *Prepared) Compile(ctx context.Context, t *Tools, d project.Deployment) error {
	if err := p.check(ctx, t, d); err != nil {
		return err
	}
	return p.StorePasswords()
}

// Bare is what can be prepared without any source: the defaults.
func Bare(ctx context.Context, t *Tools, d project.Deployment, environment string, hide *redact.Redactor) (*Prepared, error) {
	return configure(ctx, t, d, Sources{Environment: environment}, hide)
}

// configure builds cfg from the sources.
func configure(ctx context.Context, t *Tools, d project.Deployment, src Sources, hide *redact.Redactor) (*Prepared, error) {
	var members []fleet.Member
	if src.Node == nil { // a node is told which one it is
		var err error
		if members, _, err = fleet.ReadNodes(src.Pillar); err != nil {
			return nil, err
		}
	}
	var err error
	if d.Set, err = asNode(d.Set, src, members); err != nil {
		return nil, err
	}
	files, err := recipe.In(src.Code)
	if err != nil {
		return nil, err
	}
	p := &Prepared{Redactor: hide, nodes: members, grains: t.Grains(), pillar: py.NewDict()}
	if src.Private != "" {
		if p.Recipe, err = recipe.Copy(ctx, files, src.Private, t.Root.Project(d.Project.String()).Salt()); err != nil {
			return nil, err
		}
		if p.others, err = t.others(ctx, d.Project, src.Private+"-others"); err != nil {
			return nil, err
		}
	}
	if p.Recipe != nil {
		if files, err = p.Recipe.Files(); err != nil { // what is checked is what runs
			return nil, fault.New(fault.Internal, "read the copy of "+layout.SaltDir, "%w", err)
		}
	}
	p.recipe = files
	p.passwords = passwords.Open(t.FS, t.State.Passwords(d.Project.String()), hide, d.Trigger == project.TriggerPlan)
	data := &pillar.Reader{Root: t.Root, Host: t.Host, Name: d.Project, Grains: p.grains, Passwords: p.passwords}
	in := project.CfgInputs{
		Name: d.Project, Layout: t.Root.Project(d.Project.String()), Facts: t.facts(d.Project, p.grains), Deployment: &d,
		Env: src.Environment, RemoteLess: src.RemoteLess, Environments: t.environments(), Retention: t.retention(), Generated: p.passwords.In,
	}
	if files != nil && recipe.Has(files, layout.PillarSample) {
		in.Sample = func(ctx context.Context) (*py.Dict, error) {
			return data.Sample(ctx, files, layout.PillarSample, path.Join(layout.SaltDir, layout.PillarSample))
		}
	}
	in.Pillar = func(ctx context.Context) (*py.Dict, error) {
		v, err := data.Pillar(ctx, src.Pillar)
		if err == nil {
			p.pillar = v
		}
		return v, err
	}
	if p.Cfg, err = project.BuildCfg(ctx, in); err != nil {
		return nil, located(err, src)
	}
	var texts []string
	if src.Code != nil {
		texts = recipe.Texts(src.Code)
	}
	hide.Extend(redact.Secrets(p.pillar, texts))
	// Values that cfg made of the pillar's, by {key} references.
	hide.Extend(redact.Secrets(p.Cfg.PillarValues(), texts))
	return p, nil
}

// located adds the line to an error in the rules of fixperms: the first in its file where the keys that lead to what is
// wrong stand one after the other. Keys that a template makes have no line.
func located(err error, src Sources) error {
	var f *fault.Error
	var pe *project.KeyError
	if !errors.As(err, &f) || !errors.As(err, &pe) {
		return err
	}
	tree, name := src.Code, f.At.File
	if rest, ok := strings.CutPrefix(name, layout.ArchivedPillar+"/"); ok {
		tree, name = src.Pillar, rest
	}
	if tree == nil || name == "" {
		return err
	}
	text, rerr := fs.ReadFile(tree, name)
	if rerr != nil {
		return err
	}
	keys := pe.Keys
	for i, line := range strings.Split(string(text), "\n") {
		for len(keys) > 0 && namesKey(line, keys[0]) {
			if keys = keys[1:]; len(keys) == 0 {
				at := f.At
				at.Line = i + 1
				return f.WithPos(at)
			}
		}
	}
	return err
}

// namesKey reports whether a line of YAML has a key, at its start or in a flow mapping.
func namesKey(line, key string) bool {
	for rest := line; ; {
		i := strings.Index(rest, key)
		if i < 0 {
			return false
		}
		before, after := rest[:i], strings.TrimLeft(rest[i+len(key):], `"' `)
		if strings.HasPrefix(after, ":") && (before == "" || strings.ContainsAny(before[len(before)-1:], " {,\"'\t.")) {
			return true
		}
		rest = rest[i+len(key):]
	}
}

// check compiles all steps that will run, and the project's own procedures. The first error ends it.
func (p *Prepared) check(ctx context.Context, t *Tools, d project.Deployment) error {
	return p.checkAll(ctx, t, d, func(err error) error { return err })
}

// checkAll is check which shows failed what is wrong with a file, and goes on where that returns nil.
func (p *Prepared) checkAll(ctx context.Context, t *Tools, d project.Deployment, failed func(error) error) error {
	if p.recipe == nil {
		return nil
	}
	groups, err := t.Groups()
	if err != nil {
		return err
	}
	all, err := recipe.Steps(p.recipe, groups...)
	if err != nil {
		return failed(err)
	}
	if p.Steps, err = recipe.Choose(all, p.Cfg.OnlySteps()); err != nil {
		return failed(err)
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
				p.Steps = []recipe.Step{s.Step}
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
	for _, s := range recipe.Undeploy(p.recipe) {
		if _, err := p.checkStep(ctx, t, d, s); err != nil {
			if err = failed(err); err != nil {
				return err
			}
		}
	}
	p.Checked, p.refused = make([]*sls.Checked, len(p.Steps)), make([]error, len(p.Steps))
	for i, s := range p.Steps {
		if s.Script {
			continue
		}
		if p.Checked[i], err = p.checkStep(ctx, t, d, s); err != nil {
			p.refused[i] = err
			if err = failed(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOwn compiles a project's own file for a procedure; one that is told how the deployment ended as if it had.
func (p *Prepared) checkOwn(ctx context.Context, t *Tools, d project.Deployment, s recipe.OwnStep) error {
	if s.Procedure == NameRollback || s.Procedure == NameNotify {
		of := p.checking
		defer func() { p.checking = of }()
		p.checking = &stepCfg{value: p.Cfg.Dict()}
		setVerdict(p.checking.value, d, s.Procedure == NameRollback, s.Procedure != NameRollback, "")
	}
	_, err := p.checkStep(ctx, t, d, s.Step)
	return err
}

func (p *Prepared) checkStep(ctx context.Context, t *Tools, d project.Deployment, s recipe.Step) (*sls.Checked, error) {
	if p.checking == nil {
		p.checking = &stepCfg{value: p.Cfg.Dict()}
	}
	c, err := t.runner(s).Check(ctx, p.inputFor(t, d, p.Recipe, s, sls.Static, p.checking))
	if before := p.checking.unsure; before != "" && sls.IsUndefined(err) {
		at, _ := fault.PosOf(err)
		c, err = &sls.Checked{SLS: s.SLS(d.Project), File: at.File, Deferred: &sls.Deferred{File: at.File, Line: at.Line,
			Why: fmt.Sprintf("%s, and %s before it may still set that", Cause(err), before)}}, nil
	}
	if err != nil {
		var f *fault.Error
		if !errors.As(err, &f) {
			err = fault.New(fault.Internal, "check "+s.Name, "%w", err)
		}
		if fault.HintOf(err) == "" && fault.KindOf(err) == fault.Failed {
			err = f.WithHint("nothing has run: fix %s/%s, commit, push again", layout.SaltDir, s.File)
		}
		return nil, err
	}
	if c.Deferred != nil {
		p.checking.mayChange(p.recipe, s)
		p.Notes = append(p.Notes, fmt.Sprintf("%s is compiled when its turn comes: %s (%s:%d)", s.Name, c.Deferred.Why, c.Deferred.File, c.Deferred.Line))
	}
	if len(c.Needs) > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%s goes to %s: it needs %s (%s:%d)", s.Name, c.Runner, c.Needs[0].What, c.Needs[0].File, c.Needs[0].Line))
	}
	if c.Runner == saltRunner {
		if line := recipe.UndoLine(p.recipe, s.File); line > 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("%s goes to %s, which ignores undo: a rollback does not undo that command (%s/%s:%d)", s.Name, c.Runner, layout.SaltDir, s.File, line))
		}
	}
	return c, nil
}

// saltRunner is the name of the runner that hands steps to Salt.
const saltRunner = "salt-call"

// task finds and checks one task.
func (p *Prepared) task(ctx context.Context, t *Tools, d project.Deployment) error {
	tasks, err := recipe.Tasks(p.recipe)
	if err != nil {
		return err
	}
	want := strings.TrimSuffix(d.Task, ".sls")
	i := slices.IndexFunc(tasks, func(s recipe.Step) bool { return s.Name == want || s.Name == recipe.TaskPrefix+want })
	if i < 0 {
		return fault.New(fault.Usage, "task", "%s has no task %q", d.Project, d.Task).WithHint("its tasks are: %s", recipe.NamesOf(tasks))
	}
	p.Steps = tasks[i : i+1]
	c, err := p.checkStep(ctx, t, d, p.Steps[0])
	p.Checked = []*sls.Checked{c}
	return err
}

// input is what a step of a recipe is rendered with while the deployment runs.
func (p *Prepared) input(e *Env, r *recipe.Recipe, s recipe.Step, mode sls.Mode) *sls.Input {
	in := p.inputFor(e.Tools, e.Deployment, r, s, mode, e.stepCfg())
	in.Undo = e.Undo
	return in
}

// host is the machine with the environment of the deployment's commands: the clean one, the project's key env, the CORPUS_* variables.
func (p *Prepared) host(t *Tools, d project.Deployment) *host.Host {
	out := *t.Host
	told := describe(d, t.Root.Project(d.Project.String()), p.Environment(), NameInstall)
	out.Environ = slices.Concat(t.Host.Environ, p.Cfg.Environ(), told.Env())
	return &out
}

func (p *Prepared) inputFor(t *Tools, d project.Deployment, r *recipe.Recipe, s recipe.Step, mode sls.Mode, cfg *stepCfg) *sls.Input {
	in := &sls.Input{
		SLS: s.SLS(d.Project), Roots: t.roots(d.Project, r, p.others), Cfg: cfg.value, Changed: cfg.changed, Pillar: cfg.over(p.pillar), Grains: p.grains,
		Opts: py.NewDict("id", t.facts(d.Project, p.grains).MinionID), Host: p.host(t, d), Mode: mode, Passwords: p.passwords,
		Plan: d.Trigger == project.TriggerPlan, Locations: py.NewDict("resetperms", t.State.ResetPerms()), Projects: t.Root.Projects(),
	}
	if (s.Script || s.Tool != "") && r != nil {
		in.Script, in.ScriptFile = r.Script(s.File), path.Join(layout.SaltDir, s.File)
	}
	return in
}

// roots are the file roots of salt://: the private copy of the project's recipe in its place, where the permanent link would lead into
// the working copy, those of the other projects likewise, then what is on disk, and last what stands for makina-states.
func (t *Tools) roots(name project.Name, r *recipe.Recipe, others fileroot.Roots) fileroot.Roots {
	mount := fileroot.Root{FS: nothing{}}
	if r != nil {
		mount = r.Root()
	}
	mount.Mount = layout.ProjectsNamespace + "/" + name.String()
	mount.Label = layout.SaltDir
	out := append(fileroot.Roots{mount}, others...)
	for _, dir := range append([]string{t.Root.Salt()}, t.FileRoots...) {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
			out = append(out, fileroot.OnDisk(dir))
		}
	}
	return append(out, makina.Root())
}

// nothing is a file system without files.
type nothing struct{}

// Open implements fs.FS.
func (nothing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
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
