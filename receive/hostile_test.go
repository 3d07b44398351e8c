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

	"corpus-git/git/pack"
	"corpus-git/project"
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

// send pushes a pack with the raw protocol and returns the whole answer.
func (w *world) send(old, tip string, data []byte) outcome {
	cmd := w.ssh("marie", "git-receive-pack 'app/project.git'")
	cmd.Stdin = strings.NewReader(pkt(old+" "+tip+" refs/heads/main\x00 report-status") + "0000" + string(data))
	return finish(w.t, cmd)
}

// Each file of testdata/hostile is one attack with its description: how the pack is made, and the expected message. All of them are sent over ssh to
// a server with a live branch. The error is reported, nothing is deployed, no byte of it is kept, and the branch does not move. See
// hostilecase_test.go.
func TestHostilePushes(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.service.PackLimits = pack.Limits{PackBytes: 4 << 20, Objects: 5000, ObjectBytes: 8 << 20, DeltaBytes: 1 << 20, DeltaDepth: 50, TotalBytes: 64 << 20}
	})
	dir := w.clone("a", "app/project.git")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	live := w.git(dir, "rev-parse", "HEAD")
	objects := w.objects("app", project.Code)
	cases := hostileCases(t)
	require.GreaterOrEqual(t, len(cases), 40, "a case was lost")
	for _, c := range cases {
		if c.accepted {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			o := w.send(live, c.tip.String(), c.pack)
			require.Contains(t, o.out, "ng refs/heads/main ", o.all())
			require.Contains(t, o.all(), c.refused, c.story)
			require.Contains(t, o.err, "hint: ")
			require.NotContains(t, o.all(), "not your fault")
			require.Empty(t, w.quarantines("app", project.Code))
			require.Equal(t, objects, w.objects("app", project.Code))
		})
	}
	require.Len(t, w.deployer.started(), 1)
	require.Equal(t, live, w.remoteRefs(dir)["refs/heads/main"])
	w.git(w.repos.Open("app", project.Code).Dir(), "fsck", "--strict")

	tip := live
	for _, c := range cases {
		if !c.accepted {
			continue
		}
		o := w.send(tip, c.tip.String(), c.pack)
		require.Contains(t, o.out, "ok refs/heads/main", "%s: %s", c.name, o.all())
		tip = c.tip.String()
		if c.name != "names-others-fear" {
			continue
		}
		tree := w.path("live")
		st, err := w.repos.Open("app", project.Code).Checkout(context.Background(), project.Checkout{Commit: project.Commit(tip), Dir: tree, Submodules: project.Submodules{Fetch: true}})
		require.NoError(t, err)
		require.Contains(t, strings.Join(st.Notes, "\n"), "submodules left as empty folders: sub")
		for name, text := range map[string]string{"NUL": "hello\n", "README": "upper\n", "readme": "hello\n", "con.txt": "hello\n"} {
			got, err := os.ReadFile(filepath.Join(tree, name))
			require.NoError(t, err)
			require.Equal(t, text, string(got))
		}
	}
	require.NotEqual(t, live, tip)
}

// stored is a deflate stream of stored blocks (RFC 1951, 3.2.4) without the checksum of zlib, which is never reached.
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
	require.NoError(w.t, filepath.WalkDir(filepath.Join(w.repos.Open(name, repo).Dir(), "objects"), func(path string, _ os.DirEntry, err error) error {
		out = append(out, path)
		return err
	}))
	return out
}
