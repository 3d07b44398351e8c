package archive_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/archive/tree"
	"corpus-git/internal/vfs/changed"
)

// Somebody changes the live tree between the early look and the archive: the archive, as files and as a folder, is what is there when it is made.
func TestChangesAfterAnEarlyLook(t *testing.T) {
	for name, atOnce := range map[string]int64{"files": 1, "folders": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.use(archive.Config{Reserve: noReserve, AtOnce: atOnce, Looks: changed.New(1), LooksAfter: changed.New(1)})
			for i := range 40 {
				s.write(fmt.Sprintf("d%d/f%d", i%4, i), fmt.Sprintf("content %d", i))
			}
			settle()
			s.good()
			for n := range 10 {
				if n >= 4 { // the look right after the deployment before, which a push finds there
					_, err := s.s.Prepare(context.Background(), archive.Policy{Keep: 3})
					require.NoError(t, err)
				}
				drop := s.s.Look(context.Background(), n%2 == 0)
				again := s.s.Look(context.Background(), n%2 == 0) // of another push: there is one already
				s.write("d1/f1", fmt.Sprintf("push %d", n))
				s.write(fmt.Sprintf("new%d/a/b", n), "new")
				require.NoError(t, os.Chmod(s.live("d2/f2"), 0o600+os.FileMode(n)))
				require.NoError(t, os.Rename(s.live(fmt.Sprintf("d3/f%d", 3+4*n)), s.live(fmt.Sprintf("d0/moved%d", n))))
				require.NoError(t, os.RemoveAll(s.live(fmt.Sprintf("new%d", n-2))))
				if n == 4 || n == 8 {
					s.s.DropLook()
				}
				a := s.good()
				for _, p := range []func(context.Context, string) (tree.Proof, error){s.s.Verify, s.s.CompareLive} {
					got, err := p(context.Background(), a.ID)
					require.NoError(t, err)
					require.True(t, got.Exact(), "%v", got.Differences)
				}
				again()
				drop()
			}
			s.requireNoLeftovers()
		})
	}
}

// While a deployment has paused the store, nobody else looks; a store without a notifier never does.
func TestNoLookBesideADeployment(t *testing.T) {
	s := newSite(t)
	n := changed.New(1)
	s.use(archive.Config{Reserve: noReserve, Looks: n})
	free := func() bool {
		w, err := n.Begin(s.p.Dir())
		if err == nil {
			w.Close()
		}
		return err == nil
	}
	if !free() {
		return // the machine allows no watch
	}
	resume := s.s.Pause()
	s.s.Look(context.Background(), false)
	require.True(t, free())
	resume()
	s.use(archive.Config{Reserve: noReserve})
	defer s.s.Look(context.Background(), true)()
	s.write("a", "b")
	s.good()
}
