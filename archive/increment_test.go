package archive_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"corpus-git/archive"
)

// burstSite is a site without a spare tree, whose archives are packed at once; all but the first share its content.
func burstSite(t *testing.T, pushes int) (s *site, all []archive.Archive) {
	t.Helper()
	s = newSite(t)
	s.use(archive.Config{Reserve: noReserve, AtOnce: 1})
	exotic(t, s.live(""))
	for i := range 40 {
		s.write(fmt.Sprintf("d%d/f%d", i%4, i), fmt.Sprintf("content %d", i))
	}
	large := make([]byte, 300_000) // as the index of a working copy, which each push changes
	for i := range large {
		large[i] = byte(i * i >> 7)
	}
	for n := range pushes {
		large[1000*n]++
		large = append(large, byte(n))
		s.write("d0/large", string(large))
		s.write("d1/f1", fmt.Sprintf("push %d", n))
		s.write(fmt.Sprintf("d2-x/new%d", n), "new")
		if n == 2 {
			require.NoError(t, os.Remove(s.live("d3/f3")))
		}
		settle()
		a := s.good()
		if n > 0 {
			require.LessOrEqual(t, a.Made.Copied, int64(10), "only what changed since the first, and the file with several names")
		}
		all = append(all, a)
	}
	for i := range all {
		all[i] = s.show(all[i].ID)
	}
	return s, all
}

// Deployments in a burst: each archive is packed at once, the first whole, the others beside it, and each is exactly the tree that it was made of, in every
// form in which it is read.
func TestMakePacksAtOnce(t *testing.T) {
	s, all := burstSite(t, 5)
	require.Zero(t, s.s.Spare())
	require.False(t, all[0].Incremental())
	require.Equal(t, 1, all[0].Schema)
	ino := func(path string) uint64 {
		st, err := os.Stat(path)
		require.NoError(t, err)
		return st.Sys().(*syscall.Stat_t).Ino
	}
	base := ino(filepath.Join(all[0].Path, "project.tar.zst"))
	for i, a := range all {
		p, err := s.s.Verify(context.Background(), a.ID)
		require.NoError(t, err)
		require.True(t, p.Exact(), "%v", p.Differences)
		if i == 0 {
			continue
		}
		require.True(t, a.Incremental())
		require.Equal(t, 2, a.Schema, "earlier programs must refuse it")
		require.Equal(t, base, ino(filepath.Join(a.Path, "project.base.tar.zst")))
		require.Positive(t, a.Shared)
		require.Equal(t, all[0].SharedFile(), a.SharedFile())
		var out bytes.Buffer
		x, err := s.s.Export(context.Background(), a.ID, &out)
		require.NoError(t, err)
		require.Equal(t, a.Sizes.Files+a.Sizes.Dirs+1, x.Entries)
	}
	s.requireNoLeftovers()

	// The archive that it shares with is expired: the content stays for as long as an archive has it.
	_, err := s.s.Rotate(archive.Policy{Keep: 3})
	require.NoError(t, err)
	require.NoError(t, s.s.Wait())
	for n, i := range []int{2, 3} {
		_, err = s.s.Restore(context.Background(), all[i].ID, nil)
		require.NoError(t, err)
		b, err := os.ReadFile(s.live("d1/f1"))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("push %d", n+2), string(b))
		require.NoFileExists(t, s.live("d3/f3"))
		require.NoFileExists(t, s.live(fmt.Sprintf("d2-x/new%d", i+1)))
		p, err := s.s.CompareLive(context.Background(), all[i].ID)
		require.NoError(t, err)
		require.True(t, p.Exact(), "%v", p.Differences)
	}
}

// damage changes one byte near the middle of a compressed file, such that its content is lost: in a long run of zeros some bits only choose which of the previous
// zeros are repeated, and mean the same file when they are flipped.
func damage(t *testing.T, b []byte) {
	t.Helper()
	d, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer d.Close()
	for i := len(b) / 2; i < len(b); i++ {
		b[i] ^= 0x40
		if _, err := d.DecodeAll(b, nil); err != nil {
			return
		}
		b[i] ^= 0x40
	}
	require.Fail(t, "no byte matters")
}

// A damaged base is named by Verify of each archive that has it, and none of them goes live.
func TestADamagedBaseIsFound(t *testing.T) {
	s, all := burstSite(t, 4)
	name := filepath.Join(all[2].Path, "project.base.tar.zst")
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	damage(t, b)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, a := range all {
		p, err := s.s.Verify(context.Background(), a.ID)
		require.True(t, err != nil || !p.Exact(), a.Path)
		_, err = s.s.Restore(context.Background(), a.ID, nil)
		require.ErrorIs(t, err, archive.ErrNotWhole)
	}
	a, err := s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts()})
	require.NoError(t, err, "the next archive is made without it")
	require.False(t, a.Incremental())
	p, err := s.s.Verify(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, p.Exact(), "%v", p.Differences)
}

// What is shared is counted once, also by a limit.
func TestSharedBytesAreCountedOnce(t *testing.T) {
	s, all := burstSite(t, 4)
	var own int64
	for _, a := range all {
		own += a.Own
	}
	require.Equal(t, own+all[1].Shared, archive.Disk(all))
	require.Equal(t, all[1].Shared, all[2].Shared)
	// All archives fit if their base is counted once, and do not if it is counted with each of them.
	limit := archive.Disk(all) + s.s.Spare()
	r, err := s.s.Preview(archive.Policy{Keep: 9, MaxBytes: limit})
	require.NoError(t, err)
	require.Empty(t, r.Removed)
	r, err = s.s.Preview(archive.Policy{Keep: 9, MaxBytes: limit - 1})
	require.NoError(t, err)
	require.Len(t, r.Removed, 1)
}

// When much has changed, an archive is packed whole.
func TestManyChangesArePackedWhole(t *testing.T) {
	s, all := burstSite(t, 3)
	for i := range 40 {
		s.write(fmt.Sprintf("d%d/f%d", i%4, i), fmt.Sprintf("other content %d", i))
	}
	settle()
	require.True(t, s.show(all[1].ID).Incremental())
	a := s.good()
	require.NotNil(t, s.show(a.ID).Packed)
	require.False(t, s.show(a.ID).Incremental())
	p, err := s.s.Verify(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, p.Exact(), "%v", p.Differences)
}
