package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/object"
	"corpus-git/internal/testutil/gittest"
)

func TestConnected(t *testing.T) {
	src := history(t, 10)
	more(t, src, 10, 5)
	gittest.Git(t, src, "tag", "-a", "-m", "t", "v1", "master~2")
	base, tip, tag := gittest.Hash(t, src, "master~5"), gittest.Hash(t, src, "master"), gittest.Hash(t, src, "v1")
	// A commit whose tree reuses an old one that is not from a parent of it.
	gittest.Git(t, src, "checkout", "-q", "-b", "revert", "master~3")
	gittest.Git(t, src, "rm", "-q", "-r", "d1")
	gittest.Git(t, src, "commit", "-q", "-m", "drop d1")
	gittest.Git(t, src, "commit", "-q", "--allow-empty", "-m", "empty")
	dropped := gittest.Hash(t, src, "revert")
	gittest.Git(t, src, "checkout", "-q", "master~8", "--", "d1")
	gittest.Git(t, src, "commit", "-q", "-m", "old d1 again")
	again := gittest.Hash(t, src, "revert")

	db := newDB(t)
	q, _ := ingest(t, db, "a", gittest.Pack(t, src, []string{base.String()}))
	require.NoError(t, q.Connected(t.Context(), Connect{Tips: []plumbing.Hash{base}}))
	require.NoError(t, q.Migrate())
	refs := []plumbing.Hash{base}

	q, in := ingest(t, db, "b", gittest.Pack(t, src, []string{"master", "v1", "revert", "^" + base.String()}, "--thin", "--delta-base-offset"))
	for _, tips := range [][]plumbing.Hash{{tip}, {tag}, {again}, {tip, tag, again, plumbing.ZeroHash}, {base}, {gittest.Hash(t, src, "master~7")}, {gittest.Hash(t, src, "master^{tree}")}} {
		require.NoError(t, q.Connected(t.Context(), Connect{Tips: tips, Refs: refs}))
	}
	ok, err := newChecker(t.Context(), q, in, Connect{Refs: refs}).complete([]plumbing.Hash{tip, dropped})
	require.NoError(t, err)
	require.True(t, ok || in.Objects < fewObjects)

	// Nothing is reached from a ref, but everything exists: it is followed, and is complete.
	require.NoError(t, q.Connected(t.Context(), Connect{Tips: []plumbing.Hash{tip}}))
	// A ref that points to nothing proves nothing.
	require.NoError(t, q.Connected(t.Context(), Connect{Tips: []plumbing.Hash{tip}, Refs: []plumbing.Hash{plumbing.NewHash(strings.Repeat("12", 20))}}))
	err = q.Connected(t.Context(), Connect{Tips: []plumbing.Hash{plumbing.NewHash(strings.Repeat("12", 20))}, Refs: refs})
	require.ErrorAs(t, err, new(*MissingError))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k := newChecker(ctx, q, in, Connect{})
	for err = nil; err == nil; err = k.step() {
		require.Less(t, k.steps, 1000)
	}
	require.ErrorIs(t, err, context.Canceled)
}

