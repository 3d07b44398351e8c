package tree

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
)

// A tree that is accepted has valid names, in order.
func FuzzTree(f *testing.F) {
	h := strings.Repeat("x", 20)
	f.Add([]byte("100644 a\x00" + h + "40000 b\x00" + h))
	f.Add([]byte("120000 .gitmodules\x00" + h))
	f.Add([]byte("160000 a\x00" + h + "100664 b\x00" + h))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := Parse(plumbing.ZeroHash, data)
		if err != nil {
			require.Equal(t, fault.Refused, fault.KindOf(err))
			return
		}
		seen := map[string]bool{}
		for i, it := range items {
			require.NoError(t, CheckName(it.Name))
			require.False(t, seen[it.Name])
			seen[it.Name] = true
			require.True(t, i == 0 || before(&items[i-1], &it))
		}
	})
}

func TestErrNameIsPlain(t *testing.T) {
	require.True(t, errors.Is(CheckName(".."), errName))
	require.NoError(t, CheckName(".github"))
	require.NoError(t, CheckName("git~2"))
}
