package inherit

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/layout"
	"corpus-git/procedures/keyplace"
	"corpus-git/project"
)

// explained returns what place makes of the settings of a key: NAME:LINE TAG VALUE, the weakest first.
func explained(t *testing.T, docs []string, key string, all ...project.LayerSetting) (out []string) {
	x := explanation{envs: []string{"prod", "live"}, systems: []string{"Debian"}, with: Explainer{Generated: func(text string) bool { return text == "generated" }}}
	for i, text := range docs {
		edits := map[*py.List]saltyaml.Edit{}
		doc, err := saltyaml.Parse(layout.PillarSample, []byte(text), saltyaml.Options{Edits: edits})
		require.NoError(t, err)
		files := fstest.MapFS{layout.PillarSample: {Data: []byte(text)}}
		x.samples = append(x.samples, sample{keyplace.Recipe{Name: fmt.Sprint("r", i), Files: files}, doc.Value.(*py.Dict), edits})
	}
	for _, s := range x.place(strings.Split(key, ":"), all) {
		text := py.Str(s.Value)
		switch {
		case s.Secret:
			text = "secret"
		case s.Mapping:
			text = "mapping"
		}
		out = append(out, fmt.Sprintf("%s:%d %s%s", s.Recipe, s.Line, s.Tag, text))
	}
	return out
}

func TestExplain(t *testing.T) {
	of := func(layers ...project.Layer) (out []project.LayerSetting) {
		for _, l := range layers {
			out = append(out, project.LayerSetting{Layer: l, Value: string(l)})
		}
		return out
	}
	for name, c := range map[string]struct {
		docs []string
		key  string
		all  []project.LayerSetting
		want []string
	}{
		"each recipe, once":        {docs: []string{"makina-projects.a:\n  data: {x: 1}", "makina-projects.b:\n  data:\n    x: 2"}, key: "data:x", all: of("default", "/etc/a.yaml", "PILLAR.sample", "PILLAR.sample", "pillar"), want: []string{":0 default", ":0 /etc/a.yaml", "r0:2 1", "r1:3 2", ":0 pillar"}},
		"the strongest is a layer": {docs: []string{"makina-projects.a:\n  data: {x: 1}"}, key: "data:x", all: of("default", "PILLAR.sample"), want: []string{":0 default", "r0:2 1"}},
		"no sample sets it":        {docs: []string{"makina-projects.a: {}"}, key: "data:x", all: of("default", "pillar"), want: []string{":0 default", ":0 pillar"}},
		"later sections":           {docs: []string{"makina-projects.a: {x: {y: 1}, z: {y: 1}}\nmakina-projects.b: {x: {y: 2}, z: 3}\nother: {x: {y: 4}}"}, key: "x:y", all: of("PILLAR.sample"), want: []string{"r0:1 2"}},
		"not below a value":        {docs: []string{"makina-projects.a: {x: {y: 1}}\nmakina-projects.b: {x: 3}", "makina-projects.a: {x: {y: 2}}"}, key: "x:y", all: of("PILLAR.sample"), want: []string{"r1:1 2"}},
		"environments in order":    {docs: []string{"makina-projects.a:\n  env_defaults:\n    live: {x: 1}\n    prod: {x: 2}", "makina-projects.a:\n  env_defaults:\n    prod:\n      x: 3"}, key: "data:x", all: of("PILLAR.sample env_defaults", "PILLAR.sample env_defaults"), want: []string{"r0:4 2", "r1:4 3", "r0:3 1"}},
		"of the system":            {docs: []string{"makina-projects.a:\n  os_defaults:\n    Arch: {x: 1}\n    Debian: {x: 2}"}, key: "x", all: of("PILLAR.sample os_defaults"), want: []string{"r0:4 2"}},
		"edits":                    {docs: []string{"makina-projects.a: {x: [1]}", "makina-projects.b: {x: !append [2]}"}, key: "x", all: of("PILLAR.sample"), want: []string{"r0:1 [1]", "r1:1 !append [2]"}},
		"a removed key":            {docs: []string{"makina-projects.a:\n  x: {y: 1}", "makina-projects.b:\n  x: !remove"}, key: "x:y", all: of("default", "pillar"), want: []string{":0 default", "r0:2 1", "r1:2 !remove None", ":0 pillar"}},
		"a removed key alone":      {docs: []string{"makina-projects.a: {x: !remove }"}, key: "x", all: of("default"), want: []string{":0 default", "r0:1 !remove None"}},
		"a mapping":                {docs: []string{"makina-projects.a: {x: {}}"}, key: "x", all: of("PILLAR.sample"), want: []string{"r0:1 mapping"}},
		"generated":                {docs: []string{"makina-projects.a: {x: [{a: generated}]}", "makina-projects.a: {x: [public]}"}, key: "x", all: of("PILLAR.sample"), want: []string{"r0:1 secret", "r1:1 ['public']"}},
		"numbers as keys":          {docs: []string{"makina-projects.a: {x: {8080: 1}}"}, key: "x:8080", all: of("PILLAR.sample"), want: []string{"r0:1 1"}},
		"the documents themselves": {docs: []string{"a: {b: 1}", "a:\n  b: 2"}, key: "sls_default_pillar:a:b", all: of("PILLAR.sample"), want: []string{"r0:1 1", "r1:2 2"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, explained(t, c.docs, c.key, c.all...)) })
	}
}

// What is explained is what the files say, whatever the merge removes.
func TestUnmerged(t *testing.T) {
	edits := map[*py.List]saltyaml.Edit{}
	doc, err := saltyaml.Parse(layout.PillarSample, []byte("makina-projects.a: {x: {y: !remove , z: 1}}"), saltyaml.Options{Edits: edits})
	require.NoError(t, err)
	d := doc.Value.(*py.Dict)
	kept := unmerged(d, edits)
	section, _ := d.GetStr("makina-projects.a")
	x, _ := section.(*py.Dict).GetStr("x")
	x.(*py.Dict).Delete("y")
	require.Equal(t, "{'makina-projects.a': {'x': {'y': [], 'z': 1}}}", py.Str(kept))
}
