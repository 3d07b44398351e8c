package receive_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/project"
	"corpus-git/receive/pack"
)

// forge makes packs that no git would.
type forge struct {
	body bytes.Buffer
	n    uint32
	offs []int
}

const forgeHeader = 12

func deflated(data []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

// entryHead is an entry's type and size (gitformat-pack(5)).
func entryHead(typ plumbing.ObjectType, size int) []byte {
	c := byte(typ)<<4 | byte(size&15)
	var out []byte
	for size >>= 4; size > 0; size >>= 7 {
		out = append(out, c|0x80)
		c = byte(size & 0x7f)
	}
	return append(out, c)
}

func (f *forge) raw(parts ...[]byte) *forge {
	f.offs = append(f.offs, forgeHeader+f.body.Len())
	f.n++
	for _, p := range parts {
		f.body.Write(p)
	}
	return f
}

func (f *forge) add(typ plumbing.ObjectType, data []byte) plumbing.Hash {
	f.raw(entryHead(typ, len(data)), deflated(data))
	return plumbing.ComputeHash(typ, data)
}

// commit adds a commit of a tree.
func (f *forge) commit(tree plumbing.Hash) plumbing.Hash {
	return f.add(plumbing.CommitObject, fmt.Appendf(nil, "tree %s\nauthor M <m@example.org> 1 +0000\ncommitter M <m@example.org> 1 +0000\n\nx\n", tree))
}

// ofs adds a delta on the entry with the number to.
func (f *forge) ofs(to int, delta []byte) *forge {
	back := forgeHeader + f.body.Len() - f.offs[to]
	off := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		off = append([]byte{0x80 | byte(back&0x7f)}, off...)
	}
	return f.raw(entryHead(plumbing.OFSDeltaObject, len(delta)), off, deflated(delta))
}

func (f *forge) ref(base plumbing.Hash, delta []byte) *forge {
	return f.raw(entryHead(plumbing.REFDeltaObject, len(delta)), base[:], deflated(delta))
}

