package extends_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/procedures/extends"
)

// merged lays documents over each other, the weakest first.
func merged(t *testing.T, docs ...string) (*py.Dict, error) {
	t.Helper()
	out := py.NewDict()
	for _, text := range docs {
		edits := map[*py.List]saltyaml.Edit{}
		doc, err := saltyaml.Parse("PILLAR.sample", []byte(text), saltyaml.Options{Edits: edits})
		require.NoError(t, err)
		if err := extends.Merge(out, doc.Value.(*py.Dict), edits); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func TestMerge(t *testing.T) {
	for name, c := range map[string]struct {
		docs []string
		want string
		err  string
	}{
		"mappings":            {docs: []string{"a: {b: 1, c: 2}", "a: {c: 3, d: {e: 4}}"}, want: "{'a': {'b': 1, 'c': 3, 'd': {'e': 4}}}"},
		"lists replace":       {docs: []string{"a: [1, 2]", "a: [3]"}, want: "{'a': [3]}"},
		"append":              {docs: []string{"a: {b: [1, x]}", "a: {b: !append [2, x, 2]}"}, want: "{'a': {'b': [1, 'x', 2]}}"},
		"append, twice":       {docs: []string{"a: [1]", "a: !append [2]", "a: !append\n  - 3\n"}, want: "{'a': [1, 2, 3]}"},
		"append to nothing":   {docs: []string{"a: {b: !append [1]}"}, want: "{'a': {'b': [1]}}"},
		"append to null":      {docs: []string{"a: null", "a: !append [1]"}, want: "{'a': [1]}"},
		"remove":              {docs: []string{"a: [1, x, {k: v}]", "a: !remove [x, {k: v}, other]"}, want: "{'a': [1]}"},
		"remove from nothing": {docs: []string{"a: !remove [1]"}, want: "{'a': []}"},
		"replace":             {docs: []string{"a: {b: 1}", "a: !replace [1]"}, want: "{'a': [1]}"},
		"remove a key":        {docs: []string{"makina-projects.a: {x: {y: 1, z: 2}, w: 3}", "makina-projects.b: {x: {y: !remove }, w: !remove null, none: !remove }"}, want: "{'makina-projects.a': {'x': {'z': 2}}, 'makina-projects.b': {'x': {}}}"},
		"remove an item":      {docs: []string{"a: {b: [!remove ]}"}, err: "PILLAR.sample:1:9: !remove without a value removes a key"},
		"of a new mapping":    {docs: []string{"x: 1", "a: {b: {c: !remove [1]}}"}, want: "{'x': 1, 'a': {'b': {'c': []}}}"},
		"an alias":            {docs: []string{"a: [1]\nb: [2]", "a: &l !append [3]\nb: *l"}, want: "{'a': [1, 3], 'b': [2, 3]}"},
		"another section":     {docs: []string{"makina-projects.base: {a: [1]}", "makina-projects.web: {a: !append [2]}", "makina-projects.app: {a: !remove [1]}"}, want: "{'makina-projects.base': {'a': [1]}, 'makina-projects.web': {'a': [1, 2]}, 'makina-projects.app': {'a': [2]}}"},
		"to no list":          {docs: []string{"a: text", "b: 1\na: !append [1]"}, err: "PILLAR.sample:2:4: !append: what the recipes below have there is not a list but str"},
		"from a mapping":      {docs: []string{"a: {}", "a: !remove [1]"}, err: "not a list but dict"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := merged(t, c.docs...)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.Equal(t, fault.Failed, fault.KindOf(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, py.Str(got))
		})
	}
}

// Elsewhere the tags are errors, as in Salt; and they are of lists alone.
func TestTagsOfLists(t *testing.T) {
	_, err := saltyaml.Parse("a.sls", []byte("a: !append [1]"), saltyaml.Options{})
	require.ErrorContains(t, err, "could not determine a constructor for the tag '!append'")
	for text, want := range map[string]string{
		"a: !append x":      "PILLAR.sample:1:4: parse YAML: !append must be followed by a list; found a single value",
		"a: !replace ''":    "PILLAR.sample:1:4: parse YAML: !replace must be followed by a list; found a single value",
		"a: !remove {b: 1}": "PILLAR.sample:1:4: parse YAML: !remove must be followed by a list of the elements to remove, or by nothing to remove the key; found a mapping",
		"a: !prepend [1]":   "could not determine a constructor for the tag '!prepend'",
	} {
		_, err = saltyaml.Parse("PILLAR.sample", []byte(text), saltyaml.Options{Edits: map[*py.List]saltyaml.Edit{}})
		require.ErrorContains(t, err, want, text)
	}
}
