package tree

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
)

func sample() *Manifest {
	return &Manifest{ID: "id", Scanned: -5, Entries: []Entry{
		{Path: "project", Mode: 0o40755, Version: 1},
		{Path: "project/l", Target: "../\xfe", Mode: 0o120777},
		{Path: "project/l/c", Mode: 0o20644, Rdev: 0x501},
		{Path: "project/\xff\n", Mode: 0o106755, UID: 1 << 31, GID: 7, Size: 1 << 50, Blocks: 8, Mtime: -1, Link: 3, Flags: FlagRacy, Xattrs: 1 << 63, Version: 1<<64 - 1,
			Live: Ident{Dev: 1 << 63, Ino: 2, Ctime: 3}, Copy: Ident{Dev: 4, Ino: 5, Ctime: -6}},
	}}
}

func TestManifestRoundTrip(t *testing.T) {
	for _, m := range []*Manifest{sample(), {Entries: []Entry{}}} {
		got, err := DecodeManifest(m.Encode())
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
}

func TestManifestRefusesDamage(t *testing.T) {
	b := sample().Encode()
	for i := range b {
		c := bytes.Clone(b)
		c[i] ^= 0x40
		_, err := DecodeManifest(c)
		require.ErrorIs(t, err, ErrManifest, "byte %d", i)
		_, err = DecodeManifest(b[:i])
		require.ErrorIs(t, err, ErrManifest, "cut at %d", i)
	}
}

// FuzzDecodeManifest passes bodies with a right checksum to the parser: whatever they hold, it returns, and what it accepts
// it can write again.
func FuzzDecodeManifest(f *testing.F) {
	b := sample().Encode()
	f.Add(b[len(manifestMagic) : len(b)-sha256.Size])
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, body []byte) {
		all := append([]byte(manifestMagic), body...)
		sum := sha256.Sum256(all)
		m, err := DecodeManifest(append(all, sum[:]...))
		if err != nil {
			return
		}
		again, err := DecodeManifest(m.Encode())
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}

func TestXattrDigest(t *testing.T) {
	x := func(kv ...string) uint64 {
		var xs []vfs.Xattr
		for i := 0; i < len(kv); i += 2 {
			xs = append(xs, vfs.Xattr{Name: kv[i], Value: []byte(kv[i+1])})
		}
		return XattrDigest(xs)
	}
	require.Zero(t, x())
	require.NotZero(t, x("a", ""))
	require.NotEqual(t, x("a", "bc"), x("ab", "c"))
	require.NotEqual(t, x("a", "b", "c", "d"), x("a", "bcd"))
}

// Manifests of the previous version have no sums.
func TestManifestOfTheVersionBefore(t *testing.T) {
	m := sample()
	for i := range m.Entries {
		m.Entries[i].Sum = Sum{}
	}
	now := m.Encode()
	old := append([]byte(manifestMagic1), strip(t, now[len(manifestMagic):len(now)-sha256.Size], m)...)
	sum := sha256.Sum256(old)
	got, err := DecodeManifest(append(old, sum[:]...))
	require.NoError(t, err)
	require.Equal(t, m, got)
}

// strip removes the byte that means "no sum" from the end of each entry: it encodes the list entry by entry.
func strip(t *testing.T, body []byte, m *Manifest) []byte {
	t.Helper()
	var out []byte
	start := 0
	for n := 1; n <= len(m.Entries); n++ {
		part := (&Manifest{ID: m.ID, Scanned: m.Scanned, Entries: m.Entries[:n]}).Encode()
		end := len(part) - len(manifestMagic) - sha256.Size
		require.Zero(t, body[end-1])
		out = append(out, body[start:end-1]...)
		start = end
	}
	return out
}
