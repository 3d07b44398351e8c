package recipe

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"

	"corpus-git/hooks"
	"corpus-git/internal/fault"
	"corpus-git/layout"
)

// Mend returns the hooks of a point, but for those that do not start, where the recipe that replaces this one has another file in their place, or none:
// that one counts, else no push could mend a hook that ends every push. starts returns why a hook cannot be started; note is called for each that is replaced.
func (r *Recipe) Mend(p hooks.Point, by *Recipe, starts func(Step) error, note func(format string, args ...any)) ([]hooks.Hook, error) {
	all, err := r.Hooks(p)
	if err != nil {
		return nil, err
	}
	var out []hooks.Hook
	for _, h := range all {
		file := path.Join(layout.HooksDir, string(p)+".d", h.Name)
		bad := starts(Step{Name: h.Name, File: file, Script: true})
		if bad == nil {
			out = append(out, h)
			continue
		}
		instead, same, err := r.replaced(by, p, h.Name, file)
		if err != nil {
			return nil, err
		}
		what := "is left out, as the new commit has none of this name"
		switch {
		case same:
			out = append(out, h)
			continue
		case instead != nil:
			out = append(out, *instead)
			what = "is replaced by that of the new commit"
		}
		note("%s of the live commit cannot be started (%s): it %s", h.File, fault.Cause(bad), what)
	}
	return out, nil
}

// replaced finds the hook of another recipe at the place of one of r, nil if there is none; same reports that they are equal.
func (r *Recipe) replaced(by *Recipe, p hooks.Point, name, file string) (instead *hooks.Hook, same bool, err error) {
	theirs, err := by.Hooks(p)
	if err != nil {
		return nil, false, err
	}
	for _, x := range theirs {
		if x.Name == name {
			instead = &x
		}
	}
	if instead == nil {
		return nil, false, nil
	}
	var text [2][]byte
	for i, x := range []*Recipe{r, by} {
		files, err := x.Files()
		if err == nil {
			text[i], err = fs.ReadFile(files, file)
		}
		if err != nil {
			return nil, false, fmt.Errorf("read %s: %w", file, err)
		}
	}
	return instead, bytes.Equal(text[0], text[1]), nil
}
