package py

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The expected results are those of shlex.split of Python 3.11.
func TestShlexSplit(t *testing.T) {
	for _, tt := range []struct {
		text  string
		want  []string
		fails string
	}{
		{"", nil, ""},
		{" a  b\tc\n", []string{"a", "b", "c"}, ""},
		{`a'b c'd "e f"`, []string{"ab cd", "e f"}, ""},
		{`'' ""`, []string{"", ""}, ""},
		{`a\ b "c\"d\e" 'f\g'`, []string{"a b", `c"d\e`, `f\g`}, ""},
		{`a 'b`, nil, "No closing quotation"},
		{`a\`, nil, "No escaped character"},
	} {
		got, err := ShlexSplit(tt.text)
		if tt.fails != "" {
			require.EqualError(t, err, "ValueError: "+tt.fails)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tt.want, got, tt.text)
	}
}
