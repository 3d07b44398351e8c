package archive

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
)

// What is remembered of a manifest is the content of its file, until the file is replaced.
func TestRecentManifests(t *testing.T) {
	m := vfstest.NewMem(time.Unix(1_700_000_000, 0))
	s, a := concluded(t, m, 2)
	s.cfg.NoSpare = false
	made, err := s.Make(context.Background(), MakeRequest{Facts: Facts{ID: "next", Project: "app", At: a.At.Add(time.Minute)}})
	require.NoError(t, err)
	read, err := s.manifest(made.Path)
	require.NoError(t, err)
	st, err := s.fs.Lstat(filepath.Join(made.Path, manifestFile))
	require.NoError(t, err)
	require.NotNil(t, s.recent.find(tree.IdentOf(st), st.Size).m)
	for range 2 {
		got, err := s.recentManifest(made.Path)
		require.NoError(t, err)
		require.Equal(t, read, got)
	}
	// Another file of that name is read.
	read.Scanned++
	require.NoError(t, vfs.WriteFileAtomic(s.fs, filepath.Join(made.Path, manifestFile), read.Encode(), 0o600))
	got, err := s.recentManifest(made.Path)
	require.NoError(t, err)
	require.Equal(t, read, got)
	require.Positive(t, s.cfg.Background.recent.Load())
	_, err = s.Compact(context.Background(), Policy{Keep: 10})
	require.NoError(t, err)
	require.NoError(t, s.Wait())
}

// No making or packing of archives changes what is remembered of manifests.
func TestRecentManifestsStayAsRead(t *testing.T) {
	m := vfstest.NewMem(time.Unix(1_700_000_000, 0))
	s, a := concluded(t, m, 2)
	s.cfg.NoSpare = false
	for n := range 6 {
		s.cfg.AtOnce = int64(1 + 1000*(n%2)) // every other one is a folder
		m.Advance(time.Minute)
		made, err := s.Make(context.Background(), MakeRequest{Facts: Facts{ID: fmt.Sprint("next", n), Project: "app", At: a.At.Add(time.Duration(n+1) * time.Second)}})
		require.NoError(t, err)
		require.NoError(t, s.SetVerdict(made.ID, Good))
		require.Equal(t, n%2 == 0, made.Packed != nil)
		read, err := s.manifest(made.Path)
		require.NoError(t, err)
		st, err := s.fs.Lstat(filepath.Join(made.Path, manifestFile))
		require.NoError(t, err)
		require.Equal(t, read, s.recent.find(tree.IdentOf(st), st.Size).m)
	}
	require.NoError(t, s.Wait())
}

// What is remembered of an archive that shares a base are the names in its own files, which the next one would otherwise read.
func TestNewerPathsAreThoseOfItsOwnFiles(t *testing.T) {
	m := vfstest.NewMem(time.Unix(1_700_000_000, 0))
	s, a := concluded(t, m, 1)
	require.NoError(t, s.SetVerdict(a.ID, Good))
	s.cfg.NoSpare, s.cfg.AtOnce = false, 1
	for i := range 40 {
		require.NoError(t, vfs.WriteFileAtomic(s.fs, fmt.Sprintf("%s/file%d", s.project.Live(), i), []byte("some text"), 0o644))
	}
	shared := 0
	for n := range 5 {
		m.Advance(time.Minute)
		s.cfg.Now = m.Now
		if n > 0 {
			require.NoError(t, vfs.WriteFileAtomic(s.fs, fmt.Sprintf("%s/file%d", s.project.Live(), n), []byte("another text"), 0o644))
		}
		made, err := s.Make(context.Background(), MakeRequest{Facts: Facts{ID: fmt.Sprint("next", n), Project: "app", At: a.At.Add(time.Duration(n+1) * time.Second)}})
		require.NoError(t, err)
		require.NoError(t, s.SetVerdict(made.ID, Good))
		require.NotNil(t, made.Packed)
		_, newer, err := s.recentPaths(made.Path)
		require.NoError(t, err)
		if !made.Packed.shares() {
			require.Nil(t, newer)
			continue
		}
		shared++
		require.Contains(t, newer, fmt.Sprintf("project/file%d", n))
		own := map[string]bool{}
		for _, tr := range made.Trees {
			require.NoError(t, s.readTar(made.packedPath(tr), nil, io.Discard, func(h *tar.Header, _ io.Reader) error {
				own[strings.TrimSuffix(h.Name, "/")] = true
				return nil
			}))
		}
		require.Equal(t, own, newer)
		// With the names and without them, the next archive would share the same.
		next := Archive{Record: Record{Facts: Facts{ID: "next"}, Trees: made.Trees}}
		entries := func() *tree.Manifest {
			m, err := s.manifest(made.Path)
			require.NoError(t, err)
			return m
		}
		w := &compaction{s: s, ctx: context.Background(), front: true}
		all, err := s.List()
		require.NoError(t, err)
		with, err := w.increment(all, next, entries())
		require.NoError(t, err)
		s.recent.drop(&s.cfg.Background.recent, &s.cfg.Background.large)
		without, err := w.increment(all, next, entries())
		require.NoError(t, err)
		require.Equal(t, without.holds, with.holds)
	}
	require.Positive(t, shared)
}

// However many manifests there are, no more entries are kept than the limits allow, and none are counted that are not kept.
func TestRecentManifestsAreBounded(t *testing.T) {
	var total, large atomic.Int64
	one, two, three := &recent{}, &recent{}, &recent{}
	for i := range uint64(20) {
		for _, r := range []*recent{one, two, three} {
			r.put(tree.Ident{Ino: i}, 1, &tree.Manifest{Entries: make([]tree.Entry, 1+10_000*(i%6))}, nil, &total)
			require.LessOrEqual(t, len(r.all), recentCount)
			require.LessOrEqual(t, r.entries, int64(recentEach))
			require.LessOrEqual(t, total.Load(), int64(recentAll))
			require.Equal(t, one.entries+two.entries+three.entries, total.Load())
		}
	}
	require.Nil(t, one.find(tree.Ident{Ino: 0}, 1).m)
	for _, r := range []*recent{one, two, three} {
		r.drop(&total, &large)
		require.Empty(t, r.all)
	}
	require.Zero(t, total.Load())
}
