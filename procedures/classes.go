package procedures

import (
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
	"corpus-git/procedures/recipe"
)

// leaveOut takes out the steps of classes that are off, unless one of a class that is on has them, too. all are the recipe's. A class that names no step of the
// recipe is refused, and so is a chosen step (only_steps) that is off.
func (p *Prepared) leaveOut(all []recipe.Step) error {
	if p.classes == nil {
		return nil
	}
	var names, off, on []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	for _, c := range p.classes.List {
		for _, step := range c.Steps {
			step = strings.TrimSuffix(step, ".sls")
			if !slices.Contains(names, step) {
				e := fault.New(fault.Failed, "", "the class %s names the step %s, which the recipe has not", c.Name, step).WithPos(fault.Pos{File: c.File, Line: c.Line})
				if near := nearest.To(step, names); near != "" {
					return e.WithHint("did you mean  %s?", near)
				}
				return e.WithHint("its steps are: %s", strings.Join(names, ", "))
			}
			if slices.Contains(p.Cfg.Classes(), c.Name) {
				on = append(on, step)
			} else {
				off = append(off, step)
			}
		}
	}
	off = slices.DeleteFunc(off, func(s string) bool { return slices.Contains(on, s) })
	if only := p.Cfg.OnlySteps(); len(only) > 0 {
		for _, s := range p.Steps {
			if slices.Contains(off, s.Name) {
				return fault.New(fault.Usage, "", "the step %s belongs to classes that are off here", s.Name).WithHint("turn one on for this run:  classes=+NAME")
			}
		}
	}
	p.Steps = slices.DeleteFunc(p.Steps, func(s recipe.Step) bool { return slices.Contains(off, s.Name) })
	text := "classes: " + strings.Join(p.Cfg.Classes(), ", ")
	if len(p.Cfg.Classes()) == 0 {
		text = "classes: none"
	}
	slices.Sort(off)
	if off = slices.Compact(off); len(off) > 0 {
		text += "; steps left out: " + strings.Join(off, ", ")
	}
	p.Notes = append(p.Notes, text)
	return nil
}
