package core

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An argument that asks for what is not built in is none that the function knows, and a value that asks for nothing is
// no reason to go to Salt.
func TestLackingArguments(t *testing.T) {
	f := &Function{Params: []string{"source"}, Unsupported: map[string]string{"verify_ssl": "true", "signature": "", "encoding_errors": "strict"}}
	require.True(t, f.AsksUnsupported("verify_ssl", false), "Salt's default is true")
	for value, asks := range map[any]bool{nil: false, false: false, "": false, "x": true, int64(1): true} {
		require.Equal(t, asks, f.AsksUnsupported("signature", value), "%v", value)
	}
	require.False(t, f.AsksUnsupported("encoding_errors", "strict"))
	require.True(t, f.AsksUnsupported("encoding_errors", "ignore"))
	require.False(t, f.AsksUnsupported("source", "salt://x"))
}
