package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/jinja"
	"corpus-git/sls/modules"
)

// Renderer renders the templates of one SLS file and the files that it includes.
type Renderer struct {
	env  *modules.Env
	salt *modules.Set
	j    *jinja.Environment
	opts *py.Dict
}

// base is what all renderers have in common. It is made once, because a small template renders in a tenth of the time that this takes, and never changes.
var base = sync.OnceValue(func() *jinja.Environment {
	return jinja.New(jinja.Options{
		Find:            findTemplate,
		Filters:         filters(),
		Tests:           tests(),
		ContextFuncs:    map[string]jinja.ContextFunc{"show_full_context": showFullContext, "odict": orderedDict, "ifelse": ifElse},
		DataLoaders:     map[string]jinja.DataLoader{"yaml": loadYAML, "json": loadJSON, "text": loadText},
		Print:           printed,
		Lacking:         lacking(),
		StrictUndefined: true,
		ContextIsGlobal: true,
	})
})

// New returns a Renderer.
func New(env *modules.Env) *Renderer {
	r := &Renderer{env: env, salt: modules.New(env), opts: py.NewDict()}
	r.opts.Update(env.Opts)
	if env.Cfg != nil {
		r.opts.SetStr("ms_project", env.Cfg)
	}
	r.opts.SetStr("grains", dict(env.Grains))
	r.opts.SetStr("pillar", dict(env.Pillar))
	if !r.opts.Has("test") {
		r.opts.SetStr("test", false)
	}
	r.j = base().Overlay(jinja.LoaderFunc(r.load), r.globals())
	return r
}

// orderedDict is odict(): collections.OrderedDict.
func orderedDict(c *jinja.Context, args []any, kw *py.Dict) (any, error) {
	v, err := jinja.MakeDict(c, args, kw)
	if d, ok := v.(*py.Dict); ok {
		d.KeepOrder()
	}
	return v, err
}

func dict(d *py.Dict) *py.Dict {
	if d == nil {
		return py.NewDict()
	}
	return d
}

// Modules returns the value of salt.
func (r *Renderer) Modules() *modules.Set { return r.salt }

func (r *Renderer) globals() map[string]any {
	g := map[string]any{
		"salt": r.salt, "opts": r.opts, "grains": dict(r.env.Grains), "pillar": dict(r.env.Pillar),
		"saltenv": "base", "env": "base",
		"raise": py.NewFunc("raise", func(_ context.Context, args []any, _ *py.Dict) (any, error) {
			if len(args) == 0 {
				return nil, errors.New("raised by the template")
			}
			return nil, errors.New(py.Str(args[0]))
		}),
	}
	if r.env.Cfg != nil {
		g["cfg"] = r.env.Cfg
	}
	return g
}

func showFullContext(*jinja.Context, []any, *py.Dict) (any, error) {
	return nil, errors.New("show_full_context is refused: it would show the pillar")
}

// ifElse returns the value after the first true condition, or the last argument. Salt also takes targets for
// conditions, and merges values.
func ifElse(_ *jinja.Context, args []any, kw *py.Dict) (any, error) {
	if kw.Len() > 0 {
		return nil, jinja.Lack("a keyword argument of ifelse")
	}
	if len(args)%2 == 0 {
		return nil, py.Errorf(py.TypeError, "The ifelse function must have an odd number of arguments!")
	}
	out := args[len(args)-1]
	for i := 0; i+1 < len(args); i += 2 {
		on, ok := args[i].(bool)
		if !ok {
			return nil, jinja.Lack("a target as a condition of ifelse")
		}
		if on { // Salt makes a dict of the pairs: of those that are true the last one counts
			out = args[i+1]
		}
	}
	return out, nil
}

// findTemplate resolves ./ and ../ against tpldir. If a template is imported or included without context, it and what is
// imported after it see its own location. Source: Salt, utils/jinja.py, SaltCacheLoader.get_source.
func findTemplate(name string, global func(string) any) (string, *py.Dict, error) {
	first, _, _ := strings.Cut(name, "/")
	if first != "." && first != ".." {
		dir := path.Dir(strings.TrimLeft(name, "/"))
		return name, py.NewDict("tplfile", name, "tpldir", dir, "tpldot", strings.ReplaceAll(strings.TrimPrefix(dir, "."), "/", ".")), nil
	}
	dir, ok := global("tpldir").(string)
	real := path.Join(dir, name)
	if up, _, _ := strings.Cut(real, "/"); !ok || up == ".." {
		return "", nil, &jinja.Error{Class: jinja.ClassNotFound, Msg: name}
	}
	return real, py.NewDict("tplfile", name, "tpldot", strings.ReplaceAll(strings.TrimPrefix(dir, "."), "/", ".")), nil
}

// load finds a template that another one imports or includes.
func (r *Renderer) load(_ context.Context, name string) (src, display string, err error) {
	f, err := r.env.Roots.Find(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return "", "", jinja.ErrNotFound
	}
	if err != nil {
		return "", "", err
	}
	b, err := f.Read()
	return string(b), f.Display(), err
}

func loadYAML(_ *jinja.Context, text string) (any, error) {
	doc, err := saltyaml.Parse("", []byte(text), saltyaml.Options{Private: true})
	if err != nil {
		return nil, fmt.Errorf("the YAML cannot be read: %w", err)
	}
	return doc.Value, nil
}

