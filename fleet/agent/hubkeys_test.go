package agent

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
)

func someKey(t *testing.T) (ssh.Signer, string) {
	_, k, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	s, err := ssh.NewSignerFromKey(k)
	require.NoError(t, err)
	return s, PublicLine(s)
}

// An agent goes on with the announced key once the hub has it, forgets the old one, and takes no other: what it keeps is written before it is used.
func TestNextHostKey(t *testing.T) {
	key, _ := someKey(t)
	old, oldLine := someKey(t)
	next, nextLine := someKey(t)
	other, otherLine := someKey(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var kept []Hub
	var left []string
	broken := errors.New("the disk")
	var fails error
	a := &Agent{
		Hub: Hub{Address: l.Addr().String(), HostKey: oldLine + " hub", Node: "web1"}, Key: key, Log: zerolog.Nop(),
		Learned:  func(h Hub) error { kept = append(kept, h); return fails },
		Replaced: func(old string) error { left = append(left, old); return nil },
	}
	dials := func(host ssh.Signer) error {
		go dialledIn(l, host)
		c, _, err := a.dialAny(t.Context(), nil)
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	yes := func(known ...string) error { return nil }
	require.NoError(t, dials(old))
	require.Empty(t, kept)
	err = dials(next)
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "replaced meanwhile, or another machine responds")

	require.ErrorContains(t, a.Pin(oldLine, nextLine, func(known ...string) error {
		require.Equal(t, []string{oldLine + " hub"}, known)
		return errors.New("not valid")
	}), "not valid")
	fails = broken
	require.ErrorIs(t, a.Pin(oldLine, nextLine, yes), broken)
	require.Len(t, a.Pinned(), 1)
	fails, kept = nil, nil
	require.NoError(t, a.Pin(oldLine, nextLine, yes))
	require.Equal(t, []string{ssh.FingerprintSHA256(old.PublicKey()), ssh.FingerprintSHA256(next.PublicKey())}, a.Pinned())
	require.Equal(t, []Hub{{Address: a.Hub.Address, HostKey: oldLine, Next: nextLine, Node: "web1"}}, kept)
	require.Empty(t, left)

	require.NoError(t, dials(old), "the hub has both")
	require.Error(t, dials(other))
	fails = broken
	require.ErrorIs(t, dials(next), broken)
	fails = nil
	require.NoError(t, dials(next))
	require.Equal(t, []string{oldLine}, left)
	require.Equal(t, []string{ssh.FingerprintSHA256(next.PublicKey())}, a.Pinned())
	require.Error(t, dials(old), "it is not the hub's any more")

	require.NoError(t, a.Pin(otherLine, "", func(known ...string) error {
		require.Equal(t, []string{nextLine}, known)
		return nil
	}))
	require.Equal(t, []string{oldLine, nextLine}, left)
	require.NoError(t, dials(other))
}
