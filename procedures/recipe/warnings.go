package recipe

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"corpus-git/hooks"
	"corpus-git/layout"
)

// Warning is a remark about a file of the commit.
type Warning struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// Warnings finds executables that do not run: without the mode, or in a folder that no hook is called from.
func Warnings(recipe fs.FS) ([]Warning, error) {
	var out []Warning
	warn := func(file, format string, args ...any) {
		out = append(out, Warning{File: path.Join(layout.SaltDir, file), Text: fmt.Sprintf(format, args...)})
	}
	entries, err := fs.ReadDir(recipe, ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if fi, err := fs.Stat(recipe, e.Name()); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 == 0 && scriptForm.MatchString(e.Name()) {
			warn(e.Name(), "it is not executable, so it is not a step")
		}
	}
	points, err := fs.ReadDir(recipe, layout.HooksDir)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range points {
		dir := path.Join(layout.HooksDir, e.Name())
		point, ok := strings.CutSuffix(e.Name(), ".d")
		if !ok || !slices.Contains(hooks.Points(), hooks.Point(point)) {
			warn(dir, "hooks are not called from here: a point's folder is one of %s", pointDirs())
			continue
		}
		files, err := fs.ReadDir(recipe, dir)
		if err != nil {
			return nil, err
		}
		run, err := hooks.Executables(recipe, dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !slices.Contains(run, f.Name()) && f.Name()[0] != '.' && !f.IsDir() {
				warn(path.Join(dir, f.Name()), "it is not executable, so it is not a hook")
			}
		}
	}
	return out, nil
}

func pointDirs() string {
	var out []string
	for _, p := range hooks.Points() {
		out = append(out, string(p)+".d")
	}
	return strings.Join(out, ", ")
}