// bytes closes the pack: a header that promises count objects, and the trailer.
func (f *forge) bytes(count uint32) []byte {
	out := append([]byte("PACK\x00\x00\x00\x02"), binary.BigEndian.AppendUint32(nil, count)...)
	out = append(out, f.body.Bytes()...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

func (f *forge) done() []byte { return f.bytes(f.n) }

func deltaSize(n int) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

type treeLine struct {
	mode, name string
	hash       plumbing.Hash
}

func treeBytes(lines ...treeLine) []byte {
	var b bytes.Buffer
	for _, l := range lines {
		fmt.Fprintf(&b, "%s %s\x00", l.mode, l.name)
		b.Write(l.hash[:])
	}
	return b.Bytes()
}

// send pushes a pack as the raw protocol has it and gives the whole answer.
func (w *world) send(old, tip string, data []byte) outcome {
	cmd := w.ssh("marie", "git-receive-pack 'app/project.git'")
	cmd.Stdin = strings.NewReader(pkt(old+" "+tip+" refs/heads/main\x00 report-status") + "0000" + string(data))
	return finish(w.t, cmd)
}

// Each entry is one attack, sent over ssh to a server with a live branch. What is wrong is said, nothing is deployed,
// no byte of it stays, and the branch is where it was.
func TestHostilePushes(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.service.PackLimits = pack.Limits{PackBytes: 4 << 20, Objects: 5000, ObjectBytes: 8 << 20, DeltaBytes: 1 << 20, DeltaDepth: 50, TotalBytes: 64 << 20}
	})
	dir := w.clone("a", "app/project.git")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	live := w.git(dir, "rev-parse", "HEAD")
	objects := w.objects("app", project.Code)
	empty := plumbing.ComputeHash(plumbing.TreeObject, nil)
	hello := []byte("hello\n")
	blob := plumbing.ComputeHash(plumbing.BlobObject, hello)

	// ofTree is a push whose only fault is its tree.
	ofTree := func(lines ...treeLine) func() ([]byte, plumbing.Hash) {
		return func() ([]byte, plumbing.Hash) {
			f := &forge{}
			f.add(plumbing.BlobObject, hello)
			f.add(plumbing.TreeObject, nil)
			tree := f.add(plumbing.TreeObject, treeBytes(lines...))
			return f.commitOf(tree)
		}
	}
	entry := func(mode, name string) func() ([]byte, plumbing.Hash) {
		h := blob
		if mode == "40000" {
			h = empty
		}
		return ofTree(treeLine{mode, name, h})
	}
	whole := func(change func([]byte) []byte) func() ([]byte, plumbing.Hash) {
		return func() ([]byte, plumbing.Hash) {
			f := &forge{}
			f.add(plumbing.BlobObject, hello)
			data, tip := f.commitOf(f.add(plumbing.TreeObject, treeBytes(treeLine{"100644", "a", blob})))
			return change(data), tip
		}
	}
	for story, c := range map[string]struct {
		make func() ([]byte, plumbing.Hash)
		says string
	}{
		// The disk, or memory, is filled by a few kilobytes.
		"a blob that inflates to more than is allowed": {func() ([]byte, plumbing.Hash) {
			f := &forge{}
			h := f.add(plumbing.BlobObject, make([]byte, 9<<20))
			return f.commitOf(f.add(plumbing.TreeObject, treeBytes(treeLine{"100644", "zeros", h})))
		}, "limits.max_object_bytes"},
		"many blobs, each within the limit": {func() ([]byte, plumbing.Hash) {
			f := &forge{}
			for i := range 9 {
				f.add(plumbing.BlobObject, make([]byte, 8<<20-i))
			}
			return f.commitOf(f.add(plumbing.TreeObject, nil))
		}, "limits.max_total_bytes"},
		"a delta that copies its base two hundred times": {func() ([]byte, plumbing.Hash) {
			f := &forge{}
			f.add(plumbing.BlobObject, make([]byte, 60000))
			f.ofs(0, append(append(deltaSize(60000), deltaSize(60000*200)...), bytes.Repeat([]byte{0xb0, 0x60, 0xea}, 200)...))
			return f.commitOf(f.add(plumbing.TreeObject, nil))
		}, "limits.max_delta_bytes"},
		"a chain of deltas that is longer than any git makes": {func() ([]byte, plumbing.Hash) {
			f := &forge{}
			f.add(plumbing.BlobObject, []byte("x"))
			for i := range 60 {
				n := 1 + i
				f.ofs(i, append(append(deltaSize(n), deltaSize(n+1)...), 0x90, byte(n), 1, 'y'))
			}
			return f.commitOf(f.add(plumbing.TreeObject, nil))
		}, "limits.max_delta_depth"},
		"random bytes without an end": {func() ([]byte, plumbing.Hash) {
			f := &forge{}
			junk := make([]byte, 5<<20)
			for i := range junk {
				junk[i] = byte(i*i>>3 ^ i>>11)
			}
			z := append([]byte{0x78, 0x01}, stored(junk)...)
			f.raw(entryHead(plumbing.BlobObject, len(junk)), z)
			return f.commitOf(f.add(plumbing.TreeObject, nil))
		}, "limits.max_pack_bytes"},
		// A header that makes a naive server take memory for four billion objects.
		"a count of four billion": {func() ([]byte, plumbing.Hash) { return (&forge{}).bytes(1<<32 - 1), blob }, "limits.max_objects"},
		// Deltas whose bases are each other: a resolver that follows them never ends.
		"two deltas, each the other's base": {func() ([]byte, plumbing.Hash) {
			f := &forge{}
			a, b := plumbing.ComputeHash(plumbing.BlobObject, []byte("ab")), plumbing.ComputeHash(plumbing.BlobObject, []byte("abc"))
			f.ref(b, []byte{3, 2, 0x90, 2}).ref(a, []byte{2, 3, 0x90, 2, 1, 'c'})
			return f.commitOf(f.add(plumbing.TreeObject, nil))
		}, "not complete"},
		"a delta that reads beyond its base": {func() ([]byte, plumbing.Hash) {
			f := &forge{}
			f.add(plumbing.BlobObject, []byte("abc"))
			f.ofs(0, []byte{3, 3, 0x91, 2, 3})
			return f.commitOf(f.add(plumbing.TreeObject, nil))
		}, "damaged"},
		// Damage and lies about lengths.
		"a pack cut in the middle": {whole(func(b []byte) []byte { return b[:len(b)-30] }), "unpacker error"},
		"a wrong checksum":         {whole(func(b []byte) []byte { b[len(b)-1] ^= 1; return b }), "checksum"},
		"a flipped bit":            {whole(func(b []byte) []byte { b[20] ^= 4; return b }), "unpacker error"},
		"no pack at all":           {whole(func([]byte) []byte { return nil }), "unpacker error"},
		"an object less than the count": {func() ([]byte, plumbing.Hash) {
			f := &forge{}
			h := f.add(plumbing.BlobObject, hello)
			return f.bytes(2), h
		}, "unpacker error"},
		"the same object twice": {func() ([]byte, plumbing.Hash) {
			f := &forge{}
			f.add(plumbing.BlobObject, hello)
			f.add(plumbing.BlobObject, hello)
			return f.commitOf(empty)
		}, "twice"},
		"a commit without its tree": {func() ([]byte, plumbing.Hash) { return (&forge{}).commitOf(plumbing.NewHash(strings.Repeat("ab", 20))) }, "not complete"},
		"a branch that is a blob": {func() ([]byte, plumbing.Hash) {
			f := &forge{}
			h := f.add(plumbing.BlobObject, hello)
			return f.done(), h
		}, "is no commit"},
		"a tip that the pack does not hold": {func() ([]byte, plumbing.Hash) {
			f := &forge{}
			f.add(plumbing.BlobObject, hello)
			return f.done(), plumbing.NewHash(strings.Repeat("cd", 20))
		}, "does not bring"},
		// Trees that write where they must not, as soon as somebody checks them out.
		".git, a folder":            {entry("40000", ".git"), "hasDotgit"},
		".GIT":                      {entry("40000", ".GIT"), "hasDotgit"},
		"git~1, NTFS' short name":   {entry("40000", "git~1"), "hasDotgit"},
		".git with HFS' ignorables": {entry("40000", ".g\u200cit"), "hasDotgit"},
		".git and an NTFS stream":   {entry("40000", ".git::$INDEX_ALLOCATION"), "hasDotgit"},
		".git as a link":            {entry("120000", ".git"), "hasDotgit"},
		"two dots":                  {entry("40000", ".."), "hasDotdot"},
		"one dot":                   {entry("40000", "."), "hasDot"},
		"a name with slashes":       {entry("100644", "../../etc/passwd"), "fullPathname"},
		"no name":                   {entry("100644", ""), "emptyName"},
		"a mode that is a device":   {entry("60644", "sda"), "badFilemode"},
		"a link, and a file below it": {func() ([]byte, plumbing.Hash) {
			f := &forge{}
			f.add(plumbing.BlobObject, hello)
			to := f.add(plumbing.BlobObject, []byte("/etc"))
			sub := f.add(plumbing.TreeObject, treeBytes(treeLine{"100644", "passwd", blob}))
			return f.commitOf(f.add(plumbing.TreeObject, treeBytes(treeLine{"120000", "x", to}, treeLine{"40000", "x", sub})))
		}, "duplicateEntries"},
		"the same, with a name between": {ofTree(treeLine{"120000", "x", blob}, treeLine{"100644", "x-", blob}, treeLine{"40000", "x", empty}), "duplicateEntries"},
		"one name twice":                {ofTree(treeLine{"100644", "a", blob}, treeLine{"100644", "a", blob}), "duplicateEntries"},
		"entries out of order":          {ofTree(treeLine{"100644", "b", blob}, treeLine{"100644", "a", blob}), "treeNotSorted"},
		// Submodules: names and addresses that make a client write elsewhere, or run something.
		".gitmodules as a link":     {entry("120000", ".gitmodules"), "gitmodulesSymlink"},
		"GITMOD~1 as a link":        {entry("120000", "GITMOD~1"), "gitmodulesSymlink"},
		"a submodule named ../../":  {modules("[submodule \"../../evil\"]\n\tpath = a\n\turl = https://example.org/a\n"), "gitmodulesName"},
		"an address that is a flag": {modules("[submodule \"a\"]\n\tpath = a\n\turl = --upload-pack=touch\n"), "gitmodulesUrl"},
		"an update that runs":       {modules("[submodule \"a\"]\n\tpath = a\n\turl = x\n\tupdate = !touch x\n"), "gitmodulesUpdate"},
		// What no path can hold.
		"a name of 300 bytes": {entry("100644", strings.Repeat("n", 300)), "255"},
	} {
		t.Run(story, func(t *testing.T) {
			data, tip := c.make()
			o := w.send(live, tip.String(), data)
			require.Contains(t, o.out, "ng refs/heads/main ", o.all())
			require.Contains(t, o.all(), c.says)
			require.Contains(t, o.err, "hint: ")
			require.NotContains(t, o.all(), "not your fault")
			require.Empty(t, w.quarantines("app", project.Code))
			require.Equal(t, objects, w.objects("app", project.Code))
		})
	}
	require.Len(t, w.deployer.started(), 1)
	require.Equal(t, live, w.remoteRefs(dir)["refs/heads/main"])
	w.git(w.repos.Dir("app", project.Code), "fsck", "--strict")

	// What comes after the trailer is nobody's: the push is good, the rest is not read as anything.
	data, tip := whole(func(b []byte) []byte { return append(b, "0000and more"...) })()
	o := w.send(live, tip.String(), data)
	require.Contains(t, o.out, "ok refs/heads/main", o.all())

	// Names that differ by case, names of devices elsewhere, a submodule: files and folders as any here.
	f := &forge{}
	f.add(plumbing.BlobObject, []byte("upper\n"))
	upper := plumbing.ComputeHash(plumbing.BlobObject, []byte("upper\n"))
	data, next := f.commitOf(f.add(plumbing.TreeObject, treeBytes(treeLine{"100644", "NUL", blob}, treeLine{"100644", "README", upper},
		treeLine{"100644", "con.txt", blob}, treeLine{"100644", "readme", blob}, treeLine{"160000", "sub", plumbing.NewHash(strings.Repeat("12", 20))})))
	o = w.send(tip.String(), next.String(), data)
	require.Contains(t, o.out, "ok refs/heads/main", o.all())
	tree := w.path("live")
	st, err := w.repos.Checkout(context.Background(), "app", project.Code, project.Commit(next.String()), tree, project.Submodules{Fetch: true})
	require.NoError(t, err)
	require.Contains(t, strings.Join(st.Notes, "\n"), "submodule path not fetched: sub")
	for name, text := range map[string]string{"NUL": "hello\n", "README": "upper\n", "readme": "hello\n", "con.txt": "hello\n"} {
		got, err := os.ReadFile(filepath.Join(tree, name))
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
}

// commitOf closes a pack with a commit of a tree.
func (f *forge) commitOf(tree plumbing.Hash) ([]byte, plumbing.Hash) {
	tip := f.commit(tree)
	return f.done(), tip
}

func modules(text string) func() ([]byte, plumbing.Hash) {
	return func() ([]byte, plumbing.Hash) {
		f := &forge{}
		h := f.add(plumbing.BlobObject, []byte(text))
		return f.commitOf(f.add(plumbing.TreeObject, treeBytes(treeLine{"100644", ".gitmodules", h})))
	}
}

// stored is a deflate stream of stored blocks (RFC 1951, 3.2.4) with the checksum of zlib left out: it is never reached.
func stored(data []byte) (out []byte) {
	for len(data) > 0 {
		n := min(len(data), 65535)
		last := byte(0)
		if n == len(data) {
			last = 1
		}
		out = append(out, last, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		out = append(out, data[:n]...)
		data = data[n:]
	}
	return out
}

// objects lists all files below a repository's objects.
func (w *world) objects(name project.Name, repo project.Repo) (out []string) {
	w.t.Helper()
	require.NoError(w.t, filepath.WalkDir(filepath.Join(w.repos.Dir(name, repo), "objects"), func(path string, _ os.DirEntry, err error) error {
		out = append(out, path)
		return err
	}))
	return out
}
