package strictyaml_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/strictyaml"
)

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"a: 1\n":                 "",
		"a: 1\nb: 2\nc: 3\n":     "line 2: unknown key b; line 3: unknown key c",
		"a: x\n":                 "line 1: `x` is a text, where a number is expected",
		"a: [\n":                 "line 1: did not find expected node content",
		"a: 1\n---\nb: second\n": "",
	} {
		var into struct{ A int }
		err := strictyaml.Decode([]byte(text), &into)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.EqualError(t, err, want, text)
	}
}

// Values of another kind are named in words for people, without Go's types.
func TestKinds(t *testing.T) {
	for text, want := range map[string]string{
		"list: x\n":      "line 1: `x` is a text, where a list is expected",
		"list: {a: b}\n": "line 1: a mapping, where a list is expected",
		"map: [1]\n":     "line 1: a list, where a mapping is expected",
		"items:\n- 3\n":  "line 2: `3` is a number, where a mapping is expected",
		"on: maybe\n":    "line 1: `maybe` is a text, where true or false is expected",
		"text: [a]\n":    "line 1: a list, where a text is expected",
		"\ntext: `\n":    "line 2: found character that cannot start any token",
	} {
		var into struct {
			List  []string
			Map   map[string]struct{ A int }
			Items []struct{ A int }
			On    bool
			Text  string
		}
		require.EqualError(t, strictyaml.Decode([]byte(text), &into), want, text)
	}
}

func TestLines(t *testing.T) {
	text := "a: 1\nstages:\n- {name: x}\n- name: y\n  wait_for:\n  - tcp: a\n  - tcp: b\nb: &b\n  c: 1\nd: *b\n"
	for _, c := range []struct {
		path []any
		want int
	}{
		{nil, 0}, {[]any{"a"}, 1}, {[]any{"stages"}, 2}, {[]any{"stages", 0}, 3}, {[]any{"stages", 0, "none"}, 3}, {[]any{"stages", 1, "wait_for", 1}, 7}, {[]any{"stages", 9}, 2}, {[]any{"none"}, 0}, {[]any{"d", "c"}, 9},
		{[]any{"a", "b"}, 1},
	} {
		require.Equal(t, c.want, strictyaml.Parse([]byte(text)).Of(c.path...), c.path)
	}
	require.Zero(t, strictyaml.Parse(nil).Of("a"))
	require.Zero(t, strictyaml.Parse([]byte("a: [")).Of("a"))
}
