package archive

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A folder comes right before its content, whatever bytes other names have.
func TestCompareTree(t *testing.T) {
	key := func(p string) string { return strings.ReplaceAll(strings.TrimSuffix(p, "/"), "/", "\x00") }
	all := []string{"", "a", "a/", "a/b", "a/b/", "a-b", "a-b/c", "a\x01", "a\x01/x", "a.b", "ab", "b", "a/\xff", "a/b-c", "a/b/c", "\xff"}
	for _, a := range all {
		for _, b := range all {
			require.Equal(t, cmp.Compare(key(a), key(b)), compareTree(a, b), "%q and %q", a, b)
		}
	}
}
