package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/compile"
	"corpus-git/sls/grains"
)

// BenchmarkCompile compiles a step of one command, with the grains of this machine.
func BenchmarkCompile(b *testing.B) {
	in := input(b, map[string]string{"app.sls": "step:\n  cmd.run:\n    - name: mkdir -p build\n    - cwd: {{opts.ms_project.project_root}}\n"})
	in.Mode, in.Cfg, in.Grains = sls.Live, py.NewDict("project_root", "/x"), grains.Collect(grains.Source{})
	b.ReportAllocs()
	for b.Loop() {
		_, err := compile.SLS(b.Context(), in, nil)
		require.NoError(b, err)
	}
}
