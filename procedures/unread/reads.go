package unread

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/sls/jinja"
)

// The roots of what is read: the project's configuration, and the pillar as a whole.
const (
	rootCfg    = "cfg"
	rootPillar = "pillar"
)

// node is a value that something reads. A nil node is a value that nothing reads.
type node struct {
	below map[string]*node
	// whole: it is read with everything below it.
	whole bool
}

// at returns the node below a key.
func (n *node) at(key string) *node {
	if n == nil {
		return nil
	}
	return n.below[key]
}

// names returns the keys below it that are read.
func (n *node) names() []string {
	if n == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(n.below))
}

// add adds what is read at a path.
func (r *reader) add(root string, keys []string, whole bool) {
	if section := layout.ProjectsNamespace + "." + string(r.in.Name); root == rootPillar && len(keys) > 0 && keys[0] == section {
		root, keys = rootCfg, keys[1:]
	}
	if r.reads == nil {
		r.reads = map[string]*node{rootCfg: {}, rootPillar: {}}
	}
	n := r.reads[root]
	for _, k := range keys {
		if n.below == nil {
			n.below = map[string]*node{}
		}
		if n.below[k] == nil {
			n.below[k] = &node{}
		}
		n = n.below[k]
	}
	n.whole = n.whole || whole
}

// used returns how much of a value is read.
func (r *reader) used(root string, keys []string) project.Used {
	n := r.reads[root]
	for i, k := range keys {
		if n != nil && n.whole || r.names(k) && (root != rootCfg || i > 0 || k != "data") {
			return project.UsedAll
		}
		n = n.at(k)
	}
	switch {
	case n == nil:
		return project.UsedNone
	case n.whole:
		return project.UsedAll
	}
	return project.UsedSelf
}

// names reports whether a key is named where it cannot be said what is read: in a program, or as an attribute of an unknown value.
func (r *reader) names(key string) bool {
	if !strings.ContainsFunc(key, notWord) {
		return r.words[key]
	}
	return slices.ContainsFunc(r.texts, func(text string) bool { return strings.Contains(text, key) })
}

// mentions reports whether any file of the recipe contains a text.
func (r *reader) mentions(s string) bool {
	has := func(text string) bool { return strings.Contains(text, s) }
	return slices.ContainsFunc(r.texts, has) || slices.ContainsFunc(r.templates, has)
}

// program adds a text whose words may be names of keys.
func (r *reader) program(text string) {
	r.texts = append(r.texts, text)
	for w := range strings.FieldsFuncSeq(text, notWord) {
		r.word(w)
	}
}

func (r *reader) word(w string) {
	if r.words == nil {
		r.words = map[string]bool{}
	}
	r.words[w] = true
}

func notWord(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }

// template adds a text of the recipe, and what it reads if it is a template.
func (r *reader) template(text string) {
	r.templates = append(r.templates, text)
	r.jinja(text)
}

// jinja adds what a text reads if it is a template.
func (r *reader) jinja(text string) {
	if !strings.Contains(text, "{{") && !strings.Contains(text, "{%") {
		return
	}
	reads, err := jinja.FindReads(text, jinja.ReadOptions{Formats: []string{"yaml", "json", "text"}, Called: r.called})
	if err != nil {
		r.program(text)
		return
	}
	for _, read := range reads {
		switch {
		case read.Name == "cfg":
			r.add(rootCfg, read.Path, read.Whole)
		case read.Name == "pillar":
			r.add(rootPillar, read.Path, read.Whole)
		case read.Name == "opts" && len(read.Path) > 0 && read.Path[0] == "ms_project":
			r.add(rootCfg, read.Path[1:], read.Whole)
		case read.Name == "opts" && len(read.Path) == 0:
			r.add(rootCfg, nil, read.Whole)
			r.add(rootPillar, nil, read.Whole)
		case !slices.Contains([]string{"salt", "grains", "loop"}, read.Name):
			for _, k := range read.Path {
				r.word(k)
			}
		}
	}
}

// called returns what the functions of Salt return that read the configuration and the pillar. The texts that other functions get may be names of keys.
func (r *reader) called(name string, path []string, args []any) (out jinja.Read, ok bool) {
	if name != "salt" {
		return out, false
	}
	text := func(i int) string {
		if i >= len(args) {
			return ""
		}
		s, _ := args[i].(string)
		return s
	}
	switch strings.Join(path, ".") {
	case "pillar.get", "pillar.fetch", "pillar.item", "config.get", "config.option":
		if text(0) != "" {
			return jinja.Read{Name: rootPillar, Path: strings.Split(text(0), ":")}, true
		}
	case "pillar.items", "pillar.data", "pillar.raw":
		r.add(rootPillar, nil, true)
	case "mc_project.get_configuration":
		return jinja.Read{Name: rootCfg}, true
	case "mc_project.get_configuration_item":
		if key := text(1); key != "" {
			r.word(key)
			return out, false
		}
		r.add(rootCfg, nil, true)
	}
	for i := range args {
		for w := range strings.FieldsFuncSeq(text(i), notWord) {
			r.word(w)
		}
	}
	return out, false
}

// reference adds the {key} references in values, which are keys of data, or else of cfg.
func (r *reader) reference(text string) {
	for _, key := range referenced.FindAllString(text, -1) {
		keys := strings.Split(strings.Trim(key, "{}"), ".")
		r.add(rootCfg, append([]string{"data"}, keys...), true)
		r.add(rootCfg, keys, true)
	}
}
