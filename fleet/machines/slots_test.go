package machines

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
)

func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, node := &Fleet{}, fleet.Node{Name: "web1", Slots: 2}
		take := func(ctx context.Context, n fleet.Node) (free func(), waited bool, err error) {
			free, err = f.slot(ctx, n, func() { waited = true })
			return free, waited, err
		}
		one, waited, err := take(t.Context(), node)
		require.NoError(t, err)
		require.False(t, waited)
		_, _, err = take(t.Context(), node)
		require.NoError(t, err)
		// A third waits, another node does not, and who gives up has none.
		ctx, end := context.WithCancel(t.Context())
		third := make(chan bool)
		go func() {
			_, waited, err := take(t.Context(), node)
			third <- waited && err == nil
		}()
		fourth := make(chan error)
		go func() {
			_, _, err := take(ctx, node)
			fourth <- err
		}()
		_, waited, err = take(t.Context(), fleet.Node{Name: "web2", Slots: 1})
		require.NoError(t, err)
		require.False(t, waited)
		for range 9 {
			_, _, err = take(t.Context(), fleet.Node{Name: "web3"})
			require.NoError(t, err)
		}
		synctest.Wait()
		end()
		require.ErrorIs(t, <-fourth, context.Canceled)
		select {
		case <-third:
			t.Fatal("it has not waited")
		default:
		}
		one()
		require.True(t, <-third)
		require.Equal(t, 2, f.busy["web1"])
	})
}
