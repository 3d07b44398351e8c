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
	"corpus-git/project/schema"
)

// Warning is a remark about a file of the commit.
type Warning struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// Warnings finds files that look like steps or hooks, and are not: steps without the mode, the number or the right extension, hooks without
// the mode or in a folder that is not a hook point. groups are as in Steps.
func Warnings(recipe fs.FS, groups ...string) ([]Warning, error) {
	var out []Warning
	warn := func(file, format string, args ...any) {
		out = append(out, Warning{File: path.Join(layout.SaltDir, file), Text: fmt.Sprintf(format, args...)})
	}
	entries, err := fs.ReadDir(recipe, ".")
	if err != nil {
		return nil, err
	}
	named := &mentions{recipe: recipe}
	for _, e := range entries {
		fi, err := fs.Stat(recipe, e.Name())
		if err != nil || !fi.Mode().IsRegular() {
			continue
		}
		if meant := meantSchema(e.Name()); meant != "" {
			warn(e.Name(), "not used: did you mean %s?", meant)
			continue
		}
		if _, runs := stepOf(recipe, e.Name(), fi.Mode(), groups); !runs && !special(e.Name()) {
			if why := noStep(recipe, e.Name(), fi.Mode(), groups, named); why != "" {
				warn(e.Name(), "%s", why)
			}
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
			warn(dir, "hooks in this folder do not run: it must be one of %s", pointDirs())
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

// meantSchema returns the file of declarations whose name was probably meant, "" for others.
func meantSchema(file string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(file), ".yml"), ".yaml")
	if name == strings.ToLower(file) {
		return ""
	}
	for _, known := range []string{schema.InputsFile, schema.OutputsFile, schema.ClassesFile} {
		plural := strings.TrimSuffix(known, ".yaml")
		if file != known && (name == plural || name+"s" == plural) {
			return known
		}
	}
	return ""
}

// noStep returns why a file that looks like a step is not one; "" if it does not look like one.
func noStep(recipe fs.FS, file string, mode fs.FileMode, groups []string, named *mentions) string {
	executable, end := mode&0o111 != 0, ending(file)
	if file[0] < '0' || file[0] > '9' {
		switch tool := toolOf("0"+file, groups); {
		case executable && tool != "", tool == ToolPuppet && !named.has(file):
			return fmt.Sprintf("it does not run: the name of a step of %s begins with a digit", tool)
		case executable && tool == "" && file[0] != '.' && isProgram(recipe, file) && !named.has(file):
			return "it does not run: the name of a step begins with a digit, and no other file of .salt names it"
		}
		return ""
	}
	switch meant := suggestExtension(end, groups); {
	case !executable && (end == "sh" || isProgram(recipe, file)):
		return "it is not executable, so it is not a step"
	case executable:
		return "it is executable but not a step: it does not begin with #!"
	case meant != "":
		return fmt.Sprintf("files with the extension .%s do not run: did you mean .%s?", end, meant)
	case end != "" && !named.has(file):
		return fmt.Sprintf("it does not run: the server has no tool for files with the extension .%s, and no other file of .salt names it", end)
	}
	return ""
}

// mentions finds files that another file of the recipe names, by name or with a pattern for the extension: that one uses them.
type mentions struct {
	recipe fs.FS
	texts  []string
	looked int
}

// maxMentions limits how many files are searched for; the rest count as named.
const maxMentions = 100

func (m *mentions) has(file string) bool {
	own, err := fs.ReadFile(m.recipe, file)
	if m.looked++; err != nil || m.looked > maxMentions {
		return true
	}
	if m.texts == nil {
		m.texts = TextsOf(m.recipe)
	}
	end := path.Ext(file)
	return slices.ContainsFunc(m.texts, func(text string) bool {
		return text != string(own) && (strings.Contains(text, file) || end != "" && strings.Contains(text, "*"+end))
	})
}

// suggestExtension returns the extension of steps that was probably meant, "" for an unrelated one (.sql and .xml are not steps).
func suggestExtension(end string, groups []string) string {
	for _, known := range append([]string{"sls", "sh", "yml", "yaml", "pp"}, groups...) {
		if end != known && strings.EqualFold(end, known) {
			return known
		}
	}
	return map[string]string{"sl": "sls", "slss": "sls", "lsl": "sls", "ssl": "sls", "salt": "sls", "ymal": "yaml", "yalm": "yaml", "ylm": "yml", "ymll": "yml", "ppp": "pp"}[end]
}

func pointDirs() string {
	var out []string
	for _, p := range hooks.Points() {
		out = append(out, string(p)+".d")
	}
	return strings.Join(out, ", ")
}
