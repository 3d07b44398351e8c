package project

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/redact"
	"corpus-git/layout"
	"corpus-git/project/files"
	"corpus-git/project/permission"
	"corpus-git/project/schema"
)

// Layer is where a value of the configuration came from. Later ones win.
type Layer string

// The layers, from the weakest to the strongest.
const (
	LayerDefault   Layer = "default"
	LayerInputs    Layer = "inputs.yaml"
	LayerSample    Layer = "PILLAR.sample"
	LayerSampleEnv Layer = "PILLAR.sample env_defaults"
	LayerSampleOS  Layer = "PILLAR.sample os_defaults"
	LayerPillarEnv Layer = "pillar env_defaults"
	LayerPillarOS  Layer = "pillar os_defaults"
	LayerPillar    Layer = "pillar"
	// LayerLocal is the file of this machine beside the project's trees. Files of cfg_dir are layers named by their paths.
	LayerLocal   Layer = layout.LocalFile
	LayerCommand Layer = "command line"
	// LayerFacts holds what the deployment itself sets: paths, identifiers. Nothing overrides them.
	LayerFacts Layer = "deployment"
)

// FromPillar reports whether values of the layer are secret: those of the pillar, and of local.yaml, which replaces a part of it.
func (l Layer) FromPillar() bool {
	return l == LayerPillar || l == LayerPillarEnv || l == LayerPillarOS || l == LayerLocal
}

// ofImage reports whether the layer is a file of cfg_dir.
func (l Layer) ofImage() bool { return strings.HasPrefix(string(l), "/") }

// MachineFile is what a file of the machine sets for a project: a section in the format of the pillar.
type MachineFile struct {
	// File is its path.
	File   string
	Values *py.Dict
}

// DefaultEnv is the environment of a project that names none: the one that rolls back.
const DefaultEnv = "prod"

// DefaultKeepArchives is how many archives are kept by default.
const DefaultKeepArchives = 3

// APIVersion is the version of the corpus conventions that cfg describes, as SLS files see it.
const APIVersion = "2"

// Procedures returns the names of the procedures, as people write them, in the order of a deployment.
func Procedures() []string {
	return []string{"archive", "sync", "release-sync", "fixperms", "install", "checks", "rollback", "notify"}
}

// procedureKeys returns what only and skip_<procedure> accept, in the form of cfg keys. deploy and rotate_archives come from the original: they are accepted,
// and mean the whole deployment and a part of archive.
func procedureKeys() []string {
	var out []string
	for _, name := range Procedures() {
		out = append(out, ProcedureKey(name))
	}
	return append(out, "deploy", "rotate_archives")
}

// IsProcedure reports whether a name is accepted by only and skip; release_sync is the same as release-sync.
func IsProcedure(name string) bool { return slices.Contains(procedureKeys(), ProcedureKey(name)) }

// ProcedureKey returns the form of a procedure's name in cfg keys: release_sync for release-sync.
func ProcedureKey(name string) string {
	return strings.ReplaceAll(strings.TrimSpace(strings.ToLower(name)), "-", "_")
}

// Facts are the facts of the machine and the server.
type Facts struct {
	FQDN     string // grain fqdn
	MinionID string // grain id
	OS       string // grain os, such as Debian
	OSFamily string // grain os_family
	// PushSaltURL and PushPillarURL are the remotes to push to.
	PushSaltURL, PushPillarURL string
}

// CfgInputs is everything that a project's configuration is built from.
type CfgInputs struct {
	Name   Name
	Layout layout.Project
	Facts  Facts
	// Deployment is the one that runs; nil to show the configuration outside of a deployment.
	Deployment *Deployment
	// Env is the environment that the operator chose for the project; "" leaves it to the pillar and the sample.
	Env string
	// RemoteLess is the operator's choice; false leaves it to the configuration.
	RemoteLess bool
	// Environments are those of the server.
	Environments Environments
	// Retention is that of the server; the zero value is DefaultRetention.
	Retention Retention
	// Sample and Pillar return the rendered PILLAR.sample and pillar; nil if there is no such file. Their errors are passed on.
	Sample, Pillar func(ctx context.Context) (*py.Dict, error)
	// Image holds the files of the machine's image, which are weaker than the sample, the strongest last; Local is local.yaml, which is stronger than the
	// pillar, nil for none.
	Image []MachineFile
	Local *MachineFile
	// Inputs is what the recipe declares; nil declares nothing. Hold refuses values that are undeclared, of another type, outside of their constraints,
	// and missing ones; with Partial missing ones are empty.
	Inputs        *schema.Inputs
	Hold, Partial bool
	// Classes are the classes that the recipe declares; nil declares none. Node is the node that this is for; the zero value means none.
	Classes *schema.Classes
	Node    Node
	// Generated reports whether a text of the sample or the pillar holds a generated secret, which makes it as secret as the pillar; nil means never. It is
	// called after Sample and Pillar.
	Generated func(text string) bool
}

