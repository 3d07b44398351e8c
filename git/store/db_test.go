package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"corpus-git/git/fsck"
	"corpus-git/git/pack"
	"corpus-git/internal/testutil/gittest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

func TestInitIsARepository(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r.git")
	require.NoError(t, Init(dir))
	require.NoError(t, Init(dir), "again")
	require.Equal(t, "true", gittest.Git(t, dir, "rev-parse", "--is-bare-repository"))
	require.Equal(t, "refs/heads/master", gittest.Git(t, dir, "symbolic-ref", "HEAD"))
	require.Empty(t, gittest.Git(t, dir, "count-objects", "--human-readable", "-v")[:0])
	src := history(t, 2)
	gittest.Git(t, src, "push", "-q", dir, "master")
	gittest.Git(t, dir, "fsck", "--strict")
	// Interrupted before its HEAD, it is completed by the next call.
	require.NoError(t, os.Remove(filepath.Join(dir, "HEAD")))
	require.NoError(t, Init(dir))
	gittest.Git(t, dir, "fsck", "--strict")
	_, err := Open(filepath.Join(dir, "none"), Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Objects that git wrote: loose, packed, and in an alternate.
func TestReadsRepositoriesOfGit(t *testing.T) {
	src := history(t, 8)
	bare := filepath.Join(t.TempDir(), "b.git")
	gittest.Git(t, src, "clone", "-q", "--bare", "--shared", src, bare)
	db, err := Open(bare, Options{})
	require.NoError(t, err)
	defer db.Close()
	all := gittest.Objects(t, src, "master")
	same(t, db, src, all)
	big := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	require.NoError(t, os.WriteFile(filepath.Join(src, "big"), big, 0o644))
	h := plumbing.NewHash(strings.TrimSpace(gittest.Git(t, src, "hash-object", "-w", "big")))
	obj, err := db.Stream(h)
	require.NoError(t, err)
	require.EqualValues(t, len(big), obj.Size)
	got, err := io.ReadAll(obj)
	require.NoError(t, err)
	require.NoError(t, obj.Close())
	require.True(t, bytes.Equal(big, got))

	found, err := db.Abbreviated(h.String()[:8], 10)
	require.NoError(t, err)
	require.Equal(t, []plumbing.Hash{h}, found)
	_, err = db.Abbreviated("ab", 10)
	require.Error(t, err)

	// git packs all of it while the handle is open.
	gittest.Git(t, src, "add", "big")
	gittest.Git(t, src, "commit", "-q", "-m", "big")
	gittest.Git(t, src, "gc", "-q", "--prune=now")
	same(t, db, src, append(all, h))
	list, err := db.Abbreviated(h.String()[:4], 10)
	require.NoError(t, err)
	require.Contains(t, list, h)
	_, _, ok, err := db.Locate(h)
	require.NoError(t, err)
	require.True(t, ok)
}

func TestPut(t *testing.T) {
	db := newDB(t)
	for _, data := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("y"), 100_000)} {
		h, err := db.Put(plumbing.BlobObject, data)
		require.NoError(t, err)
		again, err := db.Put(plumbing.BlobObject, data)
		require.NoError(t, err)
		require.Equal(t, h, again)
		require.Equal(t, string(data), gittest.Git(t, db.Dir(), "cat-file", "blob", h.String()))
		typ, size, err := db.Header(h)
		require.NoError(t, err)
		require.Equal(t, plumbing.BlobObject, typ)
		require.EqualValues(t, len(data), size)
		_, _, ok, err := db.Locate(h)
		require.NoError(t, err)
		require.False(t, ok)
	}
	gittest.Git(t, db.Dir(), "fsck", "--strict")
}

func TestBrokenLooseObjects(t *testing.T) {
	db := newDB(t)
	h, err := db.Put(plumbing.BlobObject, bytes.Repeat([]byte("some text "), 1000))
	require.NoError(t, err)
	name := db.main.loosePath(h)
	good, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(name, 0o644))
	for n := range len(good) {
		require.NoError(t, os.WriteFile(name, good[:n], 0o644))
		_, _, err := db.Get(h)
		require.ErrorIs(t, err, pack.ErrCorrupt, "cut after %d bytes", n)
	}
	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	require.NoError(t, os.WriteFile(name, bad, 0o644))
	_, _, err = db.Get(h)
	require.ErrorIs(t, err, pack.ErrCorrupt)
}

