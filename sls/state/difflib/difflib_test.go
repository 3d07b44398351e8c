package difflib

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/sls/state/core"
)

func TestDiffIsPythons(t *testing.T) {
	// Recorded from difflib of CPython 3.11.
	a := core.SplitKeep("a\nb\nc\nd\ne\nf\ng\nh\n")
	b := core.SplitKeep("a\nb\nC\nd\ne\nf\ng\nnew\nh\n")
	require.Equal(t, "--- \n+++ \n@@ -1,8 +1,9 @@\n a\n b\n-c\n+C\n d\n e\n f\n g\n+new\n h\n", strings.Join(Unified(a, b, "\n"), ""))
}
