package compile

import (
	"context"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/render"
	"corpus-git/sls/state/command"
)

// checkModules looks at the execution functions that states name: module.run, slots, and fun in onlyif and unless.
func (c *compiler) checkModules(chunks []*Chunk) error {
	known := func(x *Chunk, at pos, name string) error {
		if c.renderer.Modules().Has(name) {
			return nil
		}
		if at.src == nil {
			at = x.at
		}
		return c.unknownModule(name, at.at())
	}
	for _, x := range chunks {
		if x.Module == "module" {
			for _, fun := range command.ModuleFunctions(x.Name, x.Args) {
				if err := known(x, x.at, fun); err != nil {
					return err
				}
			}
		}
		for _, fun := range slotFunctions(x.Args) {
			if err := known(x, x.at, fun); err != nil {
				return err
			}
		}
		for _, key := range []string{"onlyif", "unless"} {
			v, _ := x.Global.GetStr(key)
			for _, e := range Items(v) {
				if d, ok := e.(*py.Dict); ok {
					if fun, has := d.GetStr("fun"); has {
						if err := known(x, x.globalAt[key], py.Str(fun)); err != nil {
							return err
						}
					}
				}
			}
		}
	}
	return nil
}

// checkTemplates parses the templates of file states that are there already; what they say is found before anything ran.
func (c *compiler) checkTemplates(ctx context.Context, chunks []*Chunk) error {
	done := map[string]bool{}
	for _, x := range chunks {
		if v, ok := x.Args.GetStr("template"); !ok || v != "jinja" || x.Fun == "recurse" {
			continue
		}
		v, _ := x.Args.GetStr("source")
		for _, s := range Items(v) {
			src, ok := s.(string)
			if !ok || !strings.HasPrefix(src, "salt://") || done[src] {
				continue
			}
			done[src] = true
			f, err := c.in.Roots.Find(src)
			if err != nil {
				continue // it may be made by an earlier step, or be one of several
			}
			raw, err := f.Read()
			if err != nil {
				return fault.New(fault.Internal, Op+" "+src, "%w", err)
			}
			c.inputs = append(c.inputs, rendered{f, string(raw)})
			if line, text := render.OwnOptions(string(raw)); line > 0 {
				return need(pos{}, sls.Need{File: f.Display(), Line: line, Text: text, What: render.OwnOptionsName})
			}
			if err := c.renderer.Parse(f.Display(), string(raw)); err != nil {
				return c.jinjaError(ctx, err)
			}
		}
	}
	return nil
}
