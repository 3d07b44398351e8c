package compile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/modules"
	"corpus-git/sls/render"
	"corpus-git/sls/state"
	"corpus-git/sls/state/core"
)

// Program is a compiled SLS file with everything that it includes: states in the order in which they run. It runs once.
type Program struct {
	SLS  string
	File string
	// Deferred is not nil if the file could not be rendered before its step runs; then there are no states.
	Deferred *sls.Deferred
	// Warnings are remarks of the compilation.
	Warnings []sls.Warning

	Input    *sls.Input
	Table    *core.Table
	Renderer *render.Renderer
	graph    *graph
	Nodes    []*Node
}

// NeedError reports that a file uses something that the built-in runner does not support and Salt may.
type NeedError struct{ Need sls.Need }

func (e *NeedError) Error() string { return e.Need.What + " is not part of the built-in runner" }

// NeedOf returns what the built-in runner does not support in err's file; ok is false for any other error.
func NeedOf(err error) (sls.Need, bool) {
	var n *NeedError
	if errors.As(err, &n) {
		return n.Need, true
	}
	return sls.Need{}, false
}

// States returns what a program runs, in order.
func (p *Program) States() []sls.StateRef {
	var out []sls.StateRef
	for _, n := range p.Nodes {
		if !n.IsTest {
			out = append(out, p.Ref(n.Chunk, len(out)+1))
		}
	}
	for i := range out {
		out[i].Of = len(out)
	}
	return out
}

// Waits returns the places of the states corpus.wait.
func (p *Program) Waits() (out []fault.Pos) {
	for _, s := range p.States() {
		if s.Function == "corpus.wait" {
			out = append(out, fault.Pos{File: s.File, Line: s.Line})
		}
	}
	return out
}

// Resolve returns the nodes that a reference matches; ok is false if there is none.
func (p *Program) Resolve(r ReqRef) (nodes []*Node, ok bool) { return p.graph.resolve(r) }

// Ref returns the state as a Sink sees it, the num-th one.
func (p *Program) Ref(c *Chunk, num int) sls.StateRef {
	at := c.at.at()
	return sls.StateRef{ID: c.ID, Name: c.Name, Function: c.Function(), SLS: c.SLS, File: at.File, Line: at.Line, Num: num}
}

// maxFiles limits the files that one SLS includes, maxStates its states.
const (
	maxFiles  = 1000
	maxStates = 100000
)

// copyInput copies what templates can change, so that a step never sees changes of another step's template.
func copyInput(in *sls.Input) *sls.Input {
	out := *in
	for _, d := range []**py.Dict{&out.Cfg, &out.Pillar, &out.Grains, &out.Opts} {
		if *d != nil {
			*d = py.DeepCopy(*d).(*py.Dict)
		}
	}
	if in.Plan {
		h := *in.Host
		h.Refused = new(int)
		out.Host = &h
	}
	return &out
}

