package replica

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"corpus-git/internal/vfs"
)

// The kinds of records.
const (
	whole  = "file"   // a file, its content follows
	tail   = "tail"   // what follows At in a file, and is its end
	folder = "folder" // a folder, without its contents
	link   = "link"   // a symbolic link
	attrs  = "attrs"  // the attributes of a file whose content is unchanged
	gone   = "gone"   // something that was removed, with everything below
	pages  = "pages"  // pages of the database follow, a number and a content each
)

// record is the header of one change. A batch is a stream of records, compressed with zstd: the length of a header (uvarint), the header in JSON, the content.
type record struct {
	Kind   string `json:"kind"`
	Name   Text   `json:"name,omitempty"`
	Mode   uint32 `json:"mode,omitempty"` // twelve bits
	UID    uint32 `json:"uid,omitempty"`
	GID    uint32 `json:"gid,omitempty"`
	Mtime  int64  `json:"mtime,omitempty"`
	Target Text   `json:"target,omitempty"`
	At     int64  `json:"at,omitempty"`
	// Size is the length of the content in bytes.
	Size int64 `json:"size,omitempty"`
	// PageSize and Pages are those of wal.Change.
	PageSize int    `json:"page_size,omitempty"`
	Pages    uint32 `json:"pages,omitempty"`
}

// maxHeader limits the header of a record, in bytes.
const maxHeader = 1 << 20

// attributes are those of a file, for a record.
func attributes(kind, name string, st vfs.Stat) record {
	return record{Kind: kind, Name: Text(name), Mode: st.Perm(), UID: st.UID, GID: st.GID, Mtime: st.Mtime}
}

// Batch writes one batch. It is not safe for concurrent use.
type Batch struct {
	w io.Writer
	z *zstd.Encoder // nil before the first record
	// Records counts what was written.
	Records int
	copying []byte
}

// NewBatch returns a batch that is written to w, to which nothing is written unless something has changed. The caller calls Close or Abandon.
func NewBatch(w io.Writer) *Batch { return &Batch{w: w} }

// begin starts the compressor.
func (b *Batch) begin() (err error) {
	if b.z == nil {
		b.copying = make([]byte, 64<<10)
		b.z, err = zstd.NewWriter(b.w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true))
	}
	return err
}

// add writes a record, whose content is read from r.
func (b *Batch) add(r record, content io.Reader) error {
	header, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := b.begin(); err != nil {
		return err
	}
	b.Records++
	if _, err := b.z.Write(append(binary.AppendUvarint(nil, uint64(len(header))), header...)); err != nil {
		return err
	}
	if content == nil {
		return nil
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{b.z}, io.LimitReader(content, r.Size), b.copying)
	if err == nil && n != r.Size {
		return errChanging
	}
	return err
}

// Close ends the batch.
func (b *Batch) Close() error {
	if b.z == nil {
		return nil
	}
	return b.z.Close()
}

// Abandon releases what an incomplete batch uses.
func (b *Batch) Abandon() {
	if b.z != nil {
		b.z.Reset(io.Discard)
		_ = b.z.Close()
	}
}

// errChanging means that a file became shorter while it was read.
var errChanging = errors.New("a file was changed while it was read")

// records reads a batch.
type records struct {
	z *zstd.Decoder
	r *bufio.Reader
}

func readBatch(r io.Reader) (*records, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return nil, err
	}
	return &records{z, bufio.NewReader(z)}, nil
}

// next returns the next header; io.EOF after the last one.
func (r *records) next() (rec record, err error) {
	n, err := binary.ReadUvarint(r.r)
	if err != nil {
		return rec, err
	}
	if n > maxHeader {
		return rec, fmt.Errorf("a header of %d bytes", n)
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(r.r, header); err != nil {
		return rec, noEOF(err)
	}
	return rec, json.Unmarshal(header, &rec)
}

// noEOF is the error for a batch that ends in the middle.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
