package state_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/sls/host"
	"corpus-git/sls/state/account"
	"corpus-git/sls/state/command"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/cron"
	"corpus-git/sls/state/service"
	"corpus-git/sls/state/statetest"
	"corpus-git/undo"
)

// machine is one with systemd, crontab and accounts, whose answers follow what is done to it.
func machine(t *testing.T) *statetest.Machine {
	m := statetest.NewMachine(t, func(table *core.Table) {
		account.States(table)
		command.States(table)
		cron.States(table)
		service.States(table)
	}, "crontab", "useradd", "userdel", "groupadd", "groupdel", "usermod", "gpasswd", "apt-get", "dpkg-query")
	m.Cache["service-manager"] = "systemctl"
	active, enabled := map[string]bool{"old": true}, false
	table, made := "0 1 * * * old\n", map[string]bool{}
	answer := func() {
		word := func(b bool, yes, no string) string {
			if b {
				return yes
			}
			return "!" + no
		}
		m.Answers = map[string]string{
			"systemctl show -p LoadState --value": "loaded\n",
			"systemctl is-enabled web.service":    word(enabled, "enabled\n", "disabled\n"),
			"crontab -l":                          table,
			"getent passwd app":                   word(made["user"], "app:x:1\n", ""),
			"getent group ops":                    word(made["group"], "ops:x:1\n", ""),
		}
		for _, s := range []string{"web", "old"} {
			m.Answers["systemctl is-active --quiet "+s+".service"] = word(active[s], "", "")
			m.Answers["systemctl is-active "+s+".service"] = word(active[s], "active\n", "inactive\n")
			m.Answers["systemctl show -p ActiveState --value "+s+".service"] = "inactive\n"
			m.Answers[asks+" "+s+".service"] = "stopped\n"
			if active[s] {
				m.Answers["systemctl show -p ActiveState --value "+s+".service"] = "active\n"
				m.Answers[asks+" "+s+".service"] = "started\n"
			}
		}
	}
	answer()
	m.On = func(line string) {
		switch line {
		case "systemctl start web.service":
			active["web"] = true
		case stopped:
			active["web"] = false
		case "systemctl stop old.service":
			active["old"] = false
		case again:
			active["old"] = true
		case "systemctl enable web.service":
			enabled = true
		case "systemctl disable web.service":
			enabled = false
		case "crontab -":
			table = m.Stdin[len(m.Stdin)-1]
		case "useradd -m app", "useradd app":
			made["user"] = true
			m.Users["app"] = host.User{Name: "app", UID: 1000, GID: 1000, Home: "/home/app"}
		case "userdel app":
			made["user"] = false
		case "groupadd ops":
			made["group"] = true
			m.Groups["ops"] = host.Group{Name: "ops", GID: 1001}
		case "groupdel ops":
			made["group"] = false
		}
		answer()
	}
	return m
}

// again is how a service that ran is restarted.
const again = `sh -c systemctl daemon-reload; systemctl reset-failed "$0"; exec systemctl restart "$0" old.service`

// stopped is how a service that did not run is stopped, and asks how undo sees whether one runs.
const (
	stopped = `sh -c systemctl stop "$0" && { systemctl reset-failed "$0" 2>/dev/null || true; } web.service`
	asks    = `sh -c case $(systemctl show -p ActiveState --value "$0") in inactive|"") echo stopped ;; *) echo started ;; esac`
)

// TestUndo: what the states of each family do by programs is taken back by programs, and proved.
func TestUndo(t *testing.T) {
	for name, tt := range map[string]struct {
		calls [][]any // function, name, arguments
		ran   []string
		want  undo.Report
	}{
		"started and enabled": {
			calls: [][]any{{"service.running", "web", "enable", true}},
			ran:   []string{"systemctl disable web.service", stopped},
			want:  undo.Report{Undone: []undo.Item{{Noun: "boot setting", Name: "web"}, {Noun: "service", Name: "web"}}},
		},
		"stopped": {
			calls: [][]any{{"service.dead", "old"}},
			ran:   []string{again},
			want:  undo.Report{Undone: []undo.Item{{Noun: "service", Name: "old"}}},
		},
		"right already": {calls: [][]any{{"service.running", "old"}}},
		"crontab": {
			calls: [][]any{{"cron.present", "new", "user", "me"}},
			ran:   []string{"crontab -"},
			want:  undo.Report{Undone: []undo.Item{{Noun: "crontab", Name: "me"}}},
		},
		"group": {
			calls: [][]any{{"group.present", "ops"}},
			ran:   []string{"groupdel ops"},
			want:  undo.Report{Undone: []undo.Item{{Noun: "group", Name: "ops"}}},
		},
		"command": {
			calls: [][]any{{"cmd.run", "true"}},
			want:  undo.Report{Manual: []undo.Item{{Name: "cmd.run: true"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(t)
			m.Users["me"] = host.User{Name: "me", UID: os.Geteuid(), Home: "/"} // crontab(1) lets only root name a user
			dir := filepath.Join(t.TempDir(), "undo", "1")
			m.NoteUndo(dir)
			for _, c := range tt.calls {
				r := m.Call(false, c[0].(string), c[1].(string), c[2:]...)
				require.Equal(t, core.True, r.Result, r.Comment)
				require.NoError(t, m.Undo.After(t.Context()))
			}
			require.Equal(t, tt.want, reportOf(m.Rollback(dir)))
			require.Equal(t, tt.ran, m.Ran)
		})
	}
}

// reportOf leaves out what was as before.
func reportOf(r undo.Report) undo.Report {
	r.Unchanged = nil
	return r
}