func TestQuarantineNamesAndSweep(t *testing.T) {
	db := newDB(t)
	for _, id := range []string{"", "..", "a/b", "a b", ".x", strings.Repeat("a", 65)} {
		_, err := db.NewQuarantine(id)
		require.Error(t, err, id)
	}
	q, err := db.NewQuarantine("one")
	require.NoError(t, err)
	_, err = db.NewQuarantine("one")
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = db.NewQuarantine("two")
	require.NoError(t, err)
	there := func() (n int) {
		for _, id := range []string{"one", "two"} {
			if _, err := os.Stat(filepath.Join(db.main.dir, "incoming-"+id)); err == nil {
				n++
			}
		}
		return n
	}
	open := func(o Options) {
		again, err := Open(db.Dir(), o)
		require.NoError(t, err)
		require.NoError(t, again.Close())
	}
	open(Options{})
	require.Equal(t, 2, there(), "young ones stay")
	open(Options{Now: func() time.Time { return time.Now().Add(25 * time.Hour) }, KeepQuarantine: func(id string) bool { return id == "one" }})
	require.Equal(t, 1, there())
	open(Options{StaleAfter: -1})
	require.Equal(t, 0, there())
	require.NoError(t, q.Discard())
	_, err = db.Quarantine("one")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A migration interrupted anywhere is completed by another call; a discard before that leaves the repository whole.
func TestMigrateIsIdempotent(t *testing.T) {
	src := history(t, 5)
	data := gittest.Pack(t, src, []string{"master"})
	all := gittest.Objects(t, src, "master")
	for cut, ext := range []string{"", ".pack", ".rev", ".idx"} {
		for _, finish := range []bool{true, false} {
			db := newDB(t)
			_, in := ingest(t, db, "m", data)
			for _, name := range []string{in.Pack, in.Rev, in.Idx}[:cut] {
				require.NoError(t, os.Rename(name, filepath.Join(db.main.dir, "pack", filepath.Base(name))))
			}
			again, err := Open(db.Dir(), Options{})
			require.NoError(t, err)
			q, err := again.Quarantine("m")
			require.NoError(t, err)
			if finish {
				require.NoError(t, q.Migrate(), ext)
				same(t, q, src, all)
				same(t, again, src, all)
			} else {
				require.NoError(t, q.Discard())
				require.NoError(t, q.Discard())
				require.NoError(t, q.Migrate(), "nothing")
			}
			require.NoDirExists(t, q.dir)
			require.NoError(t, again.Close())
			// The same push again.
			again, err = Open(db.Dir(), Options{})
			require.NoError(t, err)
			q, _ = ingest(t, again, "m", data)
			require.NoError(t, q.Migrate())
			same(t, again, src, all)
			gittest.Git(t, db.Dir(), "fsck", "--full", "--strict", "--no-dangling")
			require.NoError(t, again.Close())
		}
	}
}

// What was staged is visible to nobody, stays readable in the quarantine, is removed by a discard, and is a leftover after a crash.
func TestStage(t *testing.T) {
	src := history(t, 5)
	data := gittest.Pack(t, src, []string{"master"})
	all := gittest.Objects(t, src, "master")
	db := newDB(t)
	packs := filepath.Join(db.main.dir, "pack")
	left := func() []os.DirEntry {
		list, err := os.ReadDir(packs)
		require.NoError(t, err)
		return list
	}
	q, _ := ingest(t, db, "m", data)
	require.NoError(t, q.Stage(0))
	require.NoError(t, q.Stage(0))
	require.Len(t, left(), 2)
	ok, err := db.Has(gittest.Hash(t, src, "master"))
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, q.Rescan())
	same(t, q, src, all)
	require.NoError(t, q.Discard())
	require.Empty(t, left())

	// A crash after it.
	q, _ = ingest(t, db, "m", data)
	require.NoError(t, q.Stage(0))
	require.NoError(t, os.RemoveAll(q.dir))
	v, err := db.inventory()
	require.NoError(t, err)
	require.Empty(t, v.left, "it may be of a push under way")
	db.opt.Now = func() time.Time { return time.Now().Add(2 * leftAge) }
	v, err = db.inventory()
	require.NoError(t, err)
	require.Len(t, v.left, 2)

	// The same push again, is published, and once more: its pack stays when that one is discarded.
	for range 2 {
		if q, err = db.Quarantine("n"); err == nil {
			require.NoError(t, q.Discard())
		}
		q, _ = ingest(t, db, "n", data)
		require.NoError(t, q.Stage(0))
		require.NoError(t, q.Migrate())
		same(t, db, src, all)
	}
	q, _ = ingest(t, db, "o", data)
	require.NoError(t, q.Stage(0))
	require.NoError(t, q.Discard())
	again, err := Open(db.Dir(), Options{})
	require.NoError(t, err)
	same(t, again, src, all)
	require.NoError(t, again.Close())
	gittest.Git(t, db.Dir(), "fsck", "--full", "--strict", "--no-dangling")
}

