package redact

import (
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
)

// ShowKey is the pillar's own list of key paths whose values may be shown.
const ShowKey = "redact_show"

// sectionPrefix begins the pillar key of a project's own configuration.
const sectionPrefix = "makina-projects."

// Secrets lists the values of a pillar that must be hidden: every string in it, at any depth, except short ones, and those that redact_show
// names, at the pillar's top or in a project's section, and without those that NotIn removes. A path of redact_show names a value or everything below it, from the top or from
// the project's section: "data.domain" shows makina-projects.app's data.domain.
func Secrets(pillar *py.Dict) []Secret {
	w := walker{seen: map[any]bool{}}
	w.readAllShow(pillar)
	w.walk("", pillar, 0)
	return w.out
}

// Shown returns the values that redact_show of a pillar names.
func Shown(pillar *py.Dict) map[string]bool {
	w := walker{seen: map[any]bool{}}
	w.readAllShow(pillar)
	secret := walker{seen: map[any]bool{}, show: w.show}
	secret.walk("", pillar, 0)
	w.show = nil
	w.walk("", pillar, 0)
	hidden := map[string]bool{}
	for _, s := range secret.out {
		hidden[s.Value] = true
	}
	out := map[string]bool{}
	for _, s := range w.out {
		if !hidden[s.Value] {
			out[s.Value] = true
		}
	}
	return out
}

// NotIn removes the secrets of a pillar that occur in one of the texts of code: PILLAR.sample and the tracked files of .salt, which everybody who can push code can read. They are
// read only if there is a secret of a pillar.
func NotIn(secrets []Secret, texts func() []string) []Secret {
	ofPillar := func(s Secret) bool { return s.Whose == "" }
	if !slices.ContainsFunc(secrets, ofPillar) {
		return slices.Clone(secrets)
	}
	code := texts()
	return slices.DeleteFunc(slices.Clone(secrets), func(s Secret) bool {
		return ofPillar(s) && slices.ContainsFunc(code, func(c string) bool { return strings.Contains(c, s.Value) })
	})
}

// Hides reports whether a pillar has a secret under a key of a project's configuration: a text of any length that redact_show does not
// name, at the key, below it or above it. path is as a person types it: "db.password" may mean data's; env_defaults and os_defaults are
// searched too.
func Hides(pillar *py.Dict, name, path string) bool {
	w := walker{every: true, seen: map[any]bool{}}
	w.readShow(pillar)
	section := sectionPrefix + name
	if v, _ := pillar.GetStr(section); v != nil {
		if d, ok := v.(*py.Dict); ok {
			w.readShow(d)
		}
	}
	w.walk("", pillar, 0)
	for _, s := range w.out {
		at, ok := strings.CutPrefix(s.Label, section+".")
		if !ok {
			continue
		}
		switch of, rest, _ := strings.Cut(at, "."); of {
		case "env_defaults":
			_, rest, _ = strings.Cut(rest, ".")
			at = "data." + rest
		case "os_defaults":
			_, at, _ = strings.Cut(rest, ".")
		}
		for _, key := range []string{path, "data." + path} {
			if under(at, key) || under(key, at) {
				return true
			}
		}
	}
	return false
}

type walker struct {
	// every takes values of any length.
	every bool
	show  []string
	out   []Secret
	seen  map[any]bool
}

// readAllShow reads redact_show of a pillar's top and of its projects' sections.
func (w *walker) readAllShow(pillar *py.Dict) {
	w.readShow(pillar)
	pillar.Range(func(k, v any) bool {
		if s, ok := k.(string); ok && strings.HasPrefix(s, sectionPrefix) {
			if d, ok := v.(*py.Dict); ok {
				w.readShow(d)
			}
		}
		return true
	})
}

func (w *walker) readShow(d *py.Dict) {
	v, _ := d.GetStr(ShowKey)
	switch v := v.(type) {
	case string:
		w.show = append(w.show, v)
	case *py.List:
		for _, i := range v.Items() {
			if s, ok := i.(string); ok {
				w.show = append(w.show, s)
			}
		}
	}
}

// maxDepth is greater than that of any pillar from the YAML loader.
const maxDepth = 1000

func (w *walker) walk(path string, v any, depth int) {
	if depth > maxDepth || w.shown(path) {
		return
	}
	sub := func(k string) string {
		if path == "" {
			return k
		}
		return path + "." + k
	}
	switch v := v.(type) {
	case string:
		w.leaf(path, v)
	case *py.Dict:
		if w.seen[v] {
			return // an alias: its values are found at another path
		}
		w.seen[v] = true
		v.Range(func(k, x any) bool {
			if s, ok := k.(string); !ok || s != ShowKey {
				w.walk(sub(py.Str(k)), x, depth+1)
			}
			return true
		})
	case *py.List:
		if w.seen[v] {
			return
		}
		w.seen[v] = true
		for i, x := range v.Items() {
			w.walk(sub(strconv.Itoa(i)), x, depth+1)
		}
	case py.Tuple:
		for i, x := range v {
			w.walk(sub(strconv.Itoa(i)), x, depth+1)
		}
	}
}

func (w *walker) leaf(path, v string) {
	if w.every {
		w.out = append(w.out, Secret{Label: path, Value: v})
		return
	}
	if len(v) < MinBytes {
		return
	}
	w.out = append(w.out, Secret{Label: path, Value: v})
}

func (w *walker) shown(path string) bool {
	for _, s := range w.show {
		if under(path, s) {
			return true
		}
		if rest, ok := strings.CutPrefix(path, sectionPrefix); ok {
			// The project's name has no dot: what follows it is the path in its section.
			if _, rel, ok := strings.Cut(rest, "."); ok && under(rel, s) {
				return true
			}
		}
	}
	return false
}

func under(path, prefix string) bool {
	return prefix != "" && (path == prefix || strings.HasPrefix(path, prefix+"."))
}
