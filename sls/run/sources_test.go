package run

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/sls/fileroot"
)

// The first root that has a file wins, file by file; templates see cfg.
func TestSourcesOverSeveralRoots(t *testing.T) {
	in := input(t, nil)
	in.Roots = fileroot.Roots{
		{Mount: "makina-projects/app", FS: fstest.MapFS{
			"step.sls": {Data: []byte(`tree:
  file.recurse:
    - name: {{ cfg.data.dir }}/tree
    - source: salt://shared/tree
    - template: jinja
one:
  file.managed:
    - name: {{ cfg.data.dir }}/one
    - source:
      - salt://makina-projects/app/files/{{ grains.os }}
      - salt://makina-projects/app/files/one
    - template: jinja
    - context: {extra: 7}
`)},
			"files/one": {Data: []byte("{{ cfg.name }} {{ opts.ms_project.name }} {{ extra }} {{ pillar.list[0] }} {{ salt['test.echo']('x') }}\n")},
		}},
		{FS: fstest.MapFS{"shared/tree/a": {Data: []byte("first {{ cfg.name }}\n")}}},
		{FS: fstest.MapFS{
			"shared/tree/a":   {Data: []byte("second\n")},
			"shared/tree/d/b": {Data: []byte("second {{ cfg.name }}\n")},
			// Hidden: below the mount only the mount is seen.
			"makina-projects/app/files/Debian": {Data: []byte("an old checkout\n")},
		}},
	}
	in.SLS = "makina-projects.app.step"
	res, _ := apply(t, in)
	require.Nil(t, res.Failed(), "%+v", res.Failed())
	d, _ := in.Cfg.GetStr("data")
	dir, _ := d.(interface{ GetStr(string) (any, bool) }).GetStr("dir")
	for name, want := range map[string]string{"tree/a": "first app\n", "tree/d/b": "second app\n", "one": "app app 7 a x\n"} {
		b, err := os.ReadFile(filepath.Join(dir.(string), name))
		require.NoError(t, err)
		require.Equal(t, want, string(b), name)
	}
}
