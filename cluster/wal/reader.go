package wal

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
)

const (
	magic      = 0x377f0682 // with the lowest bit set, checksums are of big-endian words
	version    = 3007000
	headerSize = 32
	frameSize  = 24 // of the header of a frame
	// Suffix is what the log's name has in addition to the database's.
	Suffix = "-wal"
	// SharedSuffix is likewise that of the index of the log, which is only valid while the database is open.
	SharedSuffix = "-shm"
)

// ErrRestarted means that the log was started again before everything was taken: what it contained is known to the database only.
var ErrRestarted = errors.New("the write-ahead log of the database was started again before it was read")

// Reader reads one log. It is not safe for concurrent use; others may use the database.
type Reader struct {
	path   string
	header []byte // of the log that is being read; nil before its first frame was taken
	at     place
}

// place is the end of a frame.
type place struct {
	offset int64
	sum    [2]uint32
}

// NewReader returns a reader of the log of the database at path, from its beginning.
func NewReader(path string) *Reader { return &Reader{path: path + Suffix} }

// Change is what one or more transactions have changed.
type Change struct {
	// PageSize is the size of a page in bytes, Pages the size of the database in pages, after it.
	PageSize int
	Pages    uint32
	log      string
	frames   map[uint32]int64 // page: where its newest content is
	header   []byte
	end      place
}

// Next returns what was committed since the last Taken, nil if nothing was.
func (r *Reader) Next() (*Change, error) {
	f, err := os.Open(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r.none()
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	header := make([]byte, headerSize)
	if n, err := f.ReadAt(header, 0); n < headerSize {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return nil, r.none()
	}
	if r.header != nil && !bytes.Equal(header, r.header) {
		return nil, ErrRestarted
	}
	order, start, err := parse(header)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.path, err)
	}
	if order == nil { // the header is being written
		return nil, nil
	}
	if r.header != nil {
		start = r.at
	}
	c := &Change{PageSize: int(binary.BigEndian.Uint32(header[8:])), log: r.path, frames: map[uint32]int64{}, header: header}
	if err := c.scan(f, order, start); err != nil || c.Pages == 0 {
		return nil, err
	}
	return c, nil
}

// none is for a log without frames.
func (r *Reader) none() error {
	if r.header != nil {
		return ErrRestarted
	}
	return nil
}

// parse returns the byte order of checksums, nil if the header is incomplete, and where the first frame begins.
func parse(h []byte) (binary.ByteOrder, place, error) {
	m := binary.BigEndian.Uint32(h)
	if m&^1 != magic {
		if bytes.Equal(h, make([]byte, headerSize)) {
			return nil, place{}, nil
		}
		return nil, place{}, errors.New("it is no write-ahead log of SQLite")
	}
	if v := binary.BigEndian.Uint32(h[4:]); v != version {
		return nil, place{}, fmt.Errorf("a write-ahead log of version %d", v)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if m&1 == 1 {
		order = binary.BigEndian
	}
	size := binary.BigEndian.Uint32(h[8:])
	sum := checksum(order, [2]uint32{}, h[:24])
	if size < 512 || size > 65536 || size&(size-1) != 0 || sum != sums(h[24:]) {
		return nil, place{}, nil
	}
	return order, place{headerSize, sum}, nil
}

// sums reads the two words of a checksum.
func sums(b []byte) [2]uint32 {
	return [2]uint32{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

// checksum continues a checksum over data, whose length is a multiple of 8.
func checksum(order binary.ByteOrder, s [2]uint32, data []byte) [2]uint32 {
	for ; len(data) >= 8; data = data[8:] {
		s[0] += order.Uint32(data) + s[1]
		s[1] += order.Uint32(data[4:]) + s[0]
	}
	return s
}

// scan collects the valid frames after a place, up to the last one that commits.
func (c *Change) scan(f io.ReaderAt, order binary.ByteOrder, from place) error {
	frame := make([]byte, frameSize+c.PageSize)
	pending := map[uint32]int64{}
	for at := from; ; {
		if n, err := f.ReadAt(frame, at.offset); n < len(frame) {
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		}
		page, size := binary.BigEndian.Uint32(frame), binary.BigEndian.Uint32(frame[4:])
		if page == 0 || !bytes.Equal(frame[8:16], c.header[16:24]) {
			return nil
		}
		sum := checksum(order, checksum(order, at.sum, frame[:8]), frame[frameSize:])
		if sum != sums(frame[16:]) {
			return nil
		}
		pending[page] = at.offset + frameSize
		at = place{at.offset + int64(len(frame)), sum}
		if size == 0 {
			continue
		}
		maps.Copy(c.frames, pending)
		clear(pending)
		c.Pages, c.end = size, at
	}
}

// Whole returns a database that nobody has open, and that has no log, as a change of all its pages.
func Whole(path string) (*Change, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	header := make([]byte, 18)
	if _, err := f.ReadAt(header, 0); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint16(header[16:])) // source: SQLite documentation, "Database File Format"
	if size == 1 {
		size = 65536
	}
	if size < 512 {
		return nil, fmt.Errorf("%s is no database", path)
	}
	c := &Change{PageSize: size, Pages: uint32(st.Size() / int64(size)), log: path, frames: map[uint32]int64{}}
	for page := range c.Pages {
		c.frames[page+1] = int64(page) * int64(size)
	}
	return c, nil
}

// Count returns the number of pages for which Each calls its function.
func (c *Change) Count() (n int) {
	for page := range c.frames {
		if page <= c.Pages {
			n++
		}
	}
	return n
}

// Each calls f for each page that has changed, in ascending order, with its content, which is valid until f returns.
func (c *Change) Each(f func(page uint32, data []byte) error) error {
	h, err := os.Open(c.log)
	if err != nil {
		return err
	}
	defer h.Close()
	data := make([]byte, c.PageSize)
	for _, page := range slices.Sorted(maps.Keys(c.frames)) {
		if page > c.Pages { // the database has become smaller since
			continue
		}
		if _, err := h.ReadAt(data, c.frames[page]); err != nil {
			return err
		}
		if err := f(page, data); err != nil {
			return err
		}
	}
	return nil
}

// Taken says that a change need not be returned again. After Whole there is no log.
func (r *Reader) Taken(c *Change) { r.header, r.at = c.header, c.end }

// Size returns the size of the log in bytes.
func (r *Reader) Size() int64 {
	if st, err := os.Stat(r.path); err == nil {
		return st.Size()
	}
	return 0
}

// Checkpoint moves everything from the log to the database and empties the log, while the caller holds the only connection to the database. Everything must have been taken. What was taken
// is in the database's file on return.
func (r *Reader) Checkpoint(ctx context.Context, c *sql.Conn) error {
	change, err := r.Next()
	if err != nil {
		return err
	}
	if change != nil {
		return errors.New("the write-ahead log of the database has not been read to its end")
	}
	var busy, frames, done int
	if err := c.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &done); err != nil {
		return err
	}
	if busy != 0 {
		return errors.New("the write-ahead log of the database is in use")
	}
	r.header, r.at = nil, place{}
	return nil
}