// SLS renders an SLS file and everything that it includes, and resolves its states and their order. It changes nothing on the machine. An
// error in the file is a *fault.Error of kind Failed with its position; it wraps a *NeedError if Salt itself may support what is unknown
// here. log, if not nil, receives the log.* output of templates.
func SLS(ctx context.Context, in *sls.Input, log func(line string)) (*Program, error) {
	in = copyInput(in)
	c := &compiler{in: in, log: log, table: state.All(), seen: map[string]bool{}, iorder: 10000}
	c.renderer = render.New(c.modules())
	p := &Program{SLS: in.SLS, Input: in, Table: c.table, Renderer: c.renderer}
	f, err := in.Roots.SLS(in.SLS)
	if err != nil {
		return nil, notFound(pos{}, in.SLS, err)
	}
	p.File = f.Display()
	part, err := c.file(ctx, in.SLS, pos{})
	var d *deferral
	if errors.As(err, &d) {
		p.Deferred = &d.Deferred
		return p, c.inspect(ctx)
	}
	if err != nil {
		return nil, withOperation(err, in.SLS)
	}
	p.Warnings = c.warnings
	h := part.high
	if err := h.extend(part.extends, part.excludes); err != nil {
		return nil, withOperation(err, in.SLS)
	}
	if err := h.requisiteIn(); err != nil {
		return nil, withOperation(err, in.SLS)
	}
	p.Warnings = append(p.Warnings, h.warnings...)
	h.exclude(part.excludes)
	chunks, err := h.chunks(c.table)
	if err != nil {
		return nil, withOperation(err, in.SLS)
	}
	if len(chunks) > maxStates {
		return nil, fault.New(fault.Failed, Op+" "+in.SLS, "%d states are more than %d", len(chunks), maxStates)
	}
	for _, x := range chunks {
		for _, a := range x.ignored {
			text := fmt.Sprintf("%s ignores the argument '%s'", x.Function(), a.key)
			if a.near != "" {
				text += ": did you mean '" + a.near + "'?"
			}
			p.Warnings = append(p.Warnings, sls.Warning{At: a.at.at(), Text: text})
		}
		if c.table.Watch(x.Module) == nil { // without mod_watch, watch means require
			x.Reqs[ReqRequire] = append(x.Reqs[ReqRequire], x.Reqs[ReqWatch]...)
			x.Reqs[ReqRequireAny] = append(x.Reqs[ReqRequireAny], x.Reqs[ReqWatchAny]...)
			x.Reqs[ReqWatch], x.Reqs[ReqWatchAny] = nil, nil
		}
	}
	if err := c.checkModules(chunks); err != nil {
		return nil, withOperation(err, in.SLS)
	}
	if in.Mode == sls.Static {
		if err := c.checkTemplates(ctx, chunks); err != nil {
			return nil, withOperation(err, in.SLS)
		}
	}
	p.graph = newGraph(chunks, c.files)
	if err := p.graph.connect(); err != nil {
		return nil, withOperation(err, in.SLS)
	}
	if p.Nodes, err = p.graph.sorted(); err != nil {
		return nil, withOperation(err, in.SLS)
	}
	return p, nil
}

func withOperation(err error, sls string) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Op == "" {
		c := *f
		c.Op = Op + " " + sls
		return &c
	}
	return err
}

// compiler renders the files of one program.
type compiler struct {
	in       *sls.Input
	table    *core.Table
	renderer *render.Renderer
	seen     map[string]bool
	files    []string // names of all rendered SLS files
	all      []string // of AllSLS, once
	iorder   int
	warnings []sls.Warning
	inputs   []rendered
	log      func(line string)
}

type rendered struct {
	file fileroot.File
	src  string
}

// deferral stops a static compilation.
type deferral struct{ sls.Deferred }

func (d *deferral) Error() string { return d.Why }

func (c *compiler) modules() *modules.Env {
	in := c.in
	env := &modules.Env{Host: in.Host, Roots: in.Roots, Cfg: in.Cfg, Pillar: in.Pillar, Grains: in.Grains, Opts: in.Opts,
		Locations: in.Locations, Static: in.Mode == sls.Static, Log: c.log, KV: in.KV}
	if in.Passwords != nil {
		env.Passwords = in.Passwords
	}
	if in.Test {
		opts := py.NewDict()
		opts.Update(in.Opts)
		opts.SetStr("test", true)
		env.Opts = opts
	}
	return env
}

// part is what a file and its includes declare.
type part struct {
	high     *high
	extends  []extension
	excludes []exclusion
}

// file renders one SLS file, then the files that it includes, as Salt does.
func (c *compiler) file(ctx context.Context, name string, from pos) (*part, error) {
	f, err := c.in.Roots.SLS(name)
	if err != nil {
		return nil, notFound(from, name, err)
	}
	raw, err := f.Read()
	if err != nil {
		return nil, fault.New(fault.Internal, Op+" "+name, "%w", err)
	}
	c.seen[name] = true
	c.files = append(c.files, name)
	if len(c.files) > maxFiles {
		return nil, failf(from, "more than %d files are included", maxFiles)
	}
	src := &source{sls: name, display: f.Display(), isInit: strings.HasSuffix(f.Path, "/init.sls"), lines: strings.Split(string(raw), "\n")}
	doc, err := c.document(ctx, f, src, string(raw))
	if err != nil {
		return nil, err
	}
	out := &part{high: newHigh(), extends: doc.extends, excludes: doc.excludes}
	for _, d := range doc.decls {
		out.high.add(d)
	}
	for _, inc := range doc.include {
		targets, err := c.includeTargets(src, inc)
		if err != nil {
			return nil, err
		}
		for _, t := range targets {
			if c.seen[t] {
				continue
			}
			sub, err := c.file(ctx, t, inc.at)
			if err != nil {
				return nil, err
			}
			if err := merge(out, sub, name); err != nil {
				return nil, err
			}
		}
	}
	for _, id := range out.high.order {
		for _, s := range out.high.ids[id].states {
			if s.iorder == 0 && !s.arg("order") {
				s.iorder = c.iorder
				c.iorder++
			}
		}
	}
	return out, nil
}