// Cfg is a project's configuration: what SLS files see as opts.ms_project and cfg. It is read-only, and safe to share; Dict returns a copy to each caller.
type Cfg struct {
	name  Name
	root  *tree
	show  any // the pillar's redact_show
	value *py.Dict

	retention Retention
	onRollback
	convergence convergeKeys
	watches     Watches
	services    map[string]string
	perms       []permission.Rule
	fileList    []files.File
	checkList   []Check
	unitList    []Unit
	logList     []LogFiles
	class       string
	classes     []string
	hidden      []redact.Secret
	known       []string // the keys that corpus-git reads or sets; nil if the recipe declares its inputs
	empty       []string
	inputs      *py.Dict
}

// BuildCfg merges the layers, resolves {key} references and validates. Errors are fault.Error of kind Failed that name
// the key and the layer, and never the value if it may be secret.
//
// Source: the original's mc_project_2.get_configuration, for which keys there are and which layer wins.
func BuildCfg(ctx context.Context, in CfgInputs) (*Cfg, error) {
	if in.Retention == (Retention{}) {
		in.Retention = DefaultRetention()
	}
	load := func(f func(context.Context) (*py.Dict, error)) (*py.Dict, error) {
		if f == nil {
			return py.NewDict(), nil
		}
		d, err := f(ctx)
		if d == nil {
			d = py.NewDict()
		}
		return d, err
	}
	sampleDoc, err := load(in.Sample)
	if err != nil {
		return nil, err
	}
	pillarDoc, err := load(in.Pillar)
	if err != nil {
		return nil, err
	}
	sample, err := SampleSection(sampleDoc)
	if err != nil {
		return nil, err
	}
	pillar, err := pillarSection(pillarDoc, in.Name)
	if err != nil {
		return nil, err
	}
	env, err := environment(in, sample, pillar)
	if err != nil {
		return nil, err
	}

	on, err := classes(in, env, sample, pillar)
	if err != nil {
		return nil, err
	}
	c := &Cfg{name: in.Name, root: newTree(), class: env.class, classes: classNames(on)}
	m := merger{root: c.root}
	if err := m.layers(in, env, on, sampleDoc, sample, pillar); err != nil {
		return nil, err
	}
	if err := c.validate(in); err != nil {
		return nil, err
	}
	m.merge(facts(in), LayerFacts)
	m.merge(py.NewDict("env_class", env.class), LayerFacts)
	if in.Classes != nil {
		m.merge(py.NewDict(classesKey, strList(c.classes)), LayerFacts)
	}
	r := newResolver(c.root, in.Generated)
	r.verbatim()
	if err := r.all(); err != nil {
		return nil, err
	}
	c.hideInputs(in)
	if err := c.holdInputs(in); err != nil {
		return nil, err
	}
	if err := c.read(in); err != nil {
		return nil, err
	}
	if in.Inputs == nil {
		c.known = known(in)
	}
	c.show = pillarShow(pillarDoc, pillar)
	c.value = c.root.dict()
	return c, nil
}