// Readers continue while pushes arrive, are published and are repacked.
// Another reader may be the one that notices that packs appeared or disappeared: a look-up that had begun before starts again.
func TestLookUpStartsAgainWhoeverNoticed(t *testing.T) {
	src := history(t, 3)
	db := newDB(t)
	for name, p := range map[string][]string{"one": {"master~2"}, "two": {"master~1", "^master~2"}, "three": {"master", "^master~1"}} {
		q, _ := ingest(t, db, name, gittest.Pack(t, src, p))
		require.NoError(t, q.Migrate())
	}
	gittest.Git(t, db.Dir(), "update-ref", "refs/heads/master", gittest.Hash(t, src, "master").String())
	calls := 0
	ok, err := db.try(func(*source) (bool, error) {
		if calls++; calls > 1 {
			return true, nil
		}
		gittest.Git(t, db.Dir(), "repack", "-adq")
		require.NoError(t, db.Rescan()) // the other reader's
		return false, pack.ErrClosed
	}, func(*source) (bool, error) { return false, nil })
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 2, calls)
}

func TestReadersAndWriters(t *testing.T) {
	src := history(t, 12)
	db := newDB(t)
	q, _ := ingest(t, db, "first", gittest.Pack(t, src, []string{"master~8"}))
	require.NoError(t, q.Migrate())
	old := gittest.Objects(t, src, "master~8")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				for _, h := range old {
					typ, data, err := db.Get(h)
					if err != nil || plumbing.ComputeHash(typ, data) != h {
						t.Errorf("%s: %v", h, err)
						return
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for _, rev := range []string{"master~6", "master~4", "master~2", "master"} {
		q, _ := ingest(t, db, strings.ReplaceAll(rev, "~", "-"), gittest.Pack(t, src, []string{rev, "^" + rev + "~2"}, "--thin"))
		require.NoError(t, q.Connected(t.Context(), Connect{Tips: []plumbing.Hash{gittest.Hash(t, src, rev)}, Refs: []plumbing.Hash{gittest.Hash(t, src, rev+"~2")}}))
		require.NoError(t, q.Migrate())
	}
	gittest.Git(t, db.Dir(), "update-ref", "refs/heads/master", gittest.Hash(t, src, "master").String())
	gittest.Git(t, db.Dir(), "repack", "-adq")
	require.NoError(t, db.Rescan())
	same(t, db, src, gittest.Objects(t, src, "master"))
	close(stop)
	wg.Wait()
}

func TestRefusedObjects(t *testing.T) {
	src := history(t, 1)
	for story, c := range map[string]struct{ rule, file, text string }{
		"a submodule's URL that is an option": {"gitmodulesUrl", ".gitmodules", "[submodule \"a\"]\n\tpath = a\n\turl = -u./payload\n"},
		"a submodule's name that climbs out":  {"gitmodulesName", ".gitmodules", "[submodule \"../../x\"]\n\tpath = a\n\turl = https://example.org/a\n"},
	} {
		gittest.WriteFile(t, filepath.Join(src, c.file), c.text)
		gittest.Git(t, src, "add", "-A")
		gittest.Git(t, src, "commit", "-q", "-m", story)
		db := newDB(t)
		q, err := db.NewQuarantine("x")
		require.NoError(t, err)
		_, err = q.Ingest(t.Context(), bufio.NewReader(bytes.NewReader(gittest.Pack(t, src, []string{"master", "^master~1"}))), IngestOptions{})
		var e *fsck.Error
		require.True(t, errors.As(err, &e), "%s: %v", story, err)
		require.Equal(t, c.rule, e.Rule)
		_, err = q.Ingest(t.Context(), bufio.NewReader(bytes.NewReader(nil)), IngestOptions{})
		require.Error(t, err)
		require.NoError(t, q.Discard())
	}
	blob := strings.TrimSpace(string(gittest.Output(t, src, []byte("x"), "hash-object", "-w", "--stdin")))
	for rule, tree := range map[string]string{
		"hasDotgit":         "100644 .GIT\x00",
		"gitmodulesSymlink": "120000 .gitmodules\x00",
		"hasDotdot":         "100644 ..\x00",
	} {
		raw := plumbing.NewHash(blob)
		h := strings.TrimSpace(string(gittest.Output(t, src, append([]byte(tree), raw[:]...), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")))
		c := strings.TrimSpace(gittest.Git(t, src, "commit-tree", "-m", rule, h))
		db := newDB(t)
		q, err := db.NewQuarantine("x")
		require.NoError(t, err)
		_, err = q.Ingest(t.Context(), bufio.NewReader(bytes.NewReader(gittest.Pack(t, src, []string{c}))), IngestOptions{})
		var e *fsck.Error
		require.True(t, errors.As(err, &e), "%s: %v", rule, err)
		require.Equal(t, rule, e.Rule)
		require.Equal(t, h, e.Hash.String())
		require.NoError(t, q.Discard())
	}
}

// What has its checksum and its size, and is another object than its name says: a pack whose index leads to the wrong places, and a loose object.
func TestRehash(t *testing.T) {
	src := history(t, 12)
	db := newDB(t)
	q, _ := ingest(t, db, "one", gittest.Pack(t, src, []string{"master"}, "--delta-base-offset"))
	require.NoError(t, q.Migrate())
	loose, err := db.Put(plumbing.BlobObject, []byte("one\n"))
	require.NoError(t, err)
	require.NoError(t, db.Rehash(t.Context()))
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, db.Rehash(ended), context.Canceled)

	other, err := db.Put(plumbing.BlobObject, []byte("two\n"))
	require.NoError(t, err)
	text, err := os.ReadFile(db.main.loosePath(other))
	require.NoError(t, err)
	require.NoError(t, os.Remove(db.main.loosePath(loose)))
	require.NoError(t, os.WriteFile(db.main.loosePath(loose), text, 0o444))
	err = db.Rehash(t.Context())
	require.ErrorIs(t, err, pack.ErrCorrupt)
	require.ErrorContains(t, err, loose.String()+" has the hash "+other.String())
	require.NoError(t, os.Remove(db.main.loosePath(loose)))
	require.NoError(t, db.Rehash(t.Context()))

	// Two offsets of the index are exchanged, with the checksums of the bytes there. Source: gitformat-pack(5).
	idx := strings.TrimSuffix(onePack(t, db), ".pack") + ".idx"
	data, err := os.ReadFile(idx)
	require.NoError(t, err)
	n := int(binary.BigEndian.Uint32(data[8+255*4:]))
	for _, table := range []int{8 + 1024 + 20*n, 8 + 1024 + 24*n} {
		first, second := data[table:table+4], data[table+4:table+8]
		was := bytes.Clone(first)
		copy(first, second)
		copy(second, was)
	}
	sum := sha1.Sum(data[:len(data)-20])
	copy(data[len(data)-20:], sum[:])
	require.NoError(t, os.Remove(idx))
	require.NoError(t, os.WriteFile(idx, data, 0o444))
	again, err := Open(db.Dir(), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Close()) })
	require.ErrorIs(t, again.Rehash(t.Context()), pack.ErrCorrupt)
}
