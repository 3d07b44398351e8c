package archive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/archive/tree"
	"corpus-git/internal/vfs/changed"
	"corpus-git/layout"
)

// firstDeployment is a site whose first deployment has just made its archive, of nothing, and written 60 files.
func firstDeployment(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.use(archive.Config{Reserve: noReserve, AtOnce: 1, LooksAfter: changed.New(1)})
	s.good()
	for i := range 60 {
		s.write(fmt.Sprintf("d%d/f%d", i%5, i), fmt.Sprintf("content %d", i))
	}
	settle()
	return s
}

func (s *site) aheadFile() string {
	return filepath.Join(s.p.Archives(), ".tmp-next-files", "project.tar.zst")
}

func (s *site) prepare() {
	s.t.Helper()
	_, err := s.s.Prepare(context.Background(), archive.Policy{Keep: 3})
	require.NoError(s.t, err)
}

// The second push's archive takes most of its tree from what was written after the first one, and is exactly the tree that it was made of, whatever was
// changed in between.
func TestABaseIsWrittenAhead(t *testing.T) {
	for name, write := range map[string]func(s *site){
		"after the deployment": (*site).prepare,
		"while it ends": func(s *site) {
			defer s.s.Pause()()
			require.NoError(s.t, s.s.Ahead(context.Background()))
		},
		"both": func(s *site) {
			resume := s.s.Pause()
			require.NoError(s.t, s.s.Ahead(context.Background()))
			resume()
			s.prepare()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := firstDeployment(t)
			write(s)
			ahead, err := os.Stat(s.aheadFile())
			require.NoError(t, err)
			s.write("d1/f1", "other")
			s.write("new/file", "new")
			require.NoError(t, os.Chmod(s.live("d2/f2"), 0o600))
			require.NoError(t, os.Rename(s.live("d3/f3"), s.live("d4/f3")))
			require.NoError(t, os.Remove(s.live("d3/f8")))
			was := snapshot(t, s.live(""))
			a := s.good()
			require.True(t, a.Incremental())
			require.Zero(t, a.Shared, "nobody else has the base yet")
			base, err := os.Stat(filepath.Join(a.Path, "project.base.tar.zst"))
			require.NoError(t, err)
			require.True(t, os.SameFile(ahead, base))
			require.EqualValues(t, 56, a.Made.Kept)
			for _, check := range []func(context.Context, string) (tree.Proof, error){s.s.Verify, s.s.CompareLive} {
				p, err := check(context.Background(), a.ID)
				require.NoError(t, err)
				require.True(t, p.Exact(), "%v", p.Differences)
			}
			s.requireNoLeftovers()

			// The next one shares it.
			s.write("d1/f1", "again")
			b := s.good()
			require.Equal(t, a.Packed.Trees["project"].Base.SHA256, b.Packed.Trees["project"].Base.SHA256)
			require.Positive(t, b.Shared)
			_, err = s.s.Restore(context.Background(), a.ID, nil)
			require.NoError(t, err)
			requireSame(t, was, snapshot(t, s.live("")))
		})
	}
}

// A base that no archive takes is removed: too much has changed, the archive must be a folder, no push came, the server stops or was killed.
func TestABaseWrittenAheadIsDropped(t *testing.T) {
	for name, drop := range map[string]func(s *site){
		"much has changed": func(s *site) {
			for i := range 30 {
				s.write(fmt.Sprintf("d%d/f%d", i%5, i), "other")
			}
			require.False(s.t, s.good().Incremental())
		},
		"a folder": func(s *site) {
			a, err := s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts(), Folder: func() bool { return true }})
			require.NoError(s.t, err)
			require.Nil(s.t, a.Packed)
			s.prepare()
			require.NoFileExists(s.t, s.aheadFile(), "the next one would be a folder, too")
		},
		"damaged": func(s *site) {
			require.NoError(s.t, os.WriteFile(s.aheadFile(), []byte("damaged"), 0o600))
			require.False(s.t, s.good().Incremental())
		},
		"no push":          func(s *site) { s.compact(archive.Policy{Keep: 3}) },
		"the server stops": func(s *site) { s.s.DropAhead() },
		"the server was killed": func(s *site) {
			require.NoError(s.t, s.s.Sweep())
			require.FileExists(s.t, s.aheadFile(), "it is in use")
			s.use(archive.Config{Reserve: noReserve, AtOnce: 1})
			require.NoError(s.t, s.s.Sweep())
			s.good()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := firstDeployment(t)
			s.prepare()
			require.FileExists(t, s.aheadFile())
			drop(s)
			require.NoFileExists(t, s.aheadFile())
			s.requireNoLeftovers()
			all, err := s.s.List()
			require.NoError(t, err)
			p, err := s.s.Verify(context.Background(), all[0].ID)
			require.NoError(t, err)
			require.True(t, p.Exact(), "%v", p.Differences)
		})
	}
}

// While many projects are deployed, their archives have the processors.
func TestNoBaseWhileManyAreDeployed(t *testing.T) {
	s := firstDeployment(t)
	b := archive.NewBackground()
	s.use(archive.Config{Reserve: noReserve, AtOnce: 1, Background: b})
	var resume []func()
	for i := range runtime.GOMAXPROCS(0) {
		other := archive.New(layout.Root(t.TempDir()).Project(fmt.Sprint("other", i)), archive.Config{Background: b})
		resume = append(resume, other.Pause(), other.Pause())
	}
	s.prepare()
	require.NoFileExists(t, s.aheadFile())
	resume[0]()
	s.prepare()
	require.NoFileExists(t, s.aheadFile(), "the other is still paused")
	resume[1]()
	s.prepare()
	require.FileExists(t, s.aheadFile())
	s.s.DropAhead()
	own := s.s.Pause()
	require.NoError(t, s.s.Ahead(context.Background()))
	require.FileExists(t, s.aheadFile(), "it does not count itself")
	own()
	s.s.DropAhead()
}

// A push arrives while the base is written: its archive waits for that and takes it, or is made without; an end of the writing's context leaves nothing.
func TestAPushArrivesWhileTheBaseIsWritten(t *testing.T) {
	for n := range 12 {
		s := firstDeployment(t)
		ctx, stop := context.WithCancel(context.Background())
		var writing sync.WaitGroup
		writing.Go(func() { _, _ = s.s.Prepare(ctx, archive.Policy{Keep: 3}) })
		if n%3 == 0 {
			stop()
		}
		resume := s.s.Pause()
		s.write("d1/f1", fmt.Sprint(n))
		a := s.good()
		resume()
		writing.Wait()
		stop()
		for _, check := range []func(context.Context, string) (tree.Proof, error){s.s.Verify, s.s.CompareLive} {
			p, err := check(context.Background(), a.ID)
			require.NoError(t, err)
			require.True(t, p.Exact(), "%v", p.Differences)
		}
		s.s.DropAhead()
		s.requireNoLeftovers()
	}
}
