package recipe

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestUndoLine(t *testing.T) {
	for text, want := range map[string]int{
		"a:\n  cmd.run:\n    - name: x\n    - undo: y\n":        4,
		"a:\n  cmd.run:\n    - 'undo':   y\n":                   3,
		"a:\n  cmd.run:\n    - name: undo\n":                    0,
		"a:\n  file.managed:\n    - undo_it: x\n    # - undo\n": 0,
		"": 0,
	} {
		require.Equal(t, want, UndoLine(fstest.MapFS{"010_a.sls": {Data: []byte(text)}}, "010_a.sls"), text)
	}
	require.Zero(t, UndoLine(fstest.MapFS{}, "010_a.sls"))
}
