package recipe_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/procedures/recipe"
)

// files makes files; a name that begins with + is executable.
func files(names ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for _, f := range names {
		mode := fs.FileMode(0o644)
		if name, ok := strings.CutPrefix(f, "+"); ok {
			f, mode = name, 0o755
		}
		m[f] = &fstest.MapFile{Mode: mode, Data: []byte("x")}
	}
	return m
}

func stepNames(t *testing.T, list []recipe.Step, err error) []string {
	t.Helper()
	require.NoError(t, err)
	var out []string
	for _, s := range list {
		out = append(out, s.Name)
	}
	return out
}

func TestStepsRunInByteOrder(t *testing.T) {
	r := files("100_b.sls", "0_1.sls", "0100_a.sls", "000_dirs.sls", "a.sls", "a-b.sls", "task_backup.sls", "archive.sls", "fixperms.sls",
		"rollback.sls", "notify.sls", ".sls", "PILLAR.sample", "README.md", "files/x.sls", "+050_script.sh", "060_not_executable.sh", "+lib.sh")
	list, err := recipe.Steps(r)
	require.Equal(t, []string{"000_dirs", "0100_a", "050_script", "0_1", "100_b", "a", "a-b"}, stepNames(t, list, err))
	tasks, err := recipe.Tasks(r)
	require.Equal(t, []string{"task_backup"}, stepNames(t, tasks, err))
}

func TestStepsOfOtherTools(t *testing.T) {
	r := files("010_a.yml", "020_b.yaml", "030_c.pp", "040_d.lines", "050_e.other", "+site.yml", "data.yaml", "inputs.yaml", "input.yml", "Outputs.yaml", "060.yamls", "+060_f.py", "+070_g", "+080_h.bin",
		"090_i.SLS", "091_j.slss", "092_k.sql", "093_l.xml", "094_m.py", "095_n.sh", "+build", "+named", "c.pp", "named.pp", "096_o.named")
	r["lib/parts"] = &fstest.MapFile{Data: []byte("named, named.pp, 096_o.named; *.sql")}
	for _, name := range []string{"060_f.py", "070_g", "094_m.py", "build", "named"} {
		r[name].Data = []byte("#!/bin/sh\n")
	}
	list, err := recipe.Steps(r, "lines")
	require.NoError(t, err)
	require.Equal(t, []recipe.Step{
		{Name: "010_a", File: "010_a.yml", Tool: recipe.ToolAnsible}, {Name: "020_b", File: "020_b.yaml", Tool: recipe.ToolAnsible},
		{Name: "030_c", File: "030_c.pp", Tool: recipe.ToolPuppet}, {Name: "040_d", File: "040_d.lines", Tool: "lines"},
		{Name: "060_f", File: "060_f.py", Script: true}, {Name: "070_g", File: "070_g", Script: true},
	}, list)
	idle, err := recipe.Warnings(r, "lines")
	require.NoError(t, err)
	var named []string
	for _, w := range idle {
		named = append(named, w.File)
	}
	require.ElementsMatch(t, []string{
		".salt/site.yml", ".salt/input.yml", ".salt/Outputs.yaml", ".salt/080_h.bin", ".salt/090_i.SLS", ".salt/091_j.slss", ".salt/094_m.py", ".salt/095_n.sh",
		".salt/050_e.other", ".salt/060.yamls", ".salt/093_l.xml", ".salt/build", ".salt/c.pp",
	}, named)
}

func TestStepsWhoseOrderWouldBeChanceAreRefused(t *testing.T) {
	_, err := recipe.Steps(files("010_a.sls", "+010_a.sh"))
	require.ErrorContains(t, err, "same position")
	require.Equal(t, fault.Failed, fault.KindOf(err))
	_, err = recipe.Steps(files("010.a.sls"))
	require.ErrorContains(t, err, "dot")
}

func TestNoRecipeHasNoSteps(t *testing.T) {
	list, err := recipe.Steps(nil)
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestReadsArchive(t *testing.T) {
	require.False(t, recipe.ReadsArchive(nil))
	for name, want := range map[string]bool{
		"100_app.sls: archive.extracted":                            false,
		"100_app.sls: cp {{ cfg.current_archive_dir }}/project/a b": true,
		"100_run: ls $CORPUS_ARCHIVE_DIR":                           true,
		"100_run: ls /srv/projects/app/archives/":                   true,
		"rollback.sls: a: test.nop":                                 true,
		"hooks/post-archive.d/10_x: true":                           true,
	} {
		file, text, _ := strings.Cut(name, ": ")
		require.Equal(t, want, recipe.ReadsArchive(fstest.MapFS{file: {Data: []byte(text), Mode: 0o755}}), name)
	}
}
