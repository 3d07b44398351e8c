package tree

import (
	"archive/tar"
	"bytes"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// appended returns the header of an entry as AppendHeader and as archive/tar writes it.
func appended(t *testing.T, e Entry) (got []byte, ok bool, want []byte) {
	t.Helper()
	got, ok = AppendHeader([]byte("before"), &e)
	require.Equal(t, "before", string(got[:6]))
	var b bytes.Buffer
	h, err := TarHeader(&e, map[uint32]string{}, nil)
	require.NoError(t, err)
	tw := tar.NewWriter(&b)
	if err := tw.WriteHeader(h); err != nil {
		require.False(t, ok, "archive/tar refuses it: %v", err)
	}
	return got[6:], ok, b.Bytes()
}

// requireBlocks compares headers, and shows the first line that differs.
func requireBlocks(t *testing.T, want, got []byte) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := 0; i < len(want); i += 32 {
		require.Equal(t, want[i:i+32], got[i:i+32], "from byte %d on", i)
	}
}

func TestHeadersAreThoseOfArchiveTar(t *testing.T) {
	const now = 1_700_000_000_123_456_789
	long := strings.Repeat("folder/", 13) + "name"
	for name, c := range map[string]struct {
		e     Entry
		usual bool
	}{
		"file":              {Entry{Path: "project/a", Mode: syscall.S_IFREG | 0o644, UID: 1000, GID: 33, Size: 12345, Mtime: now}, true},
		"all bits":          {Entry{Path: "project/a", Mode: syscall.S_IFREG | 0o7777, Size: 1<<33 - 1, UID: 1<<21 - 1, GID: 1<<21 - 1, Mtime: now}, true},
		"folder":            {Entry{Path: "project", Mode: syscall.S_IFDIR | 0o2755, Size: 4096, Mtime: now}, true},
		"folder in it":      {Entry{Path: "project/a", Mode: syscall.S_IFDIR | 0o755, Mtime: now}, true},
		"link":              {Entry{Path: "project/l", Mode: syscall.S_IFLNK | 0o777, Target: "../else", Size: 7, Mtime: now}, true},
		"one nanosecond":    {Entry{Path: "project/a", Mode: syscall.S_IFREG | 0o644, Mtime: 1}, true},
		"tenth of a second": {Entry{Path: "project/a", Mode: syscall.S_IFREG | 0o644, Mtime: 1_700_000_000_100_000_000}, true},
		"name of its own":   {Entry{Path: "a", Mode: syscall.S_IFREG | 0o644, Mtime: now}, true},
		"name that is cut":  {Entry{Path: long, Mode: syscall.S_IFREG | 0o644, Mtime: now}, true},
		"99 bytes":          {Entry{Path: strings.Repeat("n", 99), Mode: syscall.S_IFDIR | 0o644, Mtime: now}, true},
		"100 bytes":         {Entry{Path: strings.Repeat("n", 100), Mode: syscall.S_IFREG | 0o644, Mtime: now}, false},
		"long target":       {Entry{Path: "l", Mode: syscall.S_IFLNK | 0o777, Target: strings.Repeat("n", 101), Mtime: now}, false},
		"other letters":     {Entry{Path: "project/é", Mode: syscall.S_IFREG | 0o644, Mtime: now}, false},
		"whole second":      {Entry{Path: "project/a", Mode: syscall.S_IFREG | 0o644, Mtime: 1_700_000_000_000_000_000}, false},
		"before 1970":       {Entry{Path: "project/a", Mode: syscall.S_IFREG | 0o644, Mtime: -1}, false},
		"large owner":       {Entry{Path: "project/a", Mode: syscall.S_IFREG | 0o644, UID: 1 << 21, Mtime: now}, false},
		"large file":        {Entry{Path: "project/a", Mode: syscall.S_IFREG | 0o644, Size: 1 << 33, Mtime: now}, false},
		"fifo":              {Entry{Path: "project/a", Mode: syscall.S_IFIFO | 0o644, Mtime: now}, false},
		"several names":     {Entry{Path: "project/a", Mode: syscall.S_IFREG | 0o644, Link: 1, Mtime: now}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok, want := appended(t, c.e)
			require.Equal(t, c.usual, ok)
			if ok {
				requireBlocks(t, want, got)
				requireRead(t, got)
			}
		})
	}
}