func merge(into, sub *part, by string) error {
	into.extends = append(into.extends, sub.extends...)
	into.excludes = append(into.excludes, sub.excludes...)
	for _, id := range sub.high.order {
		d := sub.high.ids[id]
		if old, ok := into.high.ids[id]; ok {
			return failf(old.at, "Detected conflicting IDs, SLS IDs need to be globally unique. The conflicting ID is '%s' and is found in SLS '%s' and SLS '%s'",
				id, old.sls, d.sls).WithHint("rename one of the two; the other is at %s", d.at.at())
		}
		d.includedFrom = append(d.includedFrom, by)
		into.high.add(d)
	}
	return nil
}

// document renders and reads one file.
func (c *compiler) document(ctx context.Context, f fileroot.File, src *source, raw string) (*document, error) {
	text := raw
	pipeline := []string{"jinja", "yaml"}
	if line, _, _ := strings.Cut(raw, "\n"); strings.HasPrefix(line, "#!") {
		pipeline = strings.Split(strings.TrimSpace(strings.TrimPrefix(line, "#!")), "|")
		// The line is kept, as a YAML comment, so that line numbers stay right.
	}
	if line, text := render.OwnOptions(raw); line > 0 {
		return nil, need(pos{src, 0}, sls.Need{File: src.display, Line: line, Text: text, What: render.OwnOptionsName})
	}
	for i, step := range pipeline {
		kind, _, _ := strings.Cut(strings.TrimSpace(step), " ")
		switch {
		case kind == "jinja" && i == 0:
			c.inputs = append(c.inputs, rendered{f, raw})
			out, lines, err := c.renderer.SLS(ctx, f, src.sls, raw)
			if err != nil {
				return nil, c.jinjaError(ctx, err)
			}
			text, src.from = out, lines
		case kind == "yaml" && i == len(pipeline)-1:
		default:
			return nil, need(pos{src, 0}, sls.Need{File: src.display, Line: 1, Text: src.lines[0], What: "the renderer " + step})
		}
	}
	doc, err := saltyaml.Parse(f.Display(), []byte(text), saltyaml.Options{})
	if err != nil {
		return nil, c.yamlError(src, err)
	}
	return parseDocument(src, doc.Root)
}

func need(p pos, n sls.Need) error {
	at := fault.Pos{File: n.File, Line: n.Line, Text: n.Text}
	if n.File == "" {
		at = p.at()
	}
	return fault.New(fault.Failed, "", "%w", &NeedError{n}).WithPos(at).
		WithHint("with salt-call installed, runner auto or salt-call runs the file")
}

// NotFound returns the error for a step that is not in the file roots.
func NotFound(name string, err error) error { return notFound(pos{}, name, err) }

func notFound(from pos, name string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Failed, Op+" "+name, "%w", err).WithPos(from.at())
	}
	file := strings.ReplaceAll(name, ".", "/")
	e := failf(from, "the SLS '%s' is not there: neither salt://%s.sls nor salt://%s/init.sls", name, file, file)
	if strings.HasPrefix(name, "makina-states") {
		return e.WithHint(makinaHint)
	}
	return e.WithHint("check the name and the file roots")
}

// includeTargets returns the SLS names that an include matches: relative names resolved, patterns expanded.
// Source: Salt documentation, "Include and Exclude".
func (c *compiler) includeTargets(src *source, inc includeRef) ([]string, error) {
	name := inc.name
	if strings.HasPrefix(name, ".") {
		rest := strings.TrimLeft(name, ".")
		up := len(name) - len(rest)
		comps := strings.Split(src.sls, ".")
		if src.isInit {
			comps = append(comps, "init")
		}
		if up > len(comps) {
			return nil, failf(inc.at, "Attempted relative include of '%s' within SLS '%s' goes beyond top level package", name, src.sls)
		}
		comps = append(comps[:len(comps)-up:len(comps)-up], rest)
		name = strings.Join(comps, ".")
	}
	if !strings.ContainsAny(name, "*?[") {
		return []string{name}, nil
	}
	if c.all == nil {
		c.all = c.in.Roots.AllSLS()
	}
	var out []string
	for _, s := range c.all {
		if sls.Glob(name, s) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, failf(inc.at, "no SLS matches the include '%s'", name)
	}
	return out, nil
}
