package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is read of an archive stays below the directory, is all that the archive holds, and written down as an archive again is read as the same. What is
// refused is damaged, or is on the list of refusals.
func FuzzReadArchive(f *testing.F) {
	locked, err := base64.StdEncoding.DecodeString(encryptedZip)
	require.NoError(f, err)
	members := []member{
		{name: "top", mode: fs.ModeDir | 0o755},
		{name: "top/a", mode: 0o4750, data: []byte("a\n")},
		{name: "top/l", mode: fs.ModeSymlink | 0o777, link: "../../etc"},
	}
	zipped, err := packed(members, "zip")
	require.NoError(f, err)
	tarred, err := packed(append(members, member{name: "top/h", mode: 0o644, hard: "top/a"}), "tar")
	require.NoError(f, err)
	outside, err := packed([]member{{name: "../x", mode: 0o644}}, "tar")
	require.NoError(f, err)
	f.Add(zipped, true)
	f.Add(locked, true)
	f.Add(tarred, false)
	f.Add(outside, false)
	f.Add([]byte{0x1f, 0x8b}, false)
	f.Fuzz(func(t *testing.T, data []byte, zip bool) {
		format := "tar"
		if zip {
			format = "zip"
		}
		got, err := readArchive(data, format, "secret")
		held, damage := heldBy(data, format)
		if err != nil {
			var outside outsideError
			require.True(t, damage != nil || errors.As(err, &outside) || err.Error() == "it is too large", "refused, and the archive is whole: %v", err)
			return
		}
		require.NoError(t, damage, "accepted, and the archive is damaged")
		require.Len(t, got, held, "not all that the archive holds was read")
		var whole []member
		for _, m := range got {
			require.True(t, m.name == "" || filepath.IsLocal(m.name) && m.name == filepath.Clean(m.name), "%q is not below the directory", m.name)
			require.True(t, m.hard == "" || filepath.IsLocal(m.hard), "%q links outside of the directory", m.hard)
			require.False(t, m.mode.IsDir() && len(m.data) > 0, "the directory %q has content", m.name)
			if m.broken == nil {
				whole = append(whole, m)
			}
		}
		again, err := packed(whole, format)
		require.NoError(t, err)
		read, err := readArchive(again, format, "")
		require.NoError(t, err)
		require.Len(t, read, len(whole))
		for i, m := range whole {
			r := read[i]
			require.Equal(t, m.name, r.name)
			require.Equal(t, m.mode.IsDir(), r.mode.IsDir(), m.name)
			require.Equal(t, m.mode.Perm(), r.mode.Perm(), m.name)
			require.Equal(t, m.link, r.link, m.name)
			require.Equal(t, m.hard, r.hard, m.name)
			require.Equal(t, string(m.data), string(r.data), m.name)
		}
	})
}

// heldBy counts the directories, files and links of an archive with the standard library alone. An error is one that damage has.
func heldBy(data []byte, format string) (n int, err error) {
	if format == "zip" {
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return 0, err
		}
		return len(z.File), nil
	}
	r, err := decompress(data)
	if err != nil {
		return 0, err
	}
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err == nil {
			_, err = io.Copy(io.Discard, t)
		}
		if err != nil {
			return n, err
		}
		if strings.ContainsRune("0125", rune(h.Typeflag)) {
			n++
		}
	}
}

// packed writes members as an archive.
func packed(members []member, format string) ([]byte, error) {
	var b bytes.Buffer
	tw, zw := tar.NewWriter(&b), zip.NewWriter(&b)
	for _, m := range members {
		name := m.name
		if name == "" {
			name = "."
		}
		if m.mode.IsDir() {
			name += "/"
		}
		if format == "zip" {
			h := &zip.FileHeader{Name: name}
			h.SetMode(m.mode)
			w, err := zw.CreateHeader(h)
			if err == nil && !m.mode.IsDir() {
				_, err = w.Write(append(m.data, m.link...))
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		h := &tar.Header{Name: name, Mode: int64(m.mode.Perm()), Typeflag: tar.TypeReg, Size: int64(len(m.data)), Linkname: m.link + m.hard}
		switch {
		case m.mode.IsDir():
			h.Typeflag = tar.TypeDir
		case m.mode&fs.ModeSymlink != 0:
			h.Typeflag = tar.TypeSymlink
		case m.hard != "":
			h.Typeflag = tar.TypeLink
		}
		if err := tw.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := tw.Write(m.data); err != nil {
			return nil, err
		}
	}
	closed := tw.Close
	if format == "zip" {
		closed = zw.Close
	}
	err := closed()
	return b.Bytes(), err
}
