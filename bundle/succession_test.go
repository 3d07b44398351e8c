package bundle_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/bundle"
	"corpus-git/internal/fault"
)

func TestSuccession(t *testing.T) {
	key := func() ssh.Signer {
		_, k, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(t, err)
		s, err := ssh.NewSignerFromKey(k)
		require.NoError(t, err)
		return s
	}
	line := func(k ssh.Signer) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.PublicKey()))) }
	old, next, other := key(), key(), key()
	said, err := bundle.Succeed(old, next)
	require.NoError(t, err)
	alone, err := bundle.Succeed(next, nil)
	require.NoError(t, err)
	theirs, err := bundle.Succeed(other, next)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		said  bundle.Succession
		known []string
		err   string
	}{
		"by the known key":               {said, []string{line(old) + " the hub"}, ""},
		"again, when the next is known":  {said, []string{line(old), line(next)}, ""},
		"the next is the present one":    {alone, []string{line(old), line(next)}, ""},
		"that one is not known":          {alone, []string{line(old)}, "not the hub that this machine joined"},
		"of before, after it was left":   {said, []string{line(next)}, "not the hub that this machine joined"},
		"by another machine":             {theirs, []string{line(old)}, "not the hub that this machine joined"},
		"nothing is known":               {said, []string{""}, "not the hub that this machine joined"},
		"another next key":               {bundle.Succession{Current: said.Current, Next: line(other), ByCurrent: said.ByCurrent, ByNext: said.ByNext}, []string{line(old)}, "not valid"},
		"without the next one's sign":    {bundle.Succession{Current: said.Current, Next: said.Next, ByCurrent: said.ByCurrent}, []string{line(old)}, "not valid"},
		"the next one is left out":       {bundle.Succession{Current: said.Current, ByCurrent: said.ByCurrent}, []string{line(old)}, "not valid"},
		"signed by the next one instead": {bundle.Succession{Current: said.Current, Next: said.Next, ByCurrent: said.ByNext, ByNext: said.ByNext}, []string{line(old)}, "not valid"},
		"two keys":                       {bundle.Succession{Current: said.Current + "\n" + said.Next, ByCurrent: said.ByCurrent}, []string{line(old)}, "not valid"},
		"nothing":                        {bundle.Succession{}, []string{line(old)}, "not valid"},
	} {
		err := c.said.Verify(c.known...)
		if c.err == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.err, name)
		require.Equal(t, fault.Refused, fault.KindOf(err), name)
	}
}
