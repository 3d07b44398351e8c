package register_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/kv/register"
	"corpus-git/project"
)

func TestRegister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var said []map[string]string
		var checks []project.CheckState
		down := false
		r := register.New(register.Config{
			Log: zerolog.Nop(), Address: func() string { return "10.0.0.1" },
			Checks: func(project.Name) []project.CheckState { mu.Lock(); defer mu.Unlock(); return checks },
			Publish: func(_ context.Context, s map[string]string) error {
				mu.Lock()
				defer mu.Unlock()
				if down {
					return errors.New("the hub is down")
				}
				said = append(said, s)
				return nil
			},
		})
		taken := func() []map[string]string {
			mu.Lock()
			defer mu.Unlock()
			out := said
			said = nil
			return out
		}
		set := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
		r.Start()
		defer r.Stop()
		time.Sleep(time.Minute)
		require.Empty(t, taken(), "nothing registers")

		web := map[string]string{"web": `{"address":"10.0.0.1","port":80,"project":"app"}`}
		r.Set("app", map[string]string{"web": `{"port": 80}`})
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, []map[string]string{web}, taken())
		time.Sleep(register.Lease - time.Second)
		require.Len(t, taken(), 3, "said again, more often than the lease ends")

		// A check that has not run yet, or fails, removes it within a moment; a check that succeeds brings it back.
		set(func() { checks = []project.CheckState{{Name: "up"}} })
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, []map[string]string{{}}, taken())
		time.Sleep(time.Minute)
		require.Empty(t, taken(), "nothing to say")
		set(func() { checks = []project.CheckState{{Name: "up", Now: &project.CheckPeriod{Good: true}}} })
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, []map[string]string{web}, taken())
		set(func() { checks = []project.CheckState{{Name: "up", Now: &project.CheckPeriod{}}} })
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, []map[string]string{{}}, taken())

		// What could not be published is published as soon as possible.
		set(func() { down, checks = true, nil })
		time.Sleep(time.Minute)
		require.Empty(t, taken())
		set(func() { down = false })
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, []map[string]string{web}, taken())
		r.Set("app", nil)
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, []map[string]string{{}}, taken())
		r.Stop()
	})
}
