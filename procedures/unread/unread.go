// Package unread finds the keys of a configuration that no file reads. It parses the templates of a recipe, and searches programs, playbooks and manifests for
// the names of keys. When in doubt a key counts as read.
//
// It owns nothing and changes nothing: it reads the files of the two commits, and shows nothing of them.
package unread

import (
	"slices"
	"strings"

	"corpus-git/internal/nearest"
	"corpus-git/internal/py"
	"corpus-git/layout"
	"corpus-git/project"
)

// Max is the number of keys that Of returns at most.
const Max = 100

// Of returns the keys that nothing in the sources reads: those of the project's configuration, then those of other sections of the pillar, which the
// sources contain. A section of another project is not looked at.
func Of(cfg *project.Cfg, pillar *py.Dict, in Sources) []project.Unread {
	r := &reader{in: in}
	sections := sectionsOf(pillar)
	if !r.leaves(cfg, sections) {
		return nil
	}
	r.recipe()
	for _, f := range cfg.Files() {
		if f.Template != nil {
			r.jinja(*f.Template)
		}
	}
	if r.leaves(cfg, sections) {
		r.rest()
	}
	var out []project.Unread
	add := func(root string, found []project.Unread) {
		for _, u := range found {
			if u.Near == "" {
				u.Near = r.near(root, u.Keys)
			}
			out = append(out, u)
		}
	}
	add(rootCfg, r.unusedKeys(cfg))
	add(rootPillar, r.unusedSections(sections))
	return out[:min(len(out), Max)]
}

// unusedKeys returns the keys of the project's configuration that nothing reads.
func (r *reader) unusedKeys(cfg *project.Cfg) []project.Unread {
	return cfg.Unread(func(keys []string) project.Used { return r.used(rootCfg, keys) })
}

// leaves reports whether a key is not known to be read.
func (r *reader) leaves(cfg *project.Cfg, sections []py.Item) bool {
	return len(r.unusedKeys(cfg)) > 0 || len(r.unusedSections(sections)) > 0
}

// sectionsOf returns the keys of a pillar that are neither a project's nor corpus-git's.
func sectionsOf(pillar *py.Dict) (out []py.Item) {
	for _, item := range pillar.Items() {
		key, isText := item.Key.(string)
		if !isText || item.Value == nil || key == "redact_show" || key == layout.ProjectsNamespace || strings.HasPrefix(key, layout.ProjectsNamespace+".") {
			continue
		}
		out = append(out, item)
	}
	return out
}

// unusedSections returns the sections that nothing reads, and the keys in sections of which other keys are read.
func (r *reader) unusedSections(sections []py.Item) (out []project.Unread) {
	var walk func(v any, keys []string)
	walk = func(v any, keys []string) {
		d, isDict := v.(*py.Dict)
		switch r.used(rootPillar, keys) {
		case project.UsedNone:
			out = append(out, project.Unread{Keys: keys, Layer: project.LayerPillar, Section: true})
		case project.UsedSelf:
			if isDict {
				for _, item := range d.Items() {
					walk(item.Value, append(slices.Clip(keys), py.Str(item.Key)))
				}
			}
		}
	}
	for _, item := range sections {
		// Salt's modules read settings such as mysql.host by themselves, and the formulas of makina-states theirs.
		if module, _, dotted := strings.Cut(py.Str(item.Key), "."); dotted && r.mentions(module) {
			continue
		}
		walk(item.Value, []string{py.Str(item.Key)})
	}
	return out
}

// near returns the key that was probably meant: one that is read beside it, the same one below data, or the section of projects.
func (r *reader) near(root string, keys []string) string {
	last, n := keys[len(keys)-1], r.reads[root]
	if len(keys) == 1 {
		prefix, rest, _ := strings.Cut(last, ".")
		switch {
		case root == rootCfg && n.at("data").at(last) != nil:
			return "data." + last
		case root == rootPillar && rest != "" && nearest.To(prefix, []string{layout.ProjectsNamespace}) != "":
			return layout.ProjectsNamespace + "." + rest
		}
	}
	for _, k := range keys[:len(keys)-1] {
		n = n.at(k)
	}
	return nearest.To(last, n.names())
}
