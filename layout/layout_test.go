package layout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/layout"
)

func TestProjectPaths(t *testing.T) {
	p := layout.Root("/srv").Project("app")
	for want, got := range map[string]string{
		"/srv/projects/app/git/project.git":   p.ProjectGit(),
		"/srv/projects/app/git/pillar.git":    p.PillarGit(),
		"/srv/projects/app/project":           p.Live(),
		"/srv/projects/app/project/.salt":     p.Salt(),
		"/srv/projects/app/pillar":            p.Pillar(),
		"/srv/projects/app/data":              p.Data(),
		"/srv/salt/makina-projects/app":       p.SaltLink(),
		"/srv/pillar/makina-projects/app":     p.PillarLink(),
		"/srv/pillar/top.sls":                 p.Root().PillarTop(),
		"/srv/salt/_modules":                  p.Root().Modules("_modules"),
		"/srv/.corpus-git/corpus-git.db":      p.Root().DefaultState().Database(),
		"/srv/.corpus-git/events/app/i.jsonl": p.Root().DefaultState().EventLog("app", "i"),
	} {
		require.Equal(t, want, got)
	}
}

func TestArchiveNameRoundTrip(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.Local)
	name := layout.ArchiveName(at, "0198c2f4-0000-7000-8000-000000000000")
	require.Equal(t, "2026-02-03_04_05-06_0198c2f4-0000-7000-8000-000000000000", name)
	got, id, ok := layout.ParseArchiveName(name)
	require.True(t, ok)
	require.True(t, at.Equal(got))
	require.Equal(t, "0198c2f4-0000-7000-8000-000000000000", id)
}

func TestParseArchiveNameRefusesOthers(t *testing.T) {
	for _, name := range []string{"", "x", "2026-02-03_04_05-06", "2026-02-03_04_05-06_", ".tmp-2026-02-03_04_05-06_a",
		"2026-13-03_04_05-06_a", "2026-02-03_04_05-06_a/../b", "2026-02-03_04_05-06_.tmp"} {
		_, _, ok := layout.ParseArchiveName(name)
		require.False(t, ok, name)
	}
}
