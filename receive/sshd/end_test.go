package sshd_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/receive/sshd"
)

// End tells the client of a session that does something why it ends, and it has the exit status of that, whatever the handler returns later.
func TestEnd(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	s := serve(t, sshd.Limits{}, func(context.Context, *sshd.Session) int {
		close(began)
		<-goOn
		return 0
	})
	defer close(goOn)
	c := s.dial(t)
	sess, err := c.NewSession()
	require.NoError(t, err)
	var stderr bytes.Buffer
	sess.Stderr = &stderr
	require.NoError(t, sess.Start("x"))
	<-began
	s.End(t.Context(), fault.New(fault.Busy, "", "it ends").WithHint("try again"))
	var exit *ssh.ExitError
	require.ErrorAs(t, sess.Wait(), &exit)
	require.Equal(t, fault.Busy.ExitCode(), exit.ExitStatus())
	require.Equal(t, "error: it ends\nhint: try again\n", stderr.String())
	s.End(t.Context(), fault.New(fault.Busy, "", "again")) // nobody is there
}
