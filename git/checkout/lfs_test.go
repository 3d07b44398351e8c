package checkout

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsLFS(t *testing.T) {
	oid := "oid sha256:" + strings.Repeat("0a", 32) + "\n"
	v := "version https://git-lfs.github.com/spec/v1\n"
	for text, want := range map[string]bool{
		v + oid + "size 12345\n": true,
		v + oid + "size 0":       true,
		v + "ext-0-foo sha256:" + strings.Repeat("ab", 32) + "\n" + oid + "size 1\n": true,
		"version https://hawser.github.com/spec/v1\n" + oid + "size 1\n":             true,
		v + "size 1\n" + oid:              false, // out of order
		v + oid:                           false,
		v + oid + "size -1\n":             false,
		v + oid + "size x\n":              false,
		v + oid + "size 1\n\nmore text\n": false,
		v + "oid sha256:00\nsize 1\n":     false,
		"version 2\n" + oid + "size 1\n":  false,
		"":                                false,
		v + oid + "size 1\n" + strings.Repeat("z x\n", 300):         false,
		"A text about version https://git-lfs.github.com/spec/v1\n": false,
	} {
		require.Equal(t, want, isLFS([]byte(text)), "%q", text)
	}
}
