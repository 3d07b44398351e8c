package state

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
)

// The lines are those of GnuPG 2.2.
func TestVerification(t *testing.T) {
	const (
		ann = "0919C256906357A6B168B45D5186125BB5F6B521"
		bob = "EEFE9B4FCDC2D88B7C881F68335ECE41E65B6E35"
		sub = "1111111111111111111111111111111111111111"
	)
	valid := func(by, primary string) []string {
		return []string{"NEWSIG", "SIG_ID abc 2020-01-01 1577836800", "GOODSIG 5186125BB5F6B521 ann",
			"VALIDSIG " + by + " 2020-01-01 1577836800 0 4 0 22 8 00 " + primary}
	}
	trust := func(l []string, level string) []string { return append(l, "TRUST_"+level+" 0 pgp") }
	for _, tt := range []struct {
		about   string
		lines   []string
		trusted bool
		keys    []string
	}{
		{"nothing", nil, false, nil},
		{"bad", []string{"NEWSIG", "BADSIG 5186125BB5F6B521 ann"}, false, nil},
		{"no key", []string{"NEWSIG", "ERRSIG 5186125BB5F6B521 22 8 00 1577836800 9 " + ann, "NO_PUBKEY 5186125BB5F6B521"}, false, nil},
		{"good", trust(valid(ann, ann), "UNDEFINED"), true, []string{ann}},
		{"of a subkey", trust(valid(sub, ann), "ULTIMATE"), true, []string{ann}},
		{"without a word on trust", valid(ann, ann), false, nil},
		{"two", append(trust(valid(ann, ann), "FULLY"), trust(valid(bob, bob), "NEVER")...), true, []string{ann, bob}},
		{"bad and good", append([]string{"NEWSIG", "BADSIG 5186125BB5F6B521 ann"}, trust(valid(bob, bob), "MARGINAL")...), true, []string{bob}},
		{"short", []string{"", "VALIDSIG x"}, false, nil},
	} {
		v := &verification{}
		for _, l := range tt.lines {
			v.status(l)
		}
		require.Equal(t, tt.trusted, v.trusted, tt.about)
		require.Equal(t, tt.keys, v.keys, tt.about)
	}
}

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
		result  Tri
	}{
		{about: "right", now: []string{"system_u:object_r:etc_t:s0"}, want: []any{"setype", "etc_t"}, result: True,
			changes: "{}", comment: "File @ is in the correct state"},
		{about: "changed", now: []string{"unconfined_u:object_r:tmp_t:s0", "system_u:object_r:etc_t:s0"}, want: []any{"seuser", "system_u", "setype", "etc_t"},
			ran:     []string{"semanage fcontext --add --type etc_t --seuser system_u @E", "chcon -u system_u -t etc_t @"},
			changes: "{'selinux': {'Old': 'User: unconfined_u Type: tmp_t', 'New': 'User: system_u Type: etc_t'}}", comment: "File @ updated", result: True},
		{about: "listed", now: []string{"u:r:t:s0", "u:r:t:s1"}, want: []any{"serange", "s1"}, list: "/other all files u:r:t:s0\n@E all files u:r:t:s0",
			ran:     []string{"semanage fcontext --modify --type t --range s1 @E", "chcon -t t -l s1 @"},
			changes: "{'selinux': {'Old': 'Range: s0', 'New': 'Range: s1'}}", comment: "File @ updated", result: True},
		{about: "refused", now: []string{"u:r:t:s0"}, want: []any{"serole", "x"}, ran: []string{"semanage fcontext --add --type t @E", "chcon -r x -t t @"},
			changes: "{'selinux': {'Old': 'Role: r', 'New': 'Role: x'}}", comment: "File @ updated", result: False},
		{about: "no policy", now: []string{"u:r:t:s0"}, want: []any{"serole", "x"}, fails: "semanage fcontext --add",
			changes: "{}", comment: "Problem setting fcontext: semanage ended with exit status 1: denied", result: False},
		{about: "would", test: true, now: []string{"u:r:t:s0"}, want: []any{"setype", "x"}, result: None,
			changes: "{'selinux': {'Old': 'Type: t', 'New': 'Type: x'}}", comment: "The file @ is set to be changed\nNote: No changes made, actual changes may\nbe different due to other states."},
	} {
		t.Run(tt.about, func(t *testing.T) {
			m := newMachine(t, "semanage", "chcon", "stat")
			file := filepath.Join(t.TempDir(), "f.x")
			require.NoError(t, os.WriteFile(file, []byte("x\n"), 0o600))
			fill := strings.NewReplacer("@E", py.ReEscape(file), "@", file).Replace
			m.answers["stat -c %C"] = tt.now[0]
			m.answers["semanage fcontext --list"] = fill(tt.list)
			if tt.fails != "" {
				m.answers[tt.fails] = "!denied"
			}
			m.on = func(line string) {
				if len(tt.now) > 1 && len(line) > 5 && line[:5] == "chcon" {
					m.answers["stat -c %C"] = tt.now[1]
				}
			}
			r := m.call(tt.test, "file.managed", file, "contents", "x", "selinux", py.NewDict(tt.want...))
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
			require.Equal(t, want, m.ran)
		})
	}
}

func TestVerifySSL(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x\n")) }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	for _, tt := range []struct {
		verify any
		result Tri
	}{{nil, False}, {true, False}, {false, True}} {
		file := filepath.Join(t.TempDir(), "f")
		r := do(t, false, "file.managed", file, "source", srv.URL+"/f", "skip_verify", true, "verify_ssl", tt.verify)
		require.Equal(t, tt.result, r.Result, r.Comment)
		if tt.result == True {
			require.FileExists(t, file)
		}
	}
}
