// Package keyplace finds the file and line of keys of a configuration, for errors and for explanations. It reads the files of the two
// commits and those of the machine, and shows nothing of them.
package keyplace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
)

// All adds the lines to an error in the configuration, or to each of several errors.
func All(err error, in Trees) error {
	var wrong project.InputErrors
	if !errors.As(err, &wrong) {
		return located(err, in)
	}
	out := slices.Clone(wrong)
	for i, e := range out {
		out[i] = located(e, in)
	}
	return out
}

// maxJoined is the maximum number of errors that a combined error lists.
const maxJoined = 20

// Joined combines several errors into one: the first, and below it the others with their positions.
func Joined(err error) error {
	var wrong project.InputErrors
	var first *fault.Error
	if !errors.As(err, &wrong) || !errors.As(wrong[0], &first) {
		return err
	}
	text := strings.Builder{}
	for i, e := range wrong[1:] {
		if i == maxJoined {
			fmt.Fprintf(&text, "\nand %d more", len(wrong)-1-i)
			break
		}
		at, _ := fault.PosOf(e)
		at.Col = 0
		fmt.Fprintf(&text, "\n%s: %s", at, fault.Cause(e))
		if at == (fault.Pos{}) {
			fmt.Fprintf(&text, "\n%s", fault.Cause(e))
		}
		if h := fault.HintOf(e); h != "" {
			fmt.Fprintf(&text, " (%s)", h)
		}
	}
	out := *first
	out.Err = fmt.Errorf("%w%s", first.Err, text.String())
	return &out
}

// located adds the line to an error in the configuration: the first line in its file at which the keys that lead to the error are nested.
// Keys produced by a template have no line.
func located(err error, in Trees) error {
	var f *fault.Error
	var pe *project.KeyError
	if !errors.As(err, &f) || !errors.As(err, &pe) {
		return err
	}
	if at := Of(f.At, pe.Keys, in); at.Line > 0 {
		return f.WithPos(at)
	}
	return err
}

// MaxSearched is the size of the largest file that is searched for keys, in bytes.
const MaxSearched = 8 << 20

// Trees are the files that a configuration is made of; nil ones do not exist.
type Trees struct {
	Code, Pillar fs.FS
	// Local is the path of local.yaml.
	Local string
	// Below are the recipes that Code's recipe extends, the strongest first.
	Below []Recipe
}

// Recipe is the folder .salt of a commit, of another project unless Name is empty.
type Recipe struct {
	Name  string
	Files fs.FS
}

// Sample finds the line of a key in PILLAR.sample of the recipe; the result has no line if the key does not exist.
func (r Recipe) Sample(keys []string) fault.Pos {
	at := fault.Pos{File: path.Join(layout.SaltDir, layout.PillarSample)}
	if r.Name != "" {
		at.File = r.Name + ":" + at.File
	}
	text, err := fs.ReadFile(vfs.Bounded{FS: r.Files, Max: MaxSearched}, layout.PillarSample)
	if err != nil {
		return at
	}
	if at.Line = lineOf(string(text), keys); at.Line == 0 {
		at.Line = lineOf(string(text), []string{strings.Join(keys, ".")})
	}
	return at
}

// below finds the line of a key in PILLAR.sample of the extended recipes.
func (t Trees) below(keys []string) (at fault.Pos, ok bool) {
	for _, r := range t.Below {
		if at = r.Sample(keys); at.Line > 0 {
			return at, true
		}
	}
	return fault.Pos{}, false
}

// Of finds the line of a key in the file of a position or, for the pillar, in another of its files; the result has no line if the key does
// not exist.
func Of(at fault.Pos, keys []string, trees Trees) fault.Pos {
	if file := at.File; file == layout.LocalFile || path.IsAbs(file) {
		if file == layout.LocalFile {
			file = trees.Local
		}
		at.File = file
		if text, err := fs.ReadFile(vfs.Bounded{FS: vfs.Files(path.Dir(file)), Max: MaxSearched}, path.Base(file)); err == nil {
			if at.Line = lineOf(string(text), keys); at.Line == 0 && len(keys) > 1 {
				at.Line = lineOf(string(text), keys[1:]) // env_defaults have no data above it
			}
		}
		return at
	}
	tree, name := trees.Code, at.File
	rest, pillar := strings.CutPrefix(name, layout.ArchivedPillar+"/")
	if pillar {
		tree, name = trees.Pillar, rest
	}
	if tree == nil || name == "" {
		return at
	}
	tree = vfs.Bounded{FS: tree, Max: MaxSearched}
	in := func(file string) int {
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return 0
		}
		if n := lineOf(string(text), keys); n > 0 {
			return n
		}
		return lineOf(string(text), []string{strings.Join(keys, ".")}) // makina-projects.app.data.port: 1
	}
	if at.Line = in(name); at.Line == 0 && name == path.Join(layout.SaltDir, layout.PillarSample) {
		if inherited, ok := trees.below(keys); ok {
			return inherited
		}
	}
	if at.Line > 0 || !pillar {
		return at
	}
	entries, err := fs.ReadDir(tree, ".")
	if err != nil {
		return at
	}
	for _, e := range entries {
		if path.Ext(e.Name()) != ".sls" || !e.Type().IsRegular() {
			continue
		}
		if n := in(e.Name()); n > 0 {
			return fault.Pos{File: layout.ArchivedPillar + "/" + e.Name(), Line: n}
		}
	}
	return at
}

// lineOf returns the line of the last of several keys that follow one another, 0 if they are not found.
func lineOf(text string, keys []string) int {
	for i, line := range strings.Split(text, "\n") {
		for len(keys) > 0 && namesKey(line, keys[0]) {
			if keys = keys[1:]; len(keys) == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// namesKey reports whether a line of YAML has a key, at its start or in a flow mapping.
func namesKey(line, key string) bool {
	for rest := line; ; {
		i := strings.Index(rest, key)
		if i < 0 {
			return false
		}
		before, after := rest[:i], strings.TrimLeft(rest[i+len(key):], `"' `)
		if strings.HasPrefix(after, ":") && (before == "" || strings.ContainsAny(before[len(before)-1:], " {,\"'\t.")) {
			return true
		}
		rest = rest[i+len(key):]
	}
}
