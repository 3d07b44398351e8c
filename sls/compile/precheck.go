package compile

import (
	"context"
	"io/fs"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/render"
	"corpus-git/sls/salt/names"
	"corpus-git/sls/state/command"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/file"
)

// checkModules checks the execution functions that states name: module.run, slots, and fun in onlyif and unless.
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

// checkTemplates parses the templates of states that exist already, with the templates that they import, and checks the functions of salt
// that they always call, or call in a branch (see Input.Branches), so that errors are found before anything runs.
func (c *compiler) checkTemplates(ctx context.Context, chunks []*Chunk) error {
	done := map[string]bool{}
	for _, x := range chunks {
		if v, ok := x.Args.GetStr("template"); !ok || v != "jinja" {
			continue
		}
		if x.Module == "file" && x.Fun == "recurse" {
			if err := c.checkFolder(ctx, x, done); err != nil {
				return err
			}
			continue
		}
		v, ok := x.Args.GetStr("source")
		if !ok && x.Module == "cmd" {
			v = x.Name // cmd.script
		}
		for _, s := range Items(v) {
			src, ok := s.(string)
			if !ok || !strings.HasPrefix(src, "salt://") {
				continue
			}
			f, err := c.in.Roots.Find(src)
			if err != nil || done[f.Path] {
				continue // an earlier step may create it, or it is one of several
			}
			done[f.Path] = true
			if err := c.checkTemplate(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *compiler) checkTemplate(ctx context.Context, f fileroot.File) error {
	raw, err := f.Read()
	if err != nil {
		return fault.New(fault.Internal, Op+" "+f.Display(), "%w", err)
	}
	c.inputs = append(c.inputs, rendered{f, string(raw)})
	if line, text := render.OwnOptions(string(raw)); line > 0 {
		return need(pos{}, sls.Need{File: f.Display(), Line: line, Text: text, What: render.OwnOptionsName})
	}
	uses, err := c.renderer.Inspect(ctx, f, string(raw))
	if err != nil {
		return c.jinjaError(ctx, err)
	}
	for _, u := range uses {
		if u.Called && !u.Known && (u.Always || c.in.Branches && names.Function(u.Function)) {
			return c.unknownModule(u.Function, c.position(u.Template, u.Line))
		}
	}
	return nil
}

// checkFolder checks the templates of a file.recurse for unsupported functions. Other errors in them are reported when the state runs: it
// may have written other files before that, as in Salt.
func (c *compiler) checkFolder(ctx context.Context, x *Chunk, done map[string]bool) error {
	call := &core.Call{Args: x.Args}
	v, _ := x.Args.GetStr("source")
	for _, s := range Items(v) {
		src, ok := s.(string)
		if !ok || !strings.HasPrefix(src, "salt://") {
			continue
		}
		err := c.in.Roots.Walk(src, func(rel string, f fileroot.File, d fs.DirEntry) error {
			if d.IsDir() || done[f.Path] || !file.InRecurse(call, rel) {
				return nil
			}
			done[f.Path] = true
			err := c.checkTemplate(ctx, f)
			if _, lacking := NeedOf(err); lacking {
				return err
			}
			return nil
		})
		if _, lacking := NeedOf(err); lacking {
			return err
		}
	}
	return nil
}
