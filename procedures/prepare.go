package procedures

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/redact"
	"corpus-git/layout"
	"corpus-git/procedures/filestep"
	"corpus-git/procedures/inherit"
	"corpus-git/procedures/keyplace"
	"corpus-git/procedures/machinecfg"
	"corpus-git/procedures/others"
	"corpus-git/procedures/passwords"
	"corpus-git/procedures/pillar"
	"corpus-git/procedures/recipe"
	"corpus-git/procedures/waiting"
	"corpus-git/project"
	"corpus-git/project/schema"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
)

// Sources are what a deployment is made from, before any of it is on disk.
type Sources struct {
	// Code and Pillar are the files of the two commits; nil if there is none.
	Code, Pillar fs.FS
	// Live are the files of the pillar that is live now, if it is another one; nil if not.
	Live fs.FS
	// Environment is the environment that the operator set for the project.
	Environment string
	RemoteLess  bool
	// Node is set if another server knows the nodes, and says which of them this one is; nil if this server knows them.
	Node *project.Node
	// Private is the folder for the private copy of the recipe, from which everything runs; "" makes no copy, so that nothing can run.
	Private string
	// Kept may have the copy already; nil has none.
	Kept *recipe.Kept
	// Commit is that of Code, "" if it is not a commit.
	Commit project.Commit
	// From is the project whose release Commit is: its recipe extends the same commits as there. "" means the project itself.
	From project.Name
	// Partial: part of the pillar may be missing, so an input without a value is not an error.
	Partial bool

	// Fetch is called with a line before each fetch of a recipe from elsewhere; nil fetches none, and the stored ones are used.
	Fetch func(line string)

	local string // the path of local.yaml
	alone bool   // without the other projects of a server
}

// Prepared is a deployment that was checked as far as possible before it runs.
type Prepared struct {
	Cfg *project.Cfg
	// Redactor hides the pillar's values in the deployment's output.
	Redactor *redact.Redactor
	// Steps are those that will run, in order; Checked are their compiled forms, nil for executables.
	Steps   []recipe.Step
	Checked []*sls.Checked
	// Recipe is the private copy of the recipe; nil if nothing of it can run.
	Recipe *recipe.Recipe
	// Notes are lines for the pusher: what could not be checked, what is run by salt-call.
	Notes []string
	// Unread lists keys that the pillar or PILLAR.sample sets, and nothing reads.
	Unread []recipe.Warning

	// Rollout holds the nodes to deploy to; nil deploys to this machine.
	Rollout *fleet.Plan

	// nodes are the nodes of the pillar, if this server rolls out to them; none if it deploys here.
	nodes []fleet.Member
	// staged: this machine is one of several nodes, and steps may read outputs of earlier stages.
	staged bool
	// exports are these outputs, as far as known; nil means none.
	exports any
	kv      func(cfg *py.Dict) // sets cfg.kv

	local          string // the path of local.yaml
	inherited      *inherit.Recipes
	pillar, grains *py.Dict
	recipe         fs.FS
	others         fileroot.Roots
	passwords      *passwords.File
	outputs        *schema.Outputs
	classes        *schema.Classes
	waits          waiting.Set
	files          string        // the SLS file of filestep
	coded          bool          // there is code, so there is a tree
	holds          bool          // against what the recipe declares
	refused        []error       // why a step was refused, by its index in Steps; Lint continues
	ignored        []sls.Warning // what Salt ignores in the files that were checked
	checking       *stepCfg
}

// Environment returns the name of the environment.
func (p *Prepared) Environment() string { return p.Cfg.Env() }

// Dev reports whether the environment is of the class dev: a failed tree stays in place.
func (p *Prepared) Dev() bool { return p.Cfg.EnvClass() == project.ClassDev }

// KeepsEdits reports whether files that were changed on the machine are kept: in environments of the class dev, unless overwriting is
// requested.
func (p *Prepared) KeepsEdits(d project.Deployment) bool {
	return p.Dev() && !d.Forced && !d.Overwrite
}

// Skips reports whether a procedure is skipped, and why.
func (p *Prepared) Skips(name string) (why string, skip bool) {
	if !p.Cfg.Skip(name) {
		return "", false
	}
	if only := p.Cfg.Only(); len(only) > 0 && !slices.Contains(only, project.ProcedureKey(name)) {
		return "only=" + strings.Join(only, ","), true
	}
	return "skip_" + project.ProcedureKey(name), true
}

