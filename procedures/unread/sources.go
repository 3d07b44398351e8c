package unread

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"corpus-git/layout"
	"corpus-git/procedures/extends"
	"corpus-git/procedures/keyplace"
	"corpus-git/project"
	"corpus-git/project/schema"
	"corpus-git/signals"
	"corpus-git/sls/makina"
)

// Sources are the files that may read a key; nil ones do not exist.
type Sources struct {
	Name project.Name
	// Recipe is the folder .salt with the files that it extends.
	Recipe fs.FS
	keyplace.Trees
	// Exists reports whether the server has a project.
	Exists func(project string) bool
}

// reader collects what the sources read.
type reader struct {
	in    Sources
	reads map[string]*node
	// words are the names that programs, and templates of unknown values, contain; texts are those programs.
	words map[string]bool
	texts []string
	// templates are the other texts of the recipe.
	templates []string
	// programs: a program gets the configuration, and may call others.
	programs bool
}

// Limits on what is searched for readers.
const (
	maxReaders     = 32 << 20
	maxReaderFiles = 5000
	maxReader      = 1 << 20
)

// recipe searches the recipe, the samples and the pillar.
func (r *reader) recipe() {
	r.add(rootCfg, []string{"data", "node"}, true) // the server sets it
	playbooks := false
	r.walk(r.in.Recipe, "", func(p, _ string) {
		ext := path.Ext(p)
		playbooks = playbooks || path.Dir(p) == "." && (ext == ".yml" || ext == ".yaml") && p[0] >= '0' && p[0] <= '9'
	})
	r.walk(r.in.Recipe, "", func(p, text string) {
		switch kind := kindOf(p, text, playbooks); kind {
		case kindData:
			r.reference(text)
			if path.Base(p) == layout.PillarSample {
				r.jinja(text)
			}
		case kindTemplate:
			r.template(text)
		case kindProgram, kindModule:
			r.programs = r.programs || kind == kindProgram
			r.template(text)
			r.program(text)
			if readsWhole.MatchString(text) {
				r.add(rootCfg, nil, true)
			}
		}
	})
	for _, below := range r.in.Below {
		if text, err := fs.ReadFile(below.Files, layout.PillarSample); err == nil {
			r.reference(string(text))
			r.jinja(string(text))
		}
	}
	r.walk(r.in.Pillar, "", func(p, text string) {
		r.reference(text)
		if path.Ext(p) == ".sls" {
			r.jinja(text)
		}
	})
	if text, err := os.ReadFile(r.in.Local); r.in.Local != "" && err == nil {
		r.reference(string(text))
	}
}

// rest searches the rest of the commit, which the recipe may use as templates or run, and the files that replace makina-states.
func (r *reader) rest() {
	if r.mentions("makina-states") {
		r.walk(makina.Root().FS, "", func(_, text string) { r.program(text) })
	}
	if !r.programs && !r.mentions("template") {
		return
	}
	r.walk(r.in.Code, layout.SaltDir, func(_, text string) {
		r.template(text)
		if r.programs {
			r.program(text)
		}
	})
}

// walk calls fn for each text of a tree but those below skip. Beyond the limits everything counts as read.
func (r *reader) walk(tree fs.FS, skip string, fn func(p, text string)) {
	if tree == nil {
		return
	}
	left, files := int64(maxReaders), maxReaderFiles
	_ = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && (p == skip || d.Name() == ".git"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		fi, err := d.Info()
		if files--; err != nil || fi.Size() > maxReader {
			return nil
		}
		if left -= fi.Size(); left < 0 || files < 0 {
			r.add(rootCfg, nil, true)
			r.add(rootPillar, nil, true)
			return fs.SkipAll
		}
		if text, err := fs.ReadFile(tree, p); err == nil {
			fn(p, string(text))
		}
		return nil
	})
}

// kind is how a file of a recipe reads keys.
type kind int

const (
	kindTemplate kind = iota // by Jinja only
	kindData                 // by references in values
	kindProgram              // it gets the configuration as a whole
	kindModule               // a module of Salt
	kindNone
)

// kindOf returns the kind of a file; playbooks reports whether the recipe has any.
func kindOf(p, text string, playbooks bool) kind {
	name, ext := path.Base(p), path.Ext(p)
	declared := []string{schema.InputsFile, schema.OutputsFile, schema.ClassesFile, extends.File, signals.File, layout.PillarSample}
	switch {
	case slices.Contains(declared, name):
		return kindData
	case ext == ".md" || ext == ".rst":
		return kindNone
	case strings.HasPrefix(p, "_"):
		return kindModule
	case strings.HasPrefix(text, "#!") && !strings.HasPrefix(text, "#!jinja") && !strings.HasPrefix(text, "#!yaml"):
		return kindProgram
	case ext == ".sls":
		return kindTemplate
	case playbooks && (ext == ".yml" || ext == ".yaml"), slices.Contains([]string{".pp", ".py", ".rb", ".pl", ".sh"}, ext):
		return kindProgram
	case path.Dir(p) == "." && p[0] >= '0' && p[0] <= '9':
		return kindProgram // for a tool of the operator
	}
	return kindTemplate
}

// readsWhole matches what reads a mapping as a whole in a program, a playbook or a manifest: a loop, a filter, an argument, and writing all of the input.
var readsWhole = regexp.MustCompile(`\b(data|cfg|ms_project|corpus)\b['"]?[\])]*\s*(\||\)|,|%\}|\}\}|\.(items|iteritems|keys|values|copy|update|each|map|filter|to_json)\b)` +
	`|:\s*['"]?(\{\{\s*)?cfg(\.data)?\s*(\}\}\s*)?['"]?\s*(\n|$)|\b(cat|tee)\s+(-\s*)?>|\btee\s+[^|]|\bjq\s+(-\w+\s+)*'?\.(data)?'?\s*(>|\||\n|$)`)

var referenced = regexp.MustCompile(`\{[A-Za-z0-9_.-]+\}`)
