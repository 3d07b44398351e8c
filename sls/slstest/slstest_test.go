package slstest_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/sls"
	"corpus-git/sls/run"
	"corpus-git/sls/salt"
	"corpus-git/sls/slstest"
)

var (
	update = flag.Bool("update", false, "record what the real Salt does with each tree")
	differ = flag.Bool("update-builtin", false, "record where the built-in runner differs; say why in the tree's comment")
	only   = flag.String("only", "", "run the trees whose name holds this")
)

func chosen(name string) bool { return strings.Contains(name, *only) }

func TestBuiltin(t *testing.T) {
	o := slstest.Options{Only: chosen, New: func(*testing.T, string) sls.Runner { return &run.Builtin{} }}
	if *differ {
		o.Update = "testdata"
	}
	slstest.Run(t, o)
}

// realSalt is the salt-call that the environment variable SALT_CALL names, or that in PATH. What the trees expect was
// recorded with one release; another one in PATH is left alone.
func realSalt(t *testing.T) string {
	bin, named := os.LookupEnv("SALT_CALL")
	if !named {
		bin = salt.Find(os.Environ())
	}
	if bin == "" {
		t.Skip("salt-call is not installed; set SALT_CALL to the path of one")
	}
	out, err := exec.Command(bin, "--version").Output()
	if named {
		require.NoError(t, err)
		require.Contains(t, string(out), slstest.Release)
	} else if !strings.Contains(string(out), slstest.Release) {
		t.Skipf("the salt-call in PATH is %q (%v), the trees were recorded with %s", strings.TrimSpace(string(out)), err, slstest.Release)
	}
	return bin
}

// TestDriver holds every recorded expectation against a real Salt, in one process for each of two runners.
func TestDriver(t *testing.T) {
	bin := realSalt(t)
	o := slstest.Options{Only: chosen, Runners: 2, New: func(t *testing.T, dir string) sls.Runner {
		s := salt.NewSession(bin, dir)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}}
	if *update {
		o.Update = "testdata"
	}
	slstest.Run(t, o)
}

// TestSaltCall holds some of them against a salt-call of their own: what the one process says is what Salt says.
func TestSaltCall(t *testing.T) {
	bin := realSalt(t)
	some := []string{"cmd_env_list", "directory_clean", "failhard", "grains", "jinja_salt", "makina_functions", "managed_pillar", "managed_template",
		"req_listen", "req_prereq_file", "retry", "umask_global", "yaml_error"}
	slstest.Run(t, slstest.Options{
		Only: func(name string) bool { return slices.Contains(some, name) && chosen(name) },
		New:  func(_ *testing.T, dir string) sls.Runner { return fresh{&salt.Call{Bin: bin, Dir: dir}} },
	})
}

// fresh runs each file as if for the first time: Salt keeps lists of files for 20 seconds.
type fresh struct{ *salt.Call }

func (f fresh) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	if err := os.RemoveAll(f.Dir); err != nil {
		return nil, err
	}
	return f.Call.Apply(ctx, in, sink)
}
