package salt_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/sls"
)

// TestCheckCompiles: what goes to Salt is compiled by Salt before anything runs, and nothing of it runs.
func TestCheckCompiles(t *testing.T) {
	d := unpack(t, "check.txtar")
	s := d.session(t)
	for _, c := range []struct {
		step     string
		states   int
		deferred string
		refused  string
	}{
		{step: "10_good", states: 3},
		{step: "20_missing", refused: "nowhere"},
		{step: "30_yaml", refused: "30_yaml"},
		{step: "40_command", deferred: "is run while the template renders"},
		{step: "50_asked", deferred: "file.seek_read is called while the template renders, which fails as things are now"},
		{step: "60_undefined", refused: "'typo' is undefined"},
		{step: "70_text", refused: "70_text"},
	} {
		in := d.input(c.step)
		in.Mode = sls.Static
		got, err := s.Check(context.Background(), in)
		if c.refused != "" {
			require.Equal(t, fault.Failed, fault.KindOf(err), "%s: %v", c.step, err)
			require.ErrorContains(t, err, c.refused)
			require.Equal(t, c.step == "60_undefined", sls.IsUndefined(err), c.step)
			continue
		}
		require.NoError(t, err, c.step)
		require.Equal(t, c.states, got.States, c.step)
		if c.deferred == "" {
			require.Nil(t, got.Deferred, c.step)
			continue
		}
		require.NotNil(t, got.Deferred, c.step)
		require.Contains(t, got.Deferred.Why, c.deferred)
	}
	require.NoFileExists(t, filepath.Join(d.work, "ran"))
}

// TestPlanRunsNothing: commits that nobody keeps name commands in every place that a test run of Salt asks.
func TestPlanRunsNothing(t *testing.T) {
	d := unpack(t, "check.txtar")
	in := d.input("80_plan")
	in.Test, in.Plan = true, true
	res, err := d.session(t).Apply(context.Background(), in, sls.Discard{})
	require.NoError(t, err)
	var got []string
	for _, st := range res.States {
		got = append(got, strings.TrimSpace(strings.Join(append([]string{st.ID, string(st.Outcome)}, st.Unevaluated...), " ")))
	}
	require.Equal(t, []string{
		"onlyif would-change onlyif", "unless would-change unless", "fun would-change onlyif", "true_fun would-change", "false_fun succeeded",
		"check_cmd would-change check_cmd", "template would-change a needed command", "slot would-change a needed command",
		"stateful would-change a needed command", "python would-change a needed command", "writes would-change a needed command",
		"asks would-change onlyif", "right succeeded unless",
	}, got)
	entries, err := os.ReadDir(d.work)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestPlanRunsNoPython: a commit that nobody keeps brings Python as a renderer, as a function that writes, and as modules of its own, which Salt
// loads as root before it looks at any state.
func TestPlanRunsNoPython(t *testing.T) {
	d := unpack(t, "check.txtar")
	check := func(step, why string) {
		t.Helper()
		in := d.input(step)
		in.Mode, in.Plan = sls.Static, true
		got, err := d.session(t).Check(context.Background(), in)
		require.NoError(t, err, step)
		require.NotNil(t, got.Deferred, step)
		require.Contains(t, got.Deferred.Why, why, step)
		require.NoFileExists(t, filepath.Join(d.work, "ran"), step)
	}
	check("90_python", "the renderer py, which is not run in a plan")
	check("91_includes", "the renderer py, which is not run in a plan")
	check("92_writes", "file.touch is run while the template renders")
	check("93_renderer", "the renderer py, which is not run in a plan")

	recipe := d.roots[0].Dir
	run := `open("` + filepath.Join(d.work, "ran") + `", "w").close()` + "\n"
	for _, kind := range []string{"_modules", "_states", "_grains", "_renderers", "_utils"} {
		require.NoError(t, os.MkdirAll(filepath.Join(recipe, kind), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(recipe, kind, "own.py"), []byte(run), 0o644))
	}
	check("10_good", "the recipe's own Salt modules are not loaded in a plan")
	in := d.input("10_good")
	in.Test, in.Plan = true, true
	res, err := d.session(t).Apply(context.Background(), in, sls.Discard{})
	require.NoError(t, err)
	require.Equal(t, []string{"the step"}, res.States[0].Unevaluated)
	require.NoFileExists(t, filepath.Join(d.work, "ran"))

	in = d.input("10_good") // a deployment loads them
	in.Mode = sls.Static
	_, err = d.session(t).Check(context.Background(), in)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(d.work, "ran"))
}
