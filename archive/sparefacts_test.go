package archive_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/internal/vfs"
)

// spareReads counts how often the manifest of the spare tree is opened.
type spareReads struct {
	vfs.OS
	n atomic.Int64
}

func (f *spareReads) OpenFile(name string, flag int, perm uint32) (vfs.File, error) {
	if strings.HasSuffix(name, ".spare/manifest") {
		f.n.Add(1)
	}
	return f.OS.OpenFile(name, flag, perm)
}

// The manifest of the spare tree is read once, and again after it was replaced; a damaged or missing one is not a spare tree, and is made
// again.
func TestTheSpareTreeIsReadOnceAndJudgedAgainWhenItChanges(t *testing.T) {
	s := newSite(t)
	count := &spareReads{}
	s.use(archive.Config{Reserve: noReserve, FS: count})
	s.write("a", strings.Repeat("1", 10_000))
	settle()
	s.good()
	require.True(t, s.compact(archive.Policy{Keep: 3}).Spared)
	before := count.n.Load()
	size := s.s.Spare()
	require.Positive(t, size)
	for range 5 {
		require.Equal(t, size, s.s.Spare())
		made, err := s.s.Prepare(context.Background(), archive.Policy{Keep: 3})
		require.NoError(t, err)
		require.False(t, made)
	}
	require.LessOrEqual(t, count.n.Load(), before+1)

	spare := filepath.Join(s.p.Archives(), ".spare")
	for what, damage := range map[string]func() error{
		"the manifest is cut": func() error { return os.Truncate(filepath.Join(spare, "manifest"), 20) },
		"a byte is another": func() error {
			b, err := os.ReadFile(filepath.Join(spare, "manifest"))
			if err != nil {
				return err
			}
			b[len(b)/2] ^= 1
			return os.WriteFile(filepath.Join(spare, "manifest"), b, 0o600)
		},
		"a tree is gone": func() error { return os.RemoveAll(filepath.Join(spare, "project")) },
		"all is gone":    func() error { return os.RemoveAll(spare) },
	} {
		require.Positive(t, s.s.Spare(), what)
		require.NoError(t, damage(), what)
		made, err := s.s.Prepare(context.Background(), archive.Policy{Keep: 3})
		require.NoError(t, err, what)
		require.True(t, made, what)
		b := s.good()
		s.requireExact(b)
		require.Zero(t, b.Made.Copied, what)
		made, err = s.s.Prepare(context.Background(), archive.Policy{Keep: 3})
		require.NoError(t, err, what)
		require.True(t, made, what)
	}
}