// layers merges the values of the sources, the weakest first. sampleDoc is PILLAR.sample as a whole, sample and pillar are the project's parts.
func (m *merger) layers(in CfgInputs, env chosen, on []*schema.Class, sampleDoc, sample, pillar *py.Dict) error {
	m.merge(defaults(in), LayerDefault)
	m.merge(py.NewDict("data", in.Inputs.Defaults(in.Partial)), LayerInputs)
	for _, f := range in.Image {
		m.merge(without(f.Values, "env_defaults", "os_defaults"), Layer(f.File))
		if err := m.defaultsOf(in, env, f.Values, Layer(f.File), Layer(f.File)); err != nil {
			return err
		}
	}
	m.merge(without(sample, "env_defaults", "os_defaults"), LayerSample)
	m.merge(py.NewDict("sls_default_pillar", sampleDoc), LayerSample)
	if err := m.defaultsOf(in, env, sample, LayerSampleEnv, LayerSampleOS); err != nil {
		return err
	}
	for _, c := range on {
		if c.Data != nil {
			m.merge(py.NewDict("data", c.Data), classLayer(c.Name))
		}
	}
	if err := m.defaultsOf(in, env, pillar, LayerPillarEnv, LayerPillarOS); err != nil {
		return err
	}
	m.merge(without(pillar, "env_defaults", "os_defaults", "redact_show"), LayerPillar)
	if in.Local != nil {
		m.merge(in.Local.Values, LayerLocal)
	}
	m.merge(py.NewDict("default_env", env.name), env.layer)
	typed, err := commandLine(in, m.root)
	if err != nil {
		return err
	}
	m.merge(typed, LayerCommand)
	return m.err
}

