package project_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

func TestOnRollback(t *testing.T) {
	for _, x := range []struct {
		cfg, reach string
		limit      time.Duration
		wrong      string
	}{
		{"{default_env: prod}", project.RollbackSteps, 15 * time.Minute, ""},
		{"{default_env: staging, rollback_timeout: 90}", project.RollbackSteps, 90 * time.Second, ""},
		{"{default_env: dev}", project.RollbackTree, 15 * time.Minute, ""},
		{"{default_env: dev, on_rollback: steps}", project.RollbackSteps, 15 * time.Minute, ""},
		{"{on_rollback: undo, rollback_timeout: 1h}", project.RollbackUndo, time.Hour, ""},
		{"{on_rollback: all}", "", 0, "on_rollback: must be one of: steps, undo, tree"},
		{"{on_rollback: {a: 1}}", "", 0, "on_rollback: must be one of: steps, undo, tree"},
		{"{rollback_timeout: 0}", "", 0, "rollback_timeout: must be a duration such as 90s or 5m"},
		{"{rollback_timeout: 2d}", "", 0, "rollback_timeout: must be a duration such as 90s or 5m"},
		{"{rollback_timeout: 9223372036854775807}", "", 0, "rollback_timeout: must be a duration such as 90s or 5m"},
	} {
		c, err := project.BuildCfg(t.Context(), inputs(t, "", "makina-projects.app: "+x.cfg+"\n"))
		if x.wrong != "" {
			require.ErrorContains(t, err, x.wrong, x.cfg)
			continue
		}
		require.NoError(t, err, x.cfg)
		require.Equal(t, x.reach, c.OnRollback(), x.cfg)
		require.Equal(t, x.limit, c.RollbackTimeout(), x.cfg)
	}
}

func TestUndoPackages(t *testing.T) {
	for cfg, want := range map[string]bool{"{}": false, "{undo: {packages: true}}": true, "{undo: {packages: false}}": false, "{undo: {}}": false} {
		c, err := project.BuildCfg(t.Context(), inputs(t, "", "makina-projects.app: "+cfg+"\n"))
		require.NoError(t, err, cfg)
		require.Equal(t, want, c.UndoPackages(), cfg)
	}
	for _, cfg := range []string{"{undo: yes}", "{undo: {packages: sometimes}}", "{undo: {package: true}}", "{undo: {packages: {a: 1}}}"} {
		_, err := project.BuildCfg(t.Context(), inputs(t, "", "makina-projects.app: "+cfg+"\n"))
		require.ErrorContains(t, err, "undo: takes  packages: true", cfg)
	}
}
