package attributes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWildmatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.c", "a.c", true}, {"*.c", "a.h", false}, {"a/*", "a/b", true}, {"a/*", "a/b/c", false}, {"a/**", "a/b/c", true}, {"a/**", "a", false},
		{"**/b", "b", true}, {"**/b", "x/y/b", true}, {"a/**/b", "a/b", true}, {"a/**/b", "a/x/y/b", true}, {"a/**/b", "a/x/c", false},
		{"[!a]x", "bx", true}, {"[!a]x", "ax", false}, {"[", "[", false}, {"[a", "a", false}, {"??", "é", true},
		{strings.Repeat("**/x/", 50) + "y", strings.Repeat("x/", 400) + "z", false},
	} {
		require.Equal(t, c.want, wildmatch(c.pattern, c.name), "%q %q", c.pattern, c.name)
	}
}
