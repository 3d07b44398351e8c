package state

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/state/statetest"
)

func TestWrongArgumentTypesFailTheState(t *testing.T) {
	table := All()
	for _, name := range table.Names() {
		if !strings.HasPrefix(name, "file.") && !strings.HasPrefix(name, "test.") && !strings.HasPrefix(name, "cmd.") {
			continue // those would run tools
		}
		f, _ := table.Lookup(name)
		for _, v := range []any{py.NewDict("a", int64(1)), py.NewList(int64(1), py.NewDict()), int64(-1), nil, "x"} {
			args := []any{}
			for _, p := range f.Params {
				if p != "name" && p != "timeout" {
					args = append(args, p, v)
				}
			}
			require.NotPanics(t, func() {
				c := statetest.CallFor(t, "", name, filepath.Join(t.TempDir(), "x"), args...)
				c.Test = true
				f.Run(c)
			}, "%s with %T", name, v)
		}
	}
}

// No function both takes an argument and lacks it.
func TestArgumentsAreTakenOrLacking(t *testing.T) {
	for _, n := range All().Names() {
		f, _ := All().Lookup(n)
		for l := range f.Lacks {
			require.False(t, f.Takes(l), "%s both takes and lacks %s", n, l)
		}
	}
}
