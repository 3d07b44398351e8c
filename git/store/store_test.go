package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/object"
	"corpus-git/internal/testutil/gittest"
)

func TestIngestAndMigrate(t *testing.T) {
	src := history(t, 12)
	db := newDB(t)
	q, in := ingest(t, db, "one", gittest.Pack(t, src, []string{"master~4"}))
	tip := gittest.Hash(t, src, "master~4")
	require.True(t, in.Has(tip))
	ok, err := db.Has(tip)
	require.NoError(t, err)
	require.False(t, ok, "invisible before Migrate")
	same(t, q, src, gittest.Objects(t, src, "master~4"))
	require.NoError(t, q.Migrate())
	require.NoError(t, q.Migrate())
	require.NoError(t, q.Discard())
	require.NoDirExists(t, q.dir)
	same(t, db, src, gittest.Objects(t, src, "master~4"))

	// A thin pack that builds on it.
	q, in = ingest(t, db, "two", gittest.Pack(t, src, []string{"master", "^master~4"}, "--thin", "--delta-base-offset"))
	require.Positive(t, in.Added)
	require.NoError(t, q.Migrate())
	same(t, db, src, gittest.Objects(t, src, "master"))
	gittest.Git(t, db.Dir(), "update-ref", "refs/heads/master", gittest.Hash(t, src, "master").String())
	gittest.Git(t, db.Dir(), "fsck", "--strict", "--full", "--no-dangling")

	tip = gittest.Hash(t, src, "master")
	c, err := object.ReadHead(db, tip)
	require.NoError(t, err)
	data, err := object.Get(db, c.Tree, plumbing.TreeObject)
	require.NoError(t, err)
	require.NotEmpty(t, data)
	_, err = object.ReadHead(db, c.Tree)
	require.ErrorAs(t, err, new(*object.WrongTypeError))
	_, _, err = db.Get(plumbing.NewHash("1234567890123456789012345678901234567890"))
	require.ErrorIs(t, err, ErrNotFound)
}

func TestWritePackIsGoodForGit(t *testing.T) {
	src := history(t, 30)
	db := newDB(t)
	for i, revs := range [][]string{{"master~20"}, {"master~10", "^master~20"}, {"master", "^master~10"}} {
		q, _ := ingest(t, db, fmt.Sprint("q", i), gittest.Pack(t, src, revs, "--thin", "--delta-base-offset"))
		require.NoError(t, q.Migrate())
	}
	loose, err := db.Put(plumbing.BlobObject, []byte("loose\n"))
	require.NoError(t, err)
	all := append(gittest.Objects(t, src, "master"), loose)
	for _, ofs := range []bool{true, false} {
		var b bytes.Buffer
		_, err := WritePack(context.Background(), &b, db, append(all, all[0]), PackOptions{OfsDelta: ofs})
		require.NoError(t, err)
		dst := t.TempDir()
		gittest.Git(t, dst, "init", "-q", "--bare")
		gittest.Output(t, dst, b.Bytes(), "index-pack", "--stdin", "--strict")
		gittest.Git(t, dst, "update-ref", "refs/heads/master", gittest.Hash(t, src, "master").String())
		gittest.Git(t, dst, "fsck", "--strict", "--full", "--no-dangling")
	}
	// Thin: deltas on what the receiver has.
	var b bytes.Buffer
	has := map[plumbing.Hash]bool{}
	for _, h := range gittest.Objects(t, src, "master~10") {
		has[h] = true
	}
	_, err = WritePack(context.Background(), &b, db, gittest.Objects(t, src, "master", "^master~10"), PackOptions{OfsDelta: true, Has: func(h plumbing.Hash) bool { return has[h] }})
	require.NoError(t, err)
	dst := filepath.Join(t.TempDir(), "c.git")
	gittest.Git(t, src, "clone", "-q", "--bare", "--no-local", src, dst)
	gittest.Git(t, dst, "update-ref", "refs/heads/master", gittest.Hash(t, src, "master~10").String())
	gittest.Git(t, dst, "prune", "--expire=now")
	gittest.Git(t, dst, "repack", "-adq")
	gittest.Output(t, dst, b.Bytes(), "index-pack", "--stdin", "--fix-thin", "--strict")
	gittest.Git(t, dst, "update-ref", "refs/heads/master", gittest.Hash(t, src, "master").String())
	gittest.Git(t, dst, "fsck", "--strict", "--full", "--no-dangling")

	_, err = WritePack(context.Background(), io.Discard, db, []plumbing.Hash{plumbing.NewHash("1234567890123456789012345678901234567890")}, PackOptions{})
	require.ErrorIs(t, err, ErrNotFound)
}

// What is published is visible at once, and Migrate after it completes what settle has not done yet. The folder goes with Migrate or Discard.
func TestPublishThenSettle(t *testing.T) {
	src := history(t, 6)
	db := newDB(t)
	for i, revs := range [][]string{{"master~3"}, {"master", "^master~3"}} {
		q, in := ingest(t, db, fmt.Sprint("q", i), gittest.Pack(t, src, revs))
		require.NoError(t, q.Stage(0))
		require.FileExists(t, filepath.Join(db.main.dir, "pack", filepath.Base(in.Pack)))
		has, err := db.Has(gittest.Hash(t, src, revs[0]))
		require.NoError(t, err)
		require.False(t, has, "its names alone show nothing")
		settle, err := q.Publish()
		require.NoError(t, err)
		same(t, db, src, gittest.Objects(t, src, revs[0]))
		again, err := q.Publish()
		require.NoError(t, err)
		require.DirExists(t, q.dir)
		// Something in the place of the folder: the name can't be made durable.
		packs := filepath.Join(db.main.dir, "pack")
		require.NoError(t, os.Rename(packs, packs+"-away"))
		require.Error(t, settle(0))
		require.DirExists(t, q.dir)
		require.NoError(t, os.Rename(packs+"-away", packs))
		if i == 0 {
			require.NoError(t, again(0))
			require.NoError(t, q.Discard())
		} else {
			require.NoError(t, q.Migrate())
		}
		require.NoDirExists(t, q.dir)
		require.NoError(t, settle(0))
		require.NoError(t, q.Discard())
		require.NoDirExists(t, q.dir)
	}
	same(t, db, src, gittest.Objects(t, src, "master"))
	gittest.Git(t, db.Dir(), "fsck", "--strict", "--full", "--no-dangling")
}