// A pack that lacks something it should hold.
func TestMissingObjects(t *testing.T) {
	src := history(t, 6)
	gittest.WriteFile(t, filepath.Join(src, "deep/er/file"), "only here\n")
	gittest.Git(t, src, "add", "-A")
	gittest.Git(t, src, "commit", "-q", "-m", "deep")
	tip := gittest.Hash(t, src, "master")
	all := gittest.Objects(t, src, "master")
	without := func(h plumbing.Hash) []byte {
		var in bytes.Buffer
		for _, o := range all {
			if o != h {
				fmt.Fprintln(&in, o)
			}
		}
		return gittest.Output(t, src, in.Bytes(), "pack-objects", "--stdout", "-q")
	}
	for rev, path := range map[string]string{
		"master~3": "", "master:deep/er/file": "deep/er/file", "master:deep/er": "deep/er", "master~2^{tree}": "",
	} {
		h := gittest.Hash(t, src, rev)
		db := newDB(t)
		q, in := ingest(t, db, "x", without(h))
		err := q.Connected(t.Context(), Connect{Tips: []plumbing.Hash{tip}})
		var missing *MissingError
		require.ErrorAs(t, err, &missing, rev)
		require.Equal(t, h, missing.Hash)
		require.Equal(t, path, missing.Path)
		ok, err := newChecker(t.Context(), q, in, Connect{}).complete([]plumbing.Hash{tip})
		require.NoError(t, err)
		require.False(t, ok)
		// The same object on disk, but reached from no ref, and without what it needs itself.
		typ, data := plumbing.CommitObject, []byte(nil)
		switch rev {
		case "master:deep/er":
			typ = plumbing.TreeObject
			data = gittest.Output(t, src, nil, "cat-file", "tree", h.String())
			put, err := db.Put(typ, data)
			require.NoError(t, err)
			require.Equal(t, h, put)
			require.NoError(t, q.Connected(t.Context(), Connect{Tips: []plumbing.Hash{tip}}), "its blob is in the pack")
		case "master~3":
			data = gittest.Output(t, src, nil, "cat-file", "commit", h.String())
			_, err := db.Put(typ, data)
			require.NoError(t, err)
			require.NoError(t, q.Connected(t.Context(), Connect{Tips: []plumbing.Hash{tip}}))
		}
		require.NoError(t, q.Discard())
	}
	// That an object exists is not enough.
	db := newDB(t)
	for _, rev := range []string{"master", "master^{tree}"} {
		h := gittest.Hash(t, src, rev)
		typ, err := plumbing.ParseObjectType(strings.TrimSpace(gittest.Git(t, src, "cat-file", "-t", h.String())))
		require.NoError(t, err)
		_, err = db.Put(typ, gittest.Output(t, src, nil, "cat-file", typ.String(), h.String()))
		require.NoError(t, err)
	}
	require.ErrorAs(t, Connected(t.Context(), db, Connect{Tips: []plumbing.Hash{tip}}), new(*MissingError))
	require.NoError(t, Connected(t.Context(), db, Connect{Tips: []plumbing.Hash{tip}, Refs: []plumbing.Hash{tip}}))
}

func TestShallowPush(t *testing.T) {
	src := history(t, 6)
	clone := t.TempDir()
	gittest.Git(t, clone, "clone", "-q", "--depth", "2", "file://"+src, ".")
	more(t, clone, 6, 1)
	tip, root := gittest.Hash(t, clone, "HEAD"), gittest.Hash(t, clone, "HEAD~2")
	data := gittest.Pack(t, clone, []string{"HEAD"})

	db := newDB(t)
	q, _ := ingest(t, db, "s", data)
	var shallow *ShallowError
	require.ErrorAs(t, q.Connected(t.Context(), Connect{Tips: []plumbing.Hash{tip}, Shallow: []plumbing.Hash{root}}), &shallow)
	require.Equal(t, []plumbing.Hash{root}, shallow.Roots)
	require.ErrorAs(t, q.Connected(t.Context(), Connect{Tips: []plumbing.Hash{tip}}), new(*MissingError), "a client that does not say that it is shallow")

	// The same push if the history already exists.
	db = newDB(t)
	q, _ = ingest(t, db, "h", gittest.Pack(t, src, []string{"master"}))
	require.NoError(t, q.Migrate())
	q, _ = ingest(t, db, "s", data)
	require.NoError(t, q.Connected(t.Context(), Connect{Tips: []plumbing.Hash{tip}, Refs: []plumbing.Hash{gittest.Hash(t, src, "master")}, Shallow: []plumbing.Hash{root}}))
}

