package slstest_test

import (
	"flag"
	"os"
	"testing"

	"corpus-git/sls"
	"corpus-git/sls/slstest"
)

var (
	update = flag.Bool("update", false, "record what the real Salt does with each tree")
	differ = flag.Bool("update-builtin", false, "record where the built-in runner differs; say why in the tree's comment")
	only   = flag.String("only", "", "run the trees whose name holds this")
)

func TestBuiltin(t *testing.T) {
	o := slstest.Options{Only: *only, New: func(*testing.T, string) sls.Runner { return &sls.Builtin{} }}
	if *differ {
		o.Update = "testdata"
	}
	slstest.Run(t, o)
}

// TestSaltCall holds the recorded expectations against a real Salt: SALT_CALL, or salt-call in PATH.
func TestSaltCall(t *testing.T) {
	bin := os.Getenv("SALT_CALL")
	if bin == "" {
		bin = sls.FindSaltCall(os.Environ())
	}
	if bin == "" {
		t.Skip("salt-call is not installed; set SALT_CALL to the path of one")
	}
	o := slstest.Options{Only: *only, New: func(_ *testing.T, dir string) sls.Runner { return &sls.SaltCall{Bin: bin, Dir: dir} }}
	if *update {
		o.Update = "testdata"
	}
	slstest.Run(t, o)
}
