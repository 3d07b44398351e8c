package compile

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/saltyaml"
	"corpus-git/sls"
	"corpus-git/sls/jinja"
	"corpus-git/sls/modules"
	"corpus-git/sls/render"
	"corpus-git/sls/salt/names"
)

// yamlError maps an error from the rendered text to the file, and drops the rendered line, which may contain a secret.
func (c *compiler) yamlError(src *source, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	var tag *saltyaml.TagError
	if errors.As(err, &tag) {
		return unsupported(pos{src, f.At.Line}, "the YAML tag "+tag.Tag, "")
	}
	out := *f
	at := pos{src, f.At.Line}.at()
	if at.Text == strings.TrimRight(f.At.Text, "\r") {
		at.Col = f.At.Col
	}
	out.At = at
	out.Op = ""
	return &out
}

// jinjaError adds the line to an error of a template, and detects what must be deferred.
func (c *compiler) jinjaError(ctx context.Context, err error) error {
	var je *jinja.Error
	if !errors.As(err, &je) {
		return err
	}
	var d *modules.DeferError
	if errors.As(err, &d) {
		return &deferral{sls.Deferred{File: je.Template, Line: je.Line, Why: d.Error()}}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f := je.Fault("")
	f.At = c.position(je.Template, je.Line)
	if what := unsupportedIn(err, je); what != "" {
		return fault.New(fault.Failed, "", "%w", &NeedError{sls.Need{File: f.At.File, Line: f.At.Line, Text: f.At.Text, What: what}}).
			WithPos(f.At).WithHint("%s", needHint(""))
	}
	var u *modules.UnknownError
	if errors.As(err, &u) {
		return c.unknownModule(u.Function, f.At)
	}
	if je.Class == jinja.ClassUndefined {
		for _, u := range c.uses(ctx) {
			if !u.Known && u.Template == je.Template && u.Line == je.Line {
				return c.unknownModule(u.Function, f.At)
			}
		}
	}
	if je.Class == jinja.ClassNotFound {
		f.Err = fmt.Errorf("the template %s is not there", je.Msg)
		f.Hint = "check the path: it is looked for on the file roots of salt://"
		if strings.HasPrefix(je.Msg, "makina-states/") {
			f.Hint = makinaHint
		}
	}
	return f
}

// unsupportedIn returns what a template uses that Salt supports and is not built in, "" if it did not.
func unsupportedIn(err error, je *jinja.Error) string {
	var l *jinja.LackError
	var m *modules.UnsupportedError
	switch {
	case errors.As(err, &l):
		return l.What
	case errors.As(err, &m):
		return m.What
	case je.Class == jinja.ClassUndefined:
		if q := missingAttribute.FindStringSubmatch(je.Msg); q != nil && names.Grain(q[1]) {
			return "the grain " + q[1]
		}
	}
	return ""
}

// missingAttribute matches the error of a template about a missing key of a mapping.
var missingAttribute = regexp.MustCompile(`has no attribute '(\w+)'`)

const makinaHint = "it belongs to makina-states: put that tree on the file roots, and install salt-call to run it"

// needHint returns the hint for a state function or a function of salt that is not built in.
func needHint(function string) string {
	switch module, _, _ := strings.Cut(function, "."); {
	case strings.HasPrefix(module, "mc_"):
		return makinaHint
	}
	return "with salt-call installed, runner auto or salt-call runs the file"
}

// unknownModule distinguishes a typo from a function of salt that Salt itself may have.
func (c *compiler) unknownModule(name string, at fault.Pos) *fault.Error {
	if near := closestFunction(name, c.renderer.Modules().Names()); near != "" && !names.Function(name) {
		return fault.New(fault.Failed, "", "salt has no function '%s'", name).WithPos(at).WithHint("did you mean salt['%s']?", near).WithFix(name, near)
	}
	return fault.New(fault.Failed, "", "%w", &NeedError{sls.Need{File: at.File, Line: at.Line, Text: at.Text, What: "salt['" + name + "']"}}).
		WithPos(at).WithHint("%s", needHint(name))
}

// position returns a line of a template, with its text if the template can be found.
func (c *compiler) position(name string, line int) fault.Pos {
	at := fault.Pos{File: name, Line: line}
	var raw string
	for _, r := range c.inputs {
		if r.file.Display() == name {
			raw = r.src
		}
	}
	if raw == "" {
		if f, err := c.in.Roots.Find(name); err == nil {
			if b, err := f.Read(); err == nil {
				raw = string(b)
			}
		}
	}
	lines := strings.Split(raw, "\n")
	if line > 0 && line <= len(lines) {
		at.Text = strings.TrimRight(lines[line-1], "\r")
	}
	return at
}

// inspect checks what can be checked in a deferred file: the syntax of its templates, and the functions of salt that they name.
func (c *compiler) inspect(ctx context.Context) error {
	for _, r := range c.inputs {
		uses, err := c.renderer.Inspect(ctx, r.file, r.src)
		if err != nil {
			return c.jinjaError(ctx, err)
		}
		guarded := map[string]bool{}
		for _, u := range uses {
			guarded[u.Function] = guarded[u.Function] || !u.Called
		}
		for _, u := range uses {
			if !u.Known && !guarded[u.Function] {
				return withOperation(c.unknownModule(u.Function, c.position(u.Template, u.Line)), c.in.SLS)
			}
		}
	}
	return nil
}

// uses returns the functions of salt that the templates so far name.
func (c *compiler) uses(ctx context.Context) []render.Use {
	var out []render.Use
	for _, r := range c.inputs {
		if uses, err := c.renderer.Inspect(ctx, r.file, r.src); err == nil {
			out = append(out, uses...)
		}
	}
	return out
}