// A tag of a tree was accepted although objects of the tree were missing, and clones failed from then on: the tree counted as seen before it was examined.
// The same for objects that are named as another type than they have.
func TestTipsThatAreNotWhole(t *testing.T) {
	db := newDB(t)
	put := func(typ plumbing.ObjectType, data string) plumbing.Hash {
		h, err := db.Put(typ, []byte(data))
		require.NoError(t, err)
		return h
	}
	entry := func(mode, name string, h plumbing.Hash) string { return mode + " " + name + "\x00" + string(h[:]) }
	const who = "A <a@example.org> 1700000000 +0000\n"
	tag := func(typ plumbing.ObjectType, h plumbing.Hash) plumbing.Hash {
		return put(plumbing.TagObject, "object "+h.String()+"\ntype "+typ.String()+"\ntag t\ntagger "+who+"\nt\n")
	}
	commit := func(tree plumbing.Hash) plumbing.Hash {
		return put(plumbing.CommitObject, "tree "+tree.String()+"\nauthor "+who+"committer "+who+"\nc\n")
	}
	gone := plumbing.NewHash(strings.Repeat("12", 20))
	blob := put(plumbing.BlobObject, "here")
	whole := put(plumbing.TreeObject, entry("100644", "a", blob))
	lacks := put(plumbing.TreeObject, entry("100644", "a", gone))
	deep := put(plumbing.TreeObject, entry("40000", "d", lacks))
	lacksTree := put(plumbing.TreeObject, entry("40000", "d", gone))
	asTree := put(plumbing.TreeObject, entry("40000", "d", blob))
	asBlob := put(plumbing.TreeObject, entry("100644", "a", whole))
	both := put(plumbing.TreeObject, entry("100644", "a", blob)+entry("40000", "d", asTree))
	good := commit(whole)
	goodTag := tag(plumbing.CommitObject, good)
	for story, tip := range map[string]plumbing.Hash{
		"a tree":                                  lacks,
		"a tree with a tree":                      deep,
		"a tree whose tree is missing":            lacksTree,
		"a tag of a tree":                         tag(plumbing.TreeObject, lacks),
		"a tag of a deep tree":                    tag(plumbing.TreeObject, deep),
		"a tag of a tag of a tree":                tag(plumbing.TagObject, tag(plumbing.TreeObject, deep)),
		"a tag of a blob that is missing":         tag(plumbing.BlobObject, gone),
		"a commit":                                commit(lacks),
		"a ref that is broken":                    gone,
		"a tree that has a blob for a tree":       asTree,
		"a tree that has a tree for a file":       asBlob,
		"a blob as a file and as a tree":          both,
		"a commit of that":                        commit(both),
		"a commit of a blob":                      commit(blob),
		"a tag that takes a tree for a commit":    tag(plumbing.CommitObject, whole),
		"a tag that takes a commit for a tree":    tag(plumbing.TreeObject, good),
		"a tag that takes a commit for a blob":    tag(plumbing.BlobObject, good),
		"a tag that takes a tag for a commit":     tag(plumbing.CommitObject, goodTag),
		"a tag of a tag, which is taken for less": tag(plumbing.TagObject, tag(plumbing.TreeObject, blob)),
	} {
		t.Run(story, func(t *testing.T) {
			for _, refs := range [][]plumbing.Hash{nil, {good}, {goodTag, good}, {gone, good}} {
				err := Connected(t.Context(), db, Connect{Tips: []plumbing.Hash{tip}, Refs: refs})
				require.Error(t, err)
				var missing *MissingError
				var wrong *object.WrongTypeError
				require.True(t, errors.As(err, &missing) || errors.As(err, &wrong), "%v", err)
			}
		})
	}
	for _, tip := range []plumbing.Hash{whole, good, goodTag, tag(plumbing.TreeObject, whole), tag(plumbing.BlobObject, blob), blob} {
		require.NoError(t, Connected(t.Context(), db, Connect{Tips: []plumbing.Hash{tip}}))
		require.NoError(t, Connected(t.Context(), db, Connect{Tips: []plumbing.Hash{tip, tip}, Refs: []plumbing.Hash{good}}))
	}
}
