package pack

import (
	"compress/zlib"
	"errors"
	"io"
)

// inflater decodes zlib streams: with flate those in memory, and with the standard library those that are still arriving. It is for one
// goroutine and may be reused.
type inflater struct {
	flate
	zr  io.ReadCloser
	one [1]byte
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