// read reads the keys for accounts, permissions, checks, units and logs from the resolved layers.
func (c *Cfg) read(in CfgInputs) error {
	for _, part := range []func() error{c.accounts, c.validateEnv, c.permissions, c.checks, c.units, func() error { return c.logs(in.Layout.Live()) }, func() error { return c.files(in.Layout.Live()) }} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// defaultsOf merges env_defaults and os_defaults of a section over it.
func (m *merger) defaultsOf(in CfgInputs, env chosen, section *py.Dict, ofEnv, ofOS Layer) error {
	for _, name := range unique(env.name, env.class) {
		d, err := subDict(section, "env_defaults", name, ofEnv)
		if err != nil {
			return err
		}
		if d.Len() > 0 {
			m.merge(py.NewDict("data", d), ofEnv)
		}
	}
	for _, os := range unique(in.Facts.OS, in.Facts.OSFamily) {
		d, err := subDict(section, "os_defaults", os, ofOS)
		if err != nil {
			return err
		}
		m.merge(d, ofOS)
	}
	return nil
}

// IsSampleSection reports whether a key of a sample holds configuration: makina-projects.*; the old prefix makina-states. counts too. The project name in the
// key is ignored: samples are copied from project to project.
func IsSampleSection(key any) bool {
	s, ok := key.(string)
	return ok && (strings.HasPrefix(s, "makina-projects.") || strings.HasPrefix(s, "makina-states.") && strings.Count(s, ".") < 2)
}

// SampleSection merges the sections of a sample, in their order.
func SampleSection(doc *py.Dict) (*py.Dict, error) {
	t := newTree()
	m := merger{root: t}
	doc.Range(func(k, v any) bool {
		if !IsSampleSection(k) {
			return true
		}
		if d, ok := v.(*py.Dict); ok {
			m.merge(d, LayerSample)
		} else if v != nil {
			m.fail(LayerSample, py.Str(k), "must be a mapping, not %s", py.TypeName(v))
		}
		return true
	})
	return t.dict(), m.err
}

// pillarSection returns the part of the pillar for one project: the section makina-projects.<name>, then keys that spell out a path:
// makina-projects.<name>.data.port.
func pillarSection(doc *py.Dict, name Name) (*py.Dict, error) {
	t := newTree()
	m := merger{root: t}
	section := "makina-projects." + string(name)
	if v, ok := doc.GetStr(section); ok && v != nil {
		d, ok := v.(*py.Dict)
		if !ok {
			m.fail(LayerPillar, section, "must be a mapping, not %s", py.TypeName(v))
			return nil, m.err
		}
		m.merge(d, LayerPillar)
	}
	doc.Range(func(k, v any) bool {
		if s, ok := k.(string); ok {
			if path, ok := strings.CutPrefix(s, section+"."); ok {
				m.merge(nested(strings.Split(path, "."), v), LayerPillar)
			}
		}
		return true
	})
	return t.dict(), m.err
}

// nested returns {a: {b: v}} for the path a, b.
func nested(path []string, v any) *py.Dict {
	for i := len(path) - 1; i > 0; i-- {
		v = py.NewDict(path[i], v)
	}
	return py.NewDict(path[0], v)
}

// subDict returns section[key][name], empty if there is none.
func subDict(section *py.Dict, key, name string, layer Layer) (*py.Dict, error) {
	v, _ := section.GetStr(key)
	if v == nil {
		return nil, nil
	}
	d, ok := v.(*py.Dict)
	if !ok {
		return nil, cfgError(layer, key, "must be a mapping, not %s", py.TypeName(v))
	}
	v, _ = d.GetStr(name)
	if v == nil {
		return nil, nil
	}
	if d, ok = v.(*py.Dict); !ok {
		return nil, cfgError(layer, key+":"+name, "must be a mapping, not %s", py.TypeName(v))
	}
	return d, nil
}

func without(d *py.Dict, keys ...string) *py.Dict {
	out := d.Copy()
	for _, k := range keys {
		out.Delete(k)
	}
	return out
}

// unique keeps the family first, so that the more specific name (of an operating system or an environment) wins.
func unique(name, family string) []string {
	if name == family || family == "" {
		return []string{name}
	}
	return []string{family, name}
}

func pillarShow(doc, section *py.Dict) any {
	out := py.NewList()
	for _, d := range []*py.Dict{doc, section} {
		switch v, _ := d.GetStr("redact_show"); v := v.(type) {
		case string:
			out.Append(v)
		case *py.List:
			out.Append(v.Items()...)
		}
	}
	return out
}

// commandLine returns the selection and the settings that were given on the command line.
func commandLine(in CfgInputs, root *tree) (*py.Dict, error) {
	t := newTree()
	m := merger{root: t}
	if in.RemoteLess {
		m.merge(py.NewDict("remote_less", true), LayerCommand)
	}
	d := in.Deployment
	if d == nil {
		return t.dict(), nil
	}
	own := facts(in)
	for _, s := range d.Set {
		path := strings.Split(s.Key, ".")
		if own.Has(path[0]) || fixed(path[0]) {
			return nil, cfgError(LayerCommand, path[0], "set by the deployment; it cannot be overridden")
		}
		if s.forgotten() {
			continue
		}
		if root.get(path[:1]) == nil {
			path = append([]string{"data"}, path...)
		}
		m.merge(nested(path, typedAs(in.Inputs, path, s)), LayerCommand)
	}
	if len(d.Select.Only) > 0 {
		m.merge(py.NewDict("only", strList(d.Select.Only)), LayerCommand)
	}
	if len(d.Select.OnlySteps) > 0 {
		m.merge(py.NewDict("only_steps", strList(d.Select.OnlySteps)), LayerCommand)
	}
	for _, p := range d.Select.Skip {
		m.merge(py.NewDict("skip_"+ProcedureKey(p), true), LayerCommand)
	}
	return t.dict(), m.err
}

// fixed reports whether a key of cfg that is not a fact still cannot be set on the command line.
func fixed(key string) bool {
	return key == "remote_less" || key == "env_class" || key == "outputs" || key == "exports" || key == "kv"
}

func strList(s []string) *py.List {
	l := py.NewList()
	for _, x := range s {
		l.Append(x)
	}
	return l
}

func cfgError(layer Layer, key, format string, args ...any) *fault.Error {
	e := fault.New(fault.Failed, "configuration", "%s: %s", key, fmt.Sprintf(format, args...))
	switch {
	case layer == LayerLocal || layer.ofImage():
		e = e.WithPos(fault.Pos{File: string(layer)})
	case layer.FromPillar():
		e = e.WithPos(fault.Pos{File: "pillar/" + layout.PillarFile})
	case layer == LayerSample || layer == LayerSampleEnv || layer == LayerSampleOS:
		e = e.WithPos(fault.Pos{File: layout.SaltDir + "/" + layout.PillarSample})
	case layer.ofClass() != "":
		e = e.WithPos(fault.Pos{File: layout.SaltDir + "/" + schema.ClassesFile})
	case layer == LayerInputs:
		e = e.WithPos(fault.Pos{File: layout.SaltDir + "/" + schema.InputsFile})
	case layer == LayerCommand:
		e.Kind = fault.Usage
	}
	return e
}
