package salt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/sls/salt"
)

// BenchmarkSteps is a deployment of 5 steps and 100 states (80 file.managed, 20 cmd.run): one salt-call for each step,
// and one Salt process for all. cpu-s/op is what all processes used; it holds on a busy machine.
func BenchmarkSteps(b *testing.B) {
	bin := saltCall(b)
	for name, make := range map[string]func(dir string) (sls.Runner, func() error){
		"salt-call": func(dir string) (sls.Runner, func() error) {
			return &salt.Call{Bin: bin, Dir: dir}, func() error { return nil }
		},
		"driver": func(dir string) (sls.Runner, func() error) {
			s := salt.NewSession(bin, dir)
			return s, s.Close
		},
	} {
		b.Run(name, func(b *testing.B) {
			before := cpu(b)
			for b.Loop() {
				deployOnce(b, make)
			}
			b.ReportMetric((cpu(b)-before).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

func deployOnce(b *testing.B, make func(dir string) (sls.Runner, func() error)) {
	base := b.TempDir()
	recipe := filepath.Join(base, "recipe")
	require.NoError(b, os.Mkdir(recipe, 0o755))
	for step := range 5 {
		var text strings.Builder
		for i := range 16 {
			fmt.Fprintf(&text, "%s/out/%d_%d:\n  file.managed:\n    - makedirs: true\n    - contents: \"{{ opts.ms_project.name }} %d\"\n", base, step, i, i)
		}
		for i := range 4 {
			fmt.Fprintf(&text, "run %d:\n  cmd.run:\n    - name: echo %d\n", i, i)
		}
		require.NoError(b, os.WriteFile(fmt.Sprintf("%s/s%d.sls", recipe, step), []byte(text.String()), 0o644))
	}
	roots := fileroot.Roots{{FS: os.DirFS(recipe), Dir: recipe, Mount: "makina-projects/app", Label: ".salt"}}
	r, end := make(filepath.Join(base, "run"))
	for step := range 5 {
		res, err := r.Apply(b.Context(), &sls.Input{SLS: fmt.Sprintf("makina-projects.app.s%d", step), Roots: roots,
			Host: host.New(execx.OS{}), Pillar: py.NewDict(), Grains: py.NewDict("id", "box"), Cfg: py.NewDict("name", "app")}, sls.Discard{})
		require.NoError(b, err)
		require.True(b, res.OK())
		require.Len(b, res.States, 20)
	}
	require.NoError(b, end())
}

// cpu is what ended children used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
