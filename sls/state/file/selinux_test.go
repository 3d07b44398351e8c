package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
)

// SELinux is that of the tools: what they say and take.
func TestSELinux(t *testing.T) {
	for _, tt := range []struct {
		about   string
		test    bool
		now     []string // what stat says, again and again
		list    string
		fails   string
		want    []any
		ran     []string
		changes string
		comment string
		result  core.Tri
	}{
		{about: "right", now: []string{"system_u:object_r:etc_t:s0"}, want: []any{"setype", "etc_t"}, result: core.True,
			changes: "{}", comment: "File @ is in the correct state"},
		{about: "changed", now: []string{"unconfined_u:object_r:tmp_t:s0", "system_u:object_r:etc_t:s0"}, want: []any{"seuser", "system_u", "setype", "etc_t"},
			ran:     []string{"semanage fcontext --add --type etc_t --seuser system_u @E", "chcon -u system_u -t etc_t @"},
			changes: "{'selinux': {'Old': 'User: unconfined_u Type: tmp_t', 'New': 'User: system_u Type: etc_t'}}", comment: "File @ updated", result: core.True},
		{about: "listed", now: []string{"u:r:t:s0", "u:r:t:s1"}, want: []any{"serange", "s1"}, list: "/other all files u:r:t:s0\n@E all files u:r:t:s0",
			ran:     []string{"semanage fcontext --modify --type t --range s1 @E", "chcon -t t -l s1 @"},
			changes: "{'selinux': {'Old': 'Range: s0', 'New': 'Range: s1'}}", comment: "File @ updated", result: core.True},
		{about: "refused", now: []string{"u:r:t:s0"}, want: []any{"serole", "x"}, ran: []string{"semanage fcontext --add --type t @E", "chcon -r x -t t @"},
			changes: "{'selinux': {'Old': 'Role: r', 'New': 'Role: x'}}", comment: "File @ updated", result: core.False},
		{about: "no policy", now: []string{"u:r:t:s0"}, want: []any{"serole", "x"}, fails: "semanage fcontext --add",
			changes: "{}", comment: "Problem setting fcontext: semanage ended with exit status 1: denied", result: core.False},
		{about: "would", test: true, now: []string{"u:r:t:s0"}, want: []any{"setype", "x"}, result: core.None,
			changes: "{'selinux': {'Old': 'Type: t', 'New': 'Type: x'}}", comment: "The file @ is set to be changed\nNote: No changes made, actual changes may\nbe different due to other states."},
	} {
		t.Run(tt.about, func(t *testing.T) {
			m := statetest.NewMachine(t, States, "semanage", "chcon", "stat")
			file := filepath.Join(t.TempDir(), "f.x")
			require.NoError(t, os.WriteFile(file, []byte("x\n"), 0o600))
			fill := strings.NewReplacer("@E", py.ReEscape(file), "@", file).Replace
			m.Answers["stat -c %C"] = tt.now[0]
			m.Answers["semanage fcontext --list"] = fill(tt.list)
			if tt.fails != "" {
				m.Answers[tt.fails] = "!denied"
			}
			m.On = func(line string) {
				if len(tt.now) > 1 && len(line) > 5 && line[:5] == "chcon" {
					m.Answers["stat -c %C"] = tt.now[1]
				}
			}
			r := m.Call(tt.test, "file.managed", file, "contents", "x", "selinux", py.NewDict(tt.want...))
			require.Equal(t, tt.result, r.Result, r.Comment)
			require.Equal(t, fill(tt.comment), r.Comment)
			changes := r.Changes
			if changes == nil {
				changes = py.NewDict()
			}
			require.Equal(t, tt.changes, py.Repr(changes))
			var want []string
			for _, l := range tt.ran {
				want = append(want, fill(l))
			}
			require.Equal(t, want, m.Ran)
		})
	}
}
