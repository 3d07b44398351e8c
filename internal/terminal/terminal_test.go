package terminal_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/terminal"
	"corpus-git/internal/testutil"
)

// shown collects what a terminal shows.
type shown struct{ testutil.Buffer }

func (s *shown) wait(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.String(), text) }, 10*time.Second, 5*time.Millisecond, "%s", s.String())
}

// The command has a controlling terminal of the given size and type, reads keys, is resized and interrupted by them, and its status is returned.
func TestRun(t *testing.T) {
	keys, press := io.Pipe()
	defer press.Close()
	var out shown
	sizes := make(chan terminal.Size)
	term := &terminal.Terminal{Name: "vt100", Size: terminal.Size{Columns: 91, Rows: 17}, Sizes: sizes, In: keys, Out: &out}
	type end struct {
		st  execx.Status
		err error
	}
	ended := make(chan end)
	go func() {
		st, err := term.Run(t.Context(), execx.OS{}, execx.Cmd{Argv: []string{"sh"}, Env: []string{"PATH=" + os.Getenv("PATH"), "PS1=# "}})
		ended <- end{st, err}
	}()
	say := func(text string) {
		_, err := io.WriteString(press, text)
		require.NoError(t, err)
	}
	out.wait(t, "# ")
	say("test -t 0 && echo is $(tty) $TERM; stty size </dev/tty\n")
	out.wait(t, "is /dev/pts/")
	out.wait(t, "vt100")
	out.wait(t, "17 91")
	sizes <- terminal.Size{Columns: 50, Rows: 20}
	require.Eventually(t, func() bool {
		say("stty size\n")
		time.Sleep(20 * time.Millisecond)
		return strings.Contains(out.String(), "20 50")
	}, 10*time.Second, 10*time.Millisecond)
	say("sleep 1000; echo went $?\n")
	time.Sleep(50 * time.Millisecond)
	say("\x03") // interrupts the command, and not the shell
	say("\nexit 7\n")
	e := <-ended
	require.NoError(t, e.err)
	require.Equal(t, 7, e.st.Exit)
}

// Leaving hangs the terminal up: no process of the session stays.
func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	keys, press := io.Pipe()
	defer press.Close()
	var out shown
	term := &terminal.Terminal{In: keys, Out: &out}
	go func() {
		for !strings.Contains(out.String(), "ready") {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	begun := time.Now()
	_, err := term.Run(ctx, execx.OS{}, execx.Cmd{Argv: []string{"sh", "-c", "trap 'echo hung up' HUP; echo ready; while :; do sleep 1; done"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Grace: time.Second})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(begun), 10*time.Second)
}
