package saltproc_test

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
		"stateful would-change a needed command", "right succeeded unless",
	}, got)
	entries, err := os.ReadDir(d.work)
	require.NoError(t, err)
	require.Empty(t, entries)
}
