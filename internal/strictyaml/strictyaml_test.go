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
		"a: x\n":                 "line 1: cannot unmarshal !!str `x` into int",
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
