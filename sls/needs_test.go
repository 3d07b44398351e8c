package sls

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
)

// TestLackingFiltersGoToSalt: what templates can do in Salt and not here is no error of the template, wherever it stands.
func TestLackingFiltersGoToSalt(t *testing.T) {
	for src, want := range map[string]string{
		"a:\n  test.nop: []\n# {{ {'a': 1}|xml }}\n":                        "the filter 'xml'",
		"a:\n  test.nop: []\n# {% if false %}{{ 'sh'|which }}{% endif %}\n": "the filter 'which'",
		"a:\n  test.nop: []\n# {{ ['a']|map('json_query', 'a')|list }}\n":   "the filter 'json_query'",
		"a:\n  test.nop: []\n# {{ [1, 2]|random_shuffle(seed=1) }}\n":       "the argument seed of random_sample and random_shuffle",
		"a:\n  test.nop: []\n# {{ ifelse('G@os:Debian', 1, 2) }}\n":         "a target as a condition of ifelse",
		"a:\n  test.nop: []\n# {{ lipsum() }}\n":                            "the function lipsum",
	} {
		in := input(t, map[string]string{"app.sls": src})
		in.Pillar, in.Grains = py.NewDict(), py.NewDict()
		_, err := Compile(t.Context(), in)
		n, ok := NeedOf(err)
		require.True(t, ok, "%s: %v", src, err)
		require.Equal(t, want, n.What)
		require.Equal(t, 3, n.Line)
	}
	_, err := Compile(t.Context(), input(t, map[string]string{"app.sls": "# {{ 'x'|nosuch }}\na:\n  test.nop: []\n"}))
	require.ErrorContains(t, err, "No filter named 'nosuch'")
	_, ok := NeedOf(err)
	require.False(t, ok, "Salt has no such filter either")
}
