package project_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

func TestConverge(t *testing.T) {
	server := project.ConvergePolicy{Every: 2 * time.Hour, Splay: time.Minute, Mode: project.ConvergeReport}
	for _, x := range []struct {
		cfg   string
		want  project.ConvergePolicy
		wrong string
	}{
		{"{}", server, ""},
		{"{converge: {boot: true}}", project.ConvergePolicy{Boot: true, Every: 2 * time.Hour, Splay: time.Minute, Mode: project.ConvergeReport}, ""},
		{"{converge: {every: 1h, splay: 600, mode: enforce}}", project.ConvergePolicy{Every: time.Hour, Splay: 10 * time.Minute, Mode: project.ConvergeEnforce}, ""},
		{"{converge: {every: 0, splay: null}}", project.ConvergePolicy{Splay: time.Minute, Mode: project.ConvergeReport}, ""},
		{"{converge: 1h}", server, "must be a mapping of boot, every, splay and mode"},
		{"{converge: {every: 10s}}", server, "every of at least 1m"},
		{"{converge: {splay: soon}}", server, "must be a duration such as 10m"},
		{"{converge: {boot: 1}}", server, "must be true or false"},
		{"{converge: {mode: fix}}", server, "must be enforce or report"},
		{"{converge: {evry: 1h}}", server, "is not known"},
	} {
		c, err := project.BuildCfg(t.Context(), inputs(t, "", "makina-projects.app: "+x.cfg+"\n"))
		if x.wrong != "" {
			require.ErrorContains(t, err, x.wrong, x.cfg)
			continue
		}
		require.NoError(t, err, x.cfg)
		require.Equal(t, x.want, c.Converge(server), x.cfg)
	}
}
