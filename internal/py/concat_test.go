package py

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Texts that were built from one another share a buffer; none may ever change.
func TestConcatKeepsOlderTexts(t *testing.T) {
	o := NewOps(t.Context(), 1e9, 1<<24)
	add := func(parts ...string) string {
		s, err := o.Concat(parts...)
		require.NoError(t, err)
		return s
	}
	base := add(strings.Repeat("a", 2*longText), "b")
	one := add(base, "1")
	two := add(base, "2") // base is no longer the last result
	three := add(one, "3")
	four := add(three, "4", "5")
	again := add(three, "x")
	own := add(four, four)
	a := strings.Repeat("a", 2*longText) + "b"
	require.Equal(t, []string{a, a + "1", a + "2", a + "13", a + "1345", a + "13x", a + "1345" + a + "1345"},
		[]string{base, one, two, three, four, again, own})
	require.Equal(t, "", add())
	require.Equal(t, "xy", add("x", "y"))
}

// Appending piece by piece takes time and memory by what is added, not by the length of the whole.
func TestConcatAppendsInPlace(t *testing.T) {
	const most = 8 << 20
	o := NewOps(t.Context(), 100_000, most)
	s := ""
	for range 20_000 {
		var err error
		s, err = o.Concat(s, strings.Repeat("a", 100))
		require.NoError(t, err)
	}
	require.Len(t, s, 2_000_000)
}
