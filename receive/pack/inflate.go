package pack

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
)

// inflater decodes zlib streams that lie in memory. It is for one goroutine and meant to be used again.
type inflater struct {
	br  bytes.Reader
	zr  io.ReadCloser
	one [1]byte
}

// inflate decodes the zlib stream at the beginning of src, which must give exactly len(dst) bytes, and returns the length of the
// stream in src. errShort says that src ended before the stream did.
func (z *inflater) inflate(dst, src []byte) (int, error) {
	z.br.Reset(src)
	if err := z.reset(&z.br); err != nil {
		return 0, inflateError(err)
	}
	if _, err := io.ReadFull(z.zr, dst); err != nil {
		return 0, inflateError(err)
	}
	if err := z.end(); err != nil {
		return 0, err
	}
	return len(src) - z.br.Len(), nil
}

// reset starts a stream. r must be an io.ByteReader, so that nothing is read beyond the stream's end.
func (z *inflater) reset(r io.Reader) error {
	if z.zr == nil {
		zr, err := zlib.NewReader(r)
		if err != nil {
			return err
		}
		z.zr = zr
		return nil
	}
	return z.zr.(zlib.Resetter).Reset(r, nil)
}

// end checks that the stream has no more data and that its checksum is right.
func (z *inflater) end() error {
	switch n, err := z.zr.Read(z.one[:]); {
	case n > 0:
		return corrupt("zlib stream gives more than its object's size")
	case err == io.EOF:
		return nil
	case err == nil:
		return z.end()
	default:
		return inflateError(err)
	}
}

func inflateError(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errShort
	case errors.Is(err, ErrCorrupt), errors.Is(err, errShort):
		return err
	default:
		return corrupt("zlib stream: %w", err)
	}
}
