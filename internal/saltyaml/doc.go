// Package saltyaml reads and writes YAML as Salt does: YAML 1.1 with PyYAML's resolver and the changes that
// Salt's own loader makes to it (salt.utils.yamlloader).
//
// It owns the rules that turn a scalar's text into a value, tags, merge keys, duplicate keys, limits, and the
// place (line and column) of every value; and a dumper whose output equals PyYAML's safe_dump. Nodes come from
// go.yaml.in/yaml; its own resolver (YAML 1.2) is not used.
//
// It never touches: files, templates, Salt's state tree. Values are those of internal/py; a value that is
// referred to twice by an alias is one shared value, as in Python.
//
// Invariants: what Parse returns has no cycle, is at most Options.MaxDepth deep, and costs no more to walk, aliases followed, than a fixed
// multiple of the input's size. A private parse never puts content into an error. The package has no state; everything may be used by
// several goroutines.
//
// What Salt accepts and this package refuses, always with an error: a sequence that contains itself, !!set and
// !!binary (there is no such value in internal/py).
//
// Testdata is made by testdata/generate.py, which runs the real PyYAML with Salt's rules.
package saltyaml