// read returns a header as archive/tar reads it, without what it adds.
func read(b []byte) (tar.Header, error) {
	h, err := tar.NewReader(bytes.NewReader(b)).Next()
	if err != nil {
		return tar.Header{}, err
	}
	h.PAXRecords = nil
	return *h, nil
}

// requireRead checks that ParseHeader reads a header as archive/tar does, and none that is damaged otherwise.
func requireRead(t *testing.T, b []byte) {
	t.Helper()
	var got tar.Header
	require.True(t, ParseHeader(b, &got))
	want, err := read(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for i := range b {
		for _, bit := range []byte{1, 0x10, 0x80} {
			b[i] ^= bit
			if ParseHeader(b, &got) {
				want, err := read(b)
				require.NoError(t, err, "byte %d", i)
				require.Equal(t, want, got, "byte %d", i)
			}
			b[i] ^= bit
		}
	}
}

// Damage that keeps the checksums right is told, or read as archive/tar reads it.
func FuzzParseHeader(f *testing.F) {
	entries := []Entry{
		{Path: "project/a", Mode: syscall.S_IFREG | 0o644, UID: 1000, GID: 33, Size: 12345, Mtime: 1_700_000_000_123_456_789},
		{Path: "project", Mode: syscall.S_IFDIR | 0o755, Mtime: 1_700_000_000_123_456_789},
		{Path: "project/l", Mode: syscall.S_IFLNK | 0o777, Target: "a", Mtime: 1_700_000_000_100_000_000},
	}
	f.Add(uint(0), uint(2*TarBlock+100), []byte("0000755"), uint(0), []byte{})
	f.Add(uint(1), uint(TarBlock+20), []byte("99"), uint(2*TarBlock), []byte("other"))
	f.Fuzz(func(t *testing.T, which, at uint, put []byte, at2 uint, put2 []byte) {
		b, _ := AppendHeader(nil, &entries[which%uint(len(entries))])
		copy(b[at%UsualHeader:], put)
		copy(b[at2%UsualHeader:], put2)
		for _, h := range [][]byte{b[:TarBlock], b[2*TarBlock:]} {
			putOctal(h[148:154], checksum(h))
			h[154], h[155] = 0, ' '
		}
		var got tar.Header
		if !ParseHeader(b, &got) {
			return
		}
		want, err := read(b)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func FuzzHeader(f *testing.F) {
	f.Add("project/a", "", uint32(syscall.S_IFREG|0o644), uint32(0), uint32(0), int64(1), int64(1_700_000_000_123_456_789))
	f.Add("project/d", "", uint32(syscall.S_IFDIR|0o755), uint32(0), uint32(0), int64(1), int64(1_700_000_000_123_456_789))
	f.Add("project/l", "a", uint32(syscall.S_IFLNK|0o777), uint32(0), uint32(0), int64(1), int64(1_700_000_000_123_456_789))
	f.Fuzz(func(t *testing.T, path, target string, mode, uid, gid uint32, size, mtime int64) {
		// As the scan gives them: no empty names, "." or "..", or sizes below zero.
		for p := range strings.SplitSeq(path, "/") {
			if p == "" || p == "." || p == ".." {
				return
			}
		}
		e := Entry{Path: path, Mode: mode, UID: uid, GID: gid, Mtime: mtime}
		if e.Type() == syscall.S_IFLNK {
			e.Target = target
		}
		if e.IsRegular() {
			e.Size = max(size, 0)
		}
		if got, ok := AppendHeader(nil, &e); ok {
			var b bytes.Buffer
			h, err := TarHeader(&e, map[uint32]string{}, nil)
			require.NoError(t, err)
			require.NoError(t, tar.NewWriter(&b).WriteHeader(h))
			requireBlocks(t, b.Bytes(), got)
			var parsed tar.Header
			require.True(t, ParseHeader(got, &parsed))
			want, err := read(got)
			require.NoError(t, err)
			require.Equal(t, want, parsed)
		}
	})
}
