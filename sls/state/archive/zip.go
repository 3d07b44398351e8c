package archive

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

var errEncrypted = errors.New("the archive is encrypted")

// readZip reads the members of a zip archive. A member whose data can't be read, because it is encrypted, is included
// with the reason.
func readZip(data []byte, password string) ([]member, error) {
	zr, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	var out []member
	total := uint64(0)
	for _, f := range zr.File {
		name, err := cleanMember(f.Name)
		if err != nil {
			return nil, err
		}
		m := member{name: name, raw: f.Name, mode: f.Mode(), bare: f.ExternalAttrs>>16 == 0}
		if total += f.UncompressedSize64; total > maxArchive || len(out) > maxMembers {
			return nil, errors.New("it is too large")
		}
		if !m.mode.IsDir() {
			m.data, m.broken = zipData(f, password)
			if m.mode&fs.ModeSymlink != 0 {
				m.link, m.data = string(m.data), nil
			}
		}
		out = append(out, m)
	}
	return out, nil
}

func zipData(f *zip.File, password string) ([]byte, error) {
	if f.Flags&1 != 0 {
		return unlock(f, password)
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return io.ReadAll(r) // no more than its size, which r holds it to
}

// unlock decrypts a member with the traditional encryption of PKWARE, the one that Python's zipfile supports.
// Source: PKWARE, APPNOTE.TXT, 6.1 Traditional PKWARE Decryption.
func unlock(f *zip.File, password string) ([]byte, error) {
	switch {
	case password == "":
		return nil, errEncrypted
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return nil, core.Errorf("That compression method is not supported")
	}
	r, err := f.OpenRaw()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	k := newZipKeys(password)
	for i, c := range b {
		b[i] = k.next(c)
	}
	check := byte(f.CRC32 >> 24)
	if f.Flags&8 != 0 {
		check = byte(f.ModifiedTime >> 8)
	}
	if len(b) < 12 || b[11] != check {
		return nil, core.Errorf("Bad password for file %s", py.Repr(f.Name))
	}
	b = b[12:]
	size := min(f.UncompressedSize64, maxArchive) // as in Python's zipfile, whatever follows
	if f.Method == zip.Deflate {
		if b, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), int64(size))); err != nil {
			return nil, err
		}
	}
	b = b[:min(len(b), int(size))]
	if crc32.ChecksumIEEE(b) != f.CRC32 {
		return nil, core.Errorf("Bad CRC-32 for file %s", py.Repr(f.Name))
	}
	return b, nil
}

type zipKeys [3]uint32

func newZipKeys(password string) *zipKeys {
	k := &zipKeys{0x12345678, 0x23456789, 0x34567890}
	for i := range len(password) {
		k.update(password[i])
	}
	return k
}

func (k *zipKeys) update(c byte) {
	crc := func(old uint32, c byte) uint32 { return old>>8 ^ crc32.IEEETable[byte(old)^c] }
	k[0] = crc(k[0], c)
	k[1] = (k[1]+k[0]&0xff)*134775813 + 1
	k[2] = crc(k[2], byte(k[1]>>24))
}

// next decrypts a byte.
func (k *zipKeys) next(c byte) byte {
	t := k[2] | 2
	c ^= byte(t * (t ^ 1) >> 8)
	k.update(c)
	return c
}
