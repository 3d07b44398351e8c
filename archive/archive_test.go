package archive_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
)

func TestMakeIsExactAndRollbackBringsItBack(t *testing.T) {
	s := newSite(t)
	exotic(t, s.live(""))
	require.NoError(t, os.MkdirAll(s.p.Pillar(), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.p.Pillar(), "init.sls"), []byte("a: 1\n"), 0o600))
	before, pillar := snapshot(t, s.p.Live()), snapshot(t, s.p.Pillar())

	a := s.make()
	requireSame(t, before, snapshot(t, s.p.Live())) // an archive changes nothing
	requireSame(t, before, snapshot(t, filepath.Join(a.Path, "project")))
	requireSame(t, pillar, snapshot(t, filepath.Join(a.Path, "pillar")))
	require.Zero(t, a.Made.Notes)
	require.True(t, a.Whole)
	requireNoSharedInode(t, s.p.Live(), a.Path)
	proof, err := s.s.Verify(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, proof.Exact(), "%v", proof.Differences)
	require.Equal(t, proof.Entries, proof.Proved)

	// The failed deployment: creates, removes, changes in place, changes modes.
	s.write("created/by/it", "new")
	s.write("plain", "overwritten")
	require.NoError(t, os.Remove(s.live("hard1")))
	require.NoError(t, os.Chmod(s.live("big"), 0o777))
	require.NoError(t, os.RemoveAll(s.live("deep")))
	require.NoError(t, os.WriteFile(filepath.Join(s.p.Pillar(), "init.sls"), []byte("a: 2\n"), 0o600))
	failed := snapshot(t, s.p.Live())

	res, err := s.s.Rollback(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, res.Proof.Exact(), "%v", res.Proof.Differences)
	require.Equal(t, res.Proof.Entries, res.Proof.Proved)
	require.Equal(t, "exchange", res.Method)
	require.True(t, res.FailedKept)
	requireSame(t, before, snapshot(t, s.p.Live()))
	requireSame(t, pillar, snapshot(t, s.p.Pillar()))
	requireSame(t, failed, snapshot(t, filepath.Join(a.Path, "project.failed")))

	again, err := s.s.Rollback(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, again.Already)
	requireSame(t, before, snapshot(t, s.p.Live()))

	got, err := s.s.Show(a.ID)
	require.NoError(t, err)
	require.False(t, got.Whole)
	require.True(t, got.FailedTree)
	_, err = s.s.Verify(context.Background(), a.ID)
	require.ErrorIs(t, err, archive.ErrNotWhole)
}
