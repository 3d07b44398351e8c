package hubs

import (
	"context"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
)

// leaving is an access store whose caller is gone once its token's key is removed.
type leaving struct {
	nodes.Access
	leave context.CancelFunc
	keys  map[string]string
}

func (l *leaving) FindByName(ctx context.Context, name string) (access.Key, error) {
	if l.keys[name] == "" {
		return access.Key{}, fault.New(fault.Refused, "", "no such key")
	}
	return access.Key{Name: name, Fingerprint: l.keys[name]}, ctx.Err()
}

func (l *leaving) RemoveKey(ctx context.Context, _ access.Identity, name string) error {
	if ctx.Err() == nil {
		delete(l.keys, name)
	}
	l.leave()
	return ctx.Err()
}

func (l *leaving) AddKeyTo(ctx context.Context, _ access.Identity, k access.NewKey) (access.Key, error) {
	if ctx.Err() == nil {
		l.keys[k.Name] = string(k.Text)
	}
	return access.Key{}, ctx.Err()
}

// A machine that is killed while its token is exchanged joins with its own key when it is run again.
func TestExchangeIsNotInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	store := &leaving{leave: cancel, keys: map[string]string{tokenKey("hub2"): "SHA256:x"}}
	s := Session{Session: nodes.Session{
		Context: ctx, Access: store, Caller: access.Identity{Name: principal("hub2"), Fingerprint: "SHA256:x"},
		Exactly: func(...string) cobra.PositionalArgs { return cobra.ExactArgs(2) }, Audited: func(_ audit.Entry, err error) error { return err },
	}}
	c := exchangeCommand(s)
	c.SetArgs([]string{"hub2", "ssh-ed25519 AAAA"})
	require.NoError(t, c.Execute())
	require.Error(t, ctx.Err())
	require.Equal(t, map[string]string{ownKey("hub2"): "ssh-ed25519 AAAA"}, store.keys)
}
