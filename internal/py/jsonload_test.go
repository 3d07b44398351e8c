package py

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The expected results are those of json.loads of Python 3.11.
func TestFromJSON(t *testing.T) {
	for _, tt := range []struct{ text, want, fails string }{
		{`{"a": [1, -2.5e3, true, null], "b": {}, "a": 0}`, "{'a': 0, 'b': {}}", ""},
		{` [ ] `, "[]", ""},
		{`"\u00e9\ud83d\ude00\n\/"`, `'é😀\n/'`, ""},
		{`"\ud83dx"`, "'\ufffdx'", ""},
		{`"\ud83d\u0041"`, "'\ufffdA'", ""},
		{`""`, "''", ""},
		{"[NaN, Infinity, -Infinity]", "[nan, inf, -inf]", ""},
		{"-0", "0", ""},
		{"1.5", "1.5", ""},
		{"123456789012345678901", "123456789012345678901", ""},
		{"", "", "Expecting value: line 1 column 1 (char 0)"},
		{"{", "", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"},
		{"{\"a\"\n 1}", "", "Expecting ':' delimiter: line 2 column 2 (char 6)"},
		{`{"é": 1 2}`, "", "Expecting ',' delimiter: line 1 column 9 (char 8)"},
		{`{"a": 1,}`, "", "Expecting property name enclosed in double quotes: line 1 column 9 (char 8)"},
		{`[1,]`, "", "Expecting value: line 1 column 4 (char 3)"},
		{`[1`, "", "Expecting ',' delimiter: line 1 column 3 (char 2)"},
		{`01`, "", "Extra data: line 1 column 2 (char 1)"},
		{`1.`, "", "Extra data: line 1 column 2 (char 1)"},
		{`1e`, "", "Extra data: line 1 column 2 (char 1)"},
		{`-`, "", "Expecting value: line 1 column 1 (char 0)"},
		{`"abc`, "", "Unterminated string starting at: line 1 column 1 (char 0)"},
		{`["abc\`, "", "Unterminated string starting at: line 1 column 2 (char 1)"},
		{`"\x"`, "", `Invalid \escape: line 1 column 2 (char 1)`},
		{`"\u12g4"`, "", `Invalid \uXXXX escape: line 1 column 3 (char 2)`},
		{`"\u12`, "", `Invalid \uXXXX escape: line 1 column 3 (char 2)`},
		{"\"a\tb\"", "", "Invalid control character at: line 1 column 3 (char 2)"},
		{"\ufeff1", "", "Unexpected UTF-8 BOM (decode using utf-8-sig): line 1 column 1 (char 0)"},
	} {
		got, err := FromJSON(tt.text)
		if tt.fails != "" {
			require.ErrorContains(t, err, tt.fails, tt.text)
			continue
		}
		require.NoError(t, err, tt.text)
		require.Equal(t, tt.want, Repr(got), tt.text)
	}
	v, err := LoadJSON("\"a\tb\x01\"", false)
	require.NoError(t, err)
	require.Equal(t, "a\tb\x01", v)
}
