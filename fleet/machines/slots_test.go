package machines

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
)

func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, node := &Fleet{}, fleet.Node{Name: "web1", Slots: 2}
		take := func(ctx context.Context, n fleet.Node) (free func(), waited bool, err error) {
			free, err = f.slot(ctx, "app", n, func() { waited = true })
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

// After a restart, or at the hub that leads next, what a node still deploys has its slot before others: the rollout that goes on takes it, and gives it back.
func TestSlotsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := layout.State(t.TempDir())
		for name, p := range map[project.Name]fleet.Progress{
			"running": {State: fleet.Running, Nodes: []fleet.NodeProgress{{Member: fleet.Member{Name: "web1"}, State: fleet.Applying}, {Member: fleet.Member{Name: "web2"}, State: fleet.Ready}}},
			"back":    {State: fleet.RollingBack, Nodes: []fleet.NodeProgress{{Member: fleet.Member{Name: "web3"}, State: fleet.Applying}}},
			"ended":   {State: fleet.Live, Nodes: []fleet.NodeProgress{{Member: fleet.Member{Name: "web2"}, State: fleet.Applying}}},
			"other":   {State: fleet.Running, Nodes: []fleet.NodeProgress{{Member: fleet.Member{Name: "web2"}, State: fleet.Applying}}},
		} {
			p.Plan, p.Deployment = &fleet.Plan{}, project.Deployment{Project: name, ID: project.NewID()}
			text, err := json.Marshal(p)
			require.NoError(t, err)
			path := state.Rollout(string(p.Deployment.ID))
			require.NoError(t, vfs.MkdirAll(vfs.OS{}, filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, text, 0o600))
		}
		f := &Fleet{State: state}
		require.NoError(t, f.Hold([]project.Name{"running", "back", "ended"}))
		require.Equal(t, map[string]int{"web1": 1, "web3": 1}, f.busy)

		next := make(chan func())
		for _, node := range []string{"web1", "web3"} {
			go func() {
				free, err := f.slot(t.Context(), "next", fleet.Node{Name: node, Slots: 1}, func() {})
				if err == nil {
					next <- free
				}
			}()
		}
		free, err := f.slot(t.Context(), "running", fleet.Node{Name: "web1", Slots: 1}, func() { t.Error("it waits for itself") })
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, map[string]int{"web1": 1, "web3": 1}, f.busy)
		free()
		(<-next)()
		f.Unhold("running") // it has used its slot
		f.Unhold("nothing")
		time.Sleep(holding) // it does not go on
		(<-next)()
		require.Empty(t, f.busy)
		require.Empty(t, f.held)
	})
}
