package units

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

// FuzzStates checks that any output of systemctl and supervisorctl is accepted. A unit's name and output come from the project.
func FuzzStates(f *testing.F) {
	f.Add("Id=a.service\nLoadState=loaded\nActiveState=active\nSubState=running\nMainPID=12\nNRestarts=1\nStateChangeTimestampMonotonic=5\n", "app  RUNNING  pid 12, uptime 2 days, 1:02:03\n", "app")
	f.Add("", "app RUNNING pid 1, uptime , 0:00:01", "app")
	f.Add("LoadState=loaded\n", "", "app") // was once treated as a unit in a state without a name
	f.Add("LoadState\n=\n", "app RUNNING pid 1, uptime x, y", "app")
	f.Add("ActiveState=failed\nLoadState=masked\nStateChangeTimestampMonotonic=9223372036854775807\n", "app FATAL Exited too quickly\n", "app")
	f.Add("ActiveState=failed\nLoadState=masked\nStateChangeTimestampMonotonic=9807223372\n", "", "app")
	now := time.Unix(1700000000, 0)
	f.Fuzz(func(t *testing.T, block, lines, name string) {
		r := &Runner{Now: func() time.Time { return now }, Uptime: func() time.Duration { return time.Hour }}
		u := project.UnitState{Unit: name, Kind: project.UnitSystemd}
		r.systemdState(&u, block)
		require.NotEmpty(t, u.State)
		require.False(t, u.Since.After(now), "%s", u.Since)
		for unit, said := range programLines(lines) {
			require.NotEmpty(t, said, unit)
			u := project.UnitState{Unit: unit, Kind: project.UnitSupervisor}
			r.programState(&u, said)
			require.NotEmpty(t, u.State)
			require.False(t, u.Since.After(now), "%s", u.Since)
		}
	})
}