// Prepare reads the configuration and compiles every step that will run. It changes nothing on the machine. Errors are the pusher's
// fault (fault.Failed or fault.Usage, with file and line) or ours. It adds the pillar's values to hide.
func Prepare(ctx context.Context, t *Tools, d project.Deployment, src Sources, hide *redact.Redactor) (*Prepared, error) {
	p, err := configure(ctx, t, d, src, holdsInputs(d.Trigger), hide)
	if err != nil {
		return nil, keyplace.Joined(err)
	}
	p.Notes = append(p.Notes, p.inherited.Notes()...)
	for _, w := range p.Unread {
		p.Notes = append(p.Notes, w.File+": "+w.Text)
	}
	switch d.Trigger {
	case project.TriggerCheck:
		return p, nil
	case project.TriggerRollback:
		return p, p.planNodes(ctx, t, d, src, nil)
	case project.TriggerTask:
		return p, p.task(ctx, t, d)
	case project.TriggerUndeploy:
		if len(p.nodes) > 0 && src.Code != nil { // each of them runs its own undeploy.sls
			p.Rollout = fleet.EveryNode(p.nodes)
			return p, nil
		}
		for _, s := range recipe.Undeploy(p.recipe) {
			p.Steps = append(p.Steps, s)
			if _, err := p.checkStep(ctx, t, d, s); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
	if err := p.planNodes(ctx, t, d, src, d.Nodes); err != nil {
		return nil, err
	}
	if err := p.check(ctx, t, d); err != nil {
		return p, err
	}
	if err := p.checkHubSteps(ctx, t, d); err != nil {
		return p, err
	}
	return p, p.noteIdle(t)
}

// noteIdle adds notes about files of the recipe that look like steps or hooks and are not.
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

// asNode adds to the settings, below those of the command line, what nodes see in the configuration as data.node. nil means no node.
func asNode(set []project.Setting, node *project.Node) ([]project.Setting, error) {
	if node == nil || node.Name == "" {
		return set, nil
	}
	own, err := project.ParseSettings([]string{"node.name=" + node.Name, "node.roles=[" + strings.Join(node.Roles, ", ") + "]"}, &project.Selection{})
	return slices.Concat(own, set), err
}

// planNodes reads which nodes to deploy to, and in which stages.
func (p *Prepared) planNodes(ctx context.Context, t *Tools, d project.Deployment, src Sources, only []string) error {
	if gone := fleet.Gone(src.Live, p.nodes); len(gone) > 0 && d.LiveCode != "" {
		p.Notes = append(p.Notes, fmt.Sprintf("no longer in nodes.yaml: %s, where %s stays live until  corpus-git undeploy %s --yes  is run there", strings.Join(gone, ", "), d.LiveCode.Short(), d.Project))
	}
	if len(p.nodes) == 0 && d.Job != "" {
		return fault.New(fault.Refused, fleet.NodesFile, "%s has no nodes for the job %s", d.Project, d.Job).WithHint("nodes.yaml in the pillar lists them")
	}
	if len(p.nodes) == 0 {
		return nil
	}
	if t.Fleet == nil {
		return fault.New(fault.Refused, fleet.NodesFile, "this server does not deploy to nodes")
	}
	stages, err := fleet.StagesOf(ctx, d.Project, d.Job, src.Code, t.Fleet.Job)
	if err != nil {
		return err
	}
	known, err := t.Fleet.Known(ctx)
	if err != nil {
		return err
	}
	plan, err := fleet.NewPlan(p.nodes, stages, known, only)
	if err == nil && src.Code != nil { // a pillar without code is deployed nowhere yet
		p.Rollout = plan
		p.Rollout.NoSubmodules = !p.Cfg.Submodules().Fetch
	}
	return err
}

// Store makes durable what the preparation has generated: secrets of templates, and the commits that the recipe extends. Secrets that are
// generated after it are durable at once. A plan stores nothing.
func (p *Prepared) Store(ctx context.Context, t *Tools, name project.Name) error {
	if err := p.passwords.Store(); err != nil {
		return fault.New(fault.Internal, "store generated passwords", "%w", err)
	}
	return p.inherited.Keep(ctx, t.recipes(false), name)
}

// PrepareRollback reads the configuration only: the steps were checked when the release went live.
func PrepareRollback(ctx context.Context, t *Tools, d project.Deployment, src Sources, hide *redact.Redactor) (*Prepared, error) {
	p, err := configure(ctx, t, d, src, false, hide)
	if err != nil {
		return nil, err
	}
	if len(p.nodes) > 0 {
		p.Rollout = &fleet.Plan{OnFailure: fleet.All, Left: fleet.Names(p.nodes)} // its steps run on the nodes; the plan is made on demand
	}
	return p, nil
}

// Compile checks every step of what PrepareRollback prepared, from sources with a private copy, as Prepare does. The live tree must have
// been restored, since templates may read it.
func (p *Prepared) Compile(ctx context.Context, t *Tools, d project.Deployment) error {
	if err := p.check(ctx, t, d); err != nil {
		return err
	}
	return p.Store(ctx, t, d.Project)
}

// Bare returns what can be prepared without any source: the defaults.
func Bare(ctx context.Context, t *Tools, d project.Deployment, environment string, hide *redact.Redactor) (*Prepared, error) {
	return configure(ctx, t, d, Sources{Environment: environment}, false, hide)
}

// nodesOf returns the nodes of a project: those of its pillar, or the one that it is assigned to. A node is told which one it is, and has none.
func nodesOf(ctx context.Context, t *Tools, name project.Name, src Sources) ([]fleet.Member, error) {
	if src.Node != nil {
		return nil, nil
	}
	members, ok, err := fleet.ReadNodes(src.Pillar)
	if err != nil || ok || t.Fleet == nil {
		return members, err
	}
	node, err := t.Fleet.NodeOf(ctx, name, src.Code != nil)
	if err != nil || node == "" {
		return nil, err
	}
	return []fleet.Member{{Name: node}}, nil
}

// configure builds cfg from the sources. With holds the values are checked against the inputs that the recipe declares; otherwise they were
// checked when they went live.
func configure(ctx context.Context, t *Tools, d project.Deployment, src Sources, holds bool, hide *redact.Redactor) (*Prepared, error) {
	members, err := nodesOf(ctx, t, d.Project, src)
	if err != nil {
		return nil, err
	}
	node := src.Node // checks on the server of the rollout use the first node
	if node == nil && len(members) > 0 {
		node = &project.Node{Name: members[0].Name, Roles: members[0].Roles}
	}
	if d.Set, err = asNode(d.Set, node); err != nil {
		return nil, err
	}
	p := &Prepared{Redactor: hide, nodes: members, staged: len(members) > 0 || src.Node != nil, holds: holds, coded: src.Code != nil, grains: t.Grains(), pillar: py.NewDict()}
	own, err := recipe.In(src.Code)
	if err != nil {
		return nil, err
	}
	if err := p.readRecipe(ctx, t, d.Project, src, own); err != nil {
		return nil, err
	}
	p.passwords = passwords.Open(t.FS, t.State.Passwords(d.Project.String()), hide, d.Trigger == project.TriggerPlan || d.Converge.Mode == project.ConvergeReport)
	data := &pillar.Reader{Root: t.Root, Host: t.Host, Name: d.Project, Grains: p.grains, Passwords: p.passwords, Node: node}
	if src.Node != nil && len(src.Node.Exports) > 0 {
		if p.exports, err = py.FromJSON(string(src.Node.Exports)); err != nil {
			return nil, fault.New(fault.Internal, "outputs of earlier stages", "%w", err)
		}
	}
	if p.kv, err = t.Keys.Setter(ctx, d.Project, members); err != nil {
		return nil, err
	}
	if p.classes, err = p.inherited.Classes(); err != nil && holds {
		return nil, err
	}
	declared, err := Inputs(p.recipe)
	if err != nil && holds { // otherwise it went live before the file was read
		return nil, err
	}
	in := project.CfgInputs{
		Inputs: declared, Hold: holds, Partial: src.Partial, Name: d.Project, Layout: t.Root.Project(d.Project.String()), Facts: t.facts(d.Project, p.grains), Deployment: &d,
		Classes: p.classes, Env: src.Environment, RemoteLess: src.RemoteLess, Environments: t.environments(), Retention: t.retention(), Generated: p.passwords.In,
	}
	if node != nil {
		in.Node = *node
	}
	if in.Image, err = machinecfg.Image(t.CfgDir, d.Project); err != nil {
		return nil, err
	}
	src.local = t.Root.Project(d.Project.String()).Local()
	p.local = src.local
	if in.Local, err = machinecfg.Local(src.local); err != nil {
		return nil, err
	}
	in.Sample = p.inherited.Sample(data, own)
	in.Pillar = func(ctx context.Context) (*py.Dict, error) {
		v, err := data.Pillar(ctx, src.Pillar)
		if err == nil {
			p.pillar = v
		}
		return v, err
	}
	if p.Cfg, err = project.BuildCfg(ctx, in); err == nil && holds {
		err = filestep.Tracked(p.Cfg, src.Code)
	}
	if err != nil {
		return nil, keyplace.All(err, p.treesOf(src))
	}
	texts := sync.OnceValue(func() []string { return recipe.Texts(src.Code) })
	hide.Extend(redact.NotIn(redact.Secrets(p.pillar), texts))
	// Values that cfg derived from the pillar's by {key} references.
	hide.Extend(redact.NotIn(redact.Secrets(p.Cfg.PillarValues()), texts))
	hide.Extend(p.Cfg.InputSecrets())
	if holds {
		p.Unread = p.unread(t, d.Project, src)
	}
	return p, nil
}

// readRecipe reads the recipe, with those that it extends, and copies it if src has a folder for that.
func (p *Prepared) readRecipe(ctx context.Context, t *Tools, name project.Name, src Sources, own fs.FS) (err error) {
	if p.recipe, p.inherited, err = t.recipes(src.alone).Read(ctx, inherit.Request{Name: name, Commit: src.Commit, From: src.From, Fetch: src.Fetch}, own); err != nil || src.Private == "" {
		return err
	}
	if p.Recipe, err = src.Kept.Copy(ctx, name, p.recipe, src.Private, t.Root.Project(name.String()).Salt()); err != nil {
		return err
	}
	from := others.Source{Root: t.Root, Live: t.Live, Tree: func(ctx context.Context, n project.Name, c project.Commit) (fs.FS, error) {
		return t.Repository(n, project.Code).Tree(ctx, c, nil)
	}}
	if p.others, err = from.Roots(ctx, name, src.Private+"-others"); err != nil || p.Recipe == nil {
		return err
	}
	if p.recipe, err = p.Recipe.Files(); err != nil { // what is checked is what runs
		return fault.New(fault.Internal, "read the copy of "+layout.SaltDir, "%w", err)
	}
	return nil
}
