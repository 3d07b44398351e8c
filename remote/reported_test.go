package remote_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/remote"
)

func TestReported(t *testing.T) {
	for name, c := range map[string]struct {
		where, text, want, hint string
		code                    int
		kind                    fault.Kind
	}{
		"error and hint":  {where: "web1", text: "note: x\nerror: no room\nhint: free some\nerror: again\n", code: fault.Busy.ExitCode(), want: "on web1: no room", hint: "on web1: free some", kind: fault.Busy},
		"this machine":    {text: "error: a\nhint: b\n", code: fault.Refused.ExitCode(), want: "a", hint: "b", kind: fault.Refused},
		"a shell's words": {where: "web1", text: "sh: 1: Exec format error\n", code: 126, want: "on web1: sh: 1: Exec format error", kind: fault.Failed},
		"nothing":         {where: "web1", code: 137, want: "on web1: corpus-git ended with status 137 and said nothing", kind: fault.Failed},
		"a foreign name":  {where: "a\x1b[2J", text: "error: \x1b]0;x\a", code: 1, want: `on a\x1b[2J: \x1b]0;x\x07`, kind: fault.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			err := remote.Reported(c.where, c.code, c.text)
			require.EqualError(t, err, c.want)
			require.Equal(t, c.kind, fault.KindOf(err))
			require.Equal(t, c.hint, fault.HintOf(err))
		})
	}
}
