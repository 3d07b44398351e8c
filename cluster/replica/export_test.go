package replica

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ForgedForTest returns a batch with a file of any name.
func ForgedForTest(t *testing.T, name string) []byte {
	t.Helper()
	var out bytes.Buffer
	b := NewBatch(&out)
	require.NoError(t, b.add(record{Kind: whole, Name: Text(name), Mode: 0o644, Size: 1}, strings.NewReader("x")))
	require.NoError(t, b.Close())
	return out.Bytes()
}