func loadJSON(_ *jinja.Context, text string) (any, error) { return py.FromJSON(text) }

func loadText(_ *jinja.Context, text string) (any, error) { return text, nil }

// Vars returns the variables of a template by its salt:// path and, for an SLS file, its dotted name.
func Vars(file, sls string) *py.Dict {
	v := py.NewDict()
	if file != "" {
		dir := path.Dir(file)
		root, _, _ := strings.Cut(file, "/")
		if dir == "." {
			root = ""
		}
		v.SetStr("tplpath", "salt://"+file)
		v.SetStr("tplfile", file)
		v.SetStr("tpldir", dir)
		if dir == "." {
			v.SetStr("tpldot", "")
		} else {
			v.SetStr("tpldot", strings.ReplaceAll(dir, "/", "."))
		}
		v.SetStr("tplroot", root)
	}
	if sls != "" {
		p := strings.ReplaceAll(sls, ".", "/")
		if !strings.HasSuffix(file, "/init.sls") || strings.HasSuffix(p, "/init") {
			if i := strings.LastIndexByte(p, '/'); i >= 0 {
				p = p[:i]
			} else {
				p = ""
			}
		}
		v.SetStr("sls", sls)
		v.SetStr("slspath", p)
		v.SetStr("slsdotpath", strings.ReplaceAll(p, "/", "."))
		v.SetStr("slscolonpath", strings.ReplaceAll(p, "/", ":"))
		v.SetStr("sls_path", strings.ReplaceAll(p, "/", "_"))
	}
	return v
}

// SLS renders an SLS file, and reports which line of which template produced each line of the text.
func (r *Renderer) SLS(ctx context.Context, f fileroot.File, sls, src string) (string, *jinja.Lines, error) {
	t, err := r.j.Parse(f.Display(), src)
	if err != nil {
		return "", nil, err
	}
	out, lines, err := t.RenderLines(ctx, Vars(f.Path, sls))
	if err != nil {
		return "", nil, err
	}
	lines.Append(lastNewline(src), t, strings.Count(src, "\n"))
	return out + lastNewline(src), lines, nil
}

// lastNewline returns the newline at the end of a template. Jinja drops it, and Salt adds it again, whatever is before it,
// but not to what is included or imported.
func lastNewline(src string) string {
	if strings.HasSuffix(src, "\n") {
		return "\n"
	}
	return ""
}

// Text renders a template of a file state. name is its name in errors. As in Salt, such a template does not see tpldir and
// similar variables.
func (r *Renderer) Text(ctx context.Context, name, src string, vars *py.Dict) (string, error) {
	if err := refuseOptions(name, src); err != nil {
		return "", err
	}
	t, err := r.j.Parse(name, src)
	if err != nil {
		return "", err
	}
	v := py.NewDict()
	v.Update(vars)
	out, err := t.Render(ctx, v)
	if err != nil {
		return "", err
	}
	return out + lastNewline(src), nil
}

// Use is a function of salt that a template calls.
type Use struct {
	Function string
	Template string
	Line     int
	Known    bool
	Live     bool
	// Called is false if the template only tests for the function, as in salt['x'] is defined.
	Called bool
	// Always is set if every rendering of the requested file calls it.
	Always bool
}

// Inspect parses an SLS file, and every template that it names as a constant, without rendering. The error is a
// *jinja.Error. uses are the calls of salt in all of them.
func (r *Renderer) Inspect(ctx context.Context, f fileroot.File, src string) (uses []Use, err error) {
	t, err := r.j.Parse(f.Display(), src)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var visit func(t *jinja.Template, display string) error
	visit = func(t *jinja.Template, display string) error {
		for _, c := range t.Calls() {
			if c.Name != "salt" || len(c.Path) == 0 {
				continue
			}
			fn := c.Path[0]
			if !strings.Contains(fn, ".") && len(c.Path) > 1 {
				fn += "." + c.Path[1]
			}
			if !strings.Contains(fn, ".") {
				continue
			}
			uses = append(uses, Use{Function: fn, Template: display, Line: c.Line, Known: r.salt.Has(fn), Live: r.salt.Live(fn), Called: c.Called, Always: c.Always && display == f.Display()})
		}
		for _, ref := range t.References() {
			if seen[ref] {
				continue
			}
			seen[ref] = true
			if strings.HasSuffix(ref, ".yaml") || strings.HasSuffix(ref, ".yml") || strings.HasSuffix(ref, ".json") {
				continue
			}
			real, _, err := findTemplate(ref, func(string) any { return path.Dir(f.Path) })
			if err != nil {
				continue
			}
			rt, err := r.j.Get(ctx, real)
			var je *jinja.Error
			if errors.As(err, &je) && je.Class == jinja.ClassNotFound {
				continue // it may be optional, or made by an earlier step
			}
			if err != nil {
				return err
			}
			if err := visit(rt, ref); err != nil {
				return err
			}
		}
		return nil
	}
	return uses, visit(t, f.Display())
}

// Names contains the names that templates can use.
type Names struct{ Filters, Tests, Globals []string }

// Names returns the names, sorted.
func (r *Renderer) Names() Names {
	return Names{r.j.FilterNames(), r.j.TestNames(), r.j.GlobalNames()}
}
