package regex

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// As re of CPython 3.11 does with str and with bytes.
func TestTextAndBytes(t *testing.T) {
	for _, tt := range []struct {
		expr, flags, text string
		asText, asBytes   bool
	}{
		{`a.c`, "", "abc", true, true},
		{`^.$`, "", "é", true, false}, // two bytes
		{`^..$`, "", "é", false, true},
		{`^\w+$`, "", "été", true, false},
		{`É`, "i", "é", true, false},
		{`[é]`, "", "é", true, true},
		{`^b$`, "m", "a\nb\nc", true, true},
		{`a`, "i", "A", true, true},
	} {
		text, why := Text(tt.expr, tt.flags)
		require.Empty(t, why, tt.expr)
		require.Equal(t, tt.asText, text.Matches(tt.text, false), "%s on text %q", tt.expr, tt.text)
		bytes, why := Bytes(tt.expr, tt.flags)
		require.Empty(t, why, tt.expr)
		require.Equal(t, tt.asBytes, bytes.Matches(tt.text, false), "%s on bytes %q", tt.expr, tt.text)
	}
	_, why := Text("(", "")
	require.NotEmpty(t, why)
}

func TestMatchesAtTheStart(t *testing.T) {
	re, why := Text("b", "")
	require.Empty(t, why)
	require.True(t, re.Matches("ab", false))
	require.False(t, re.Matches("ab", true))
}

func TestSubn(t *testing.T) {
	for _, tt := range []struct {
		expr, text, repl string
		literal          bool
		count            int
		want             string
		n                int
	}{
		{`(a)(b)`, "ab ab", `\2\1`, false, 0, "ba ba", 2},
		{`(a)(b)`, "ab ab", `\2\1`, false, 1, "ba ab", 1},
		{`(a)(b)`, "ab", `\2\1`, true, 0, `\2\1`, 1},
		{`é`, "café", "e", false, 0, "cafe", 1},
		{`x`, "abc", "y", false, 0, "abc", 0},
	} {
		re, why := Bytes(tt.expr, "")
		require.Empty(t, why)
		got, n := re.Subn(tt.text, tt.repl, tt.literal, tt.count)
		require.Equal(t, tt.want, got, tt.expr)
		require.Equal(t, tt.n, n, tt.expr)
	}
}
