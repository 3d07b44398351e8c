package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"time"

	"corpus-git/internal/fault"
)

// Version is the version of the format. A reader refuses newer ones.
const Version = 1

// Names of entries.
const (
	headName     = "backup.json"
	contentsName = "contents.json"
	projectsDir  = "projects"
	rootDir      = "root"
	stateDir     = "state"
)

// maxDocument limits the size of the JSON documents of a backup.
const maxDocument = 64 << 20

// Head is the first entry: the data known before the rest is written.
type Head struct {
	Version  int       `json:"version"`
	Program  string    `json:"program"` // release of corpus-git
	Made     time.Time `json:"made"`
	Host     string    `json:"host"`
	Root     string    `json:"root"`
	Archives bool      `json:"archives"` // whether they are included
	Data     bool      `json:"data"`
}

// Project is one project of a backup, as it was when read.
type Project struct {
	Name   string `json:"name"`
	Code   string `json:"code,omitempty"`   // commit that was live, "" for none
	Pillar string `json:"pillar,omitempty"` // the same for the pillar
	Files  int64  `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// Contents is the last entry: a description of what the backup contains.
type Contents struct {
	Head
	Projects []Project `json:"projects"`
	Entries  int64     `json:"entries"` // before this one
	Bytes    int64     `json:"bytes"`   // of their contents
	// Notes are for people: what differs, or is not included.
	Notes  []string `json:"notes,omitempty"`
	Digest string   `json:"digest"` // SHA-256 of all entries before this one, hexadecimal
}

// digest is the running SHA-256 of entries.
type digest struct{ h hash.Hash }

func newDigest() digest { return digest{sha256.New()} }

// header hashes everything that a restore uses.
func (d digest) header(h *tar.Header) {
	fmt.Fprintf(d.h, "%d %q %q %o %d %d %q %q %d %d %d %d\n", h.Typeflag, h.Name, h.Linkname, h.Mode, h.Uid, h.Gid, h.Uname, h.Gname, h.Size, h.ModTime.UnixNano(), h.Devmajor, h.Devminor)
	for _, k := range slices.Sorted(maps.Keys(h.PAXRecords)) {
		if attribute(k) {
			fmt.Fprintf(d.h, "%q %q\n", k, h.PAXRecords[k])
		}
	}
}

func (d digest) String() string { return hex.EncodeToString(d.h.Sum(nil)) }

// attribute reports whether a PAX record is one of ours: a reader also sees those that encode other fields of the header.
func attribute(key string) bool {
	return len(key) > len("SCHILY.") && key[:len("SCHILY.")] == "SCHILY."
}

// damaged returns the error for a file that is not a backup, or was changed after it was written.
func damaged(format string, args ...any) error {
	return fault.New(fault.Refused, "read the backup", format, args...).WithHint("take another copy of it, or an older backup")
}

// document reads a JSON entry.
func document(r io.Reader, size int64, into any) error {
	if size > maxDocument {
		return damaged("%d bytes of JSON are too many", size)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return broken(err)
	}
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(into); err != nil {
		return damaged("%w", err)
	}
	return nil
}

// entryFunc is called for each entry between the head and the contents, with its content.
type entryFunc func(h *tar.Header, content io.Reader) error

// read reads a backup, and returns its contents. If it returns no error, the entries are complete and as written.
func read(ctx context.Context, r io.Reader, onHead func(Head) error, entry entryFunc) (Contents, error) {
	var head Head
	var zero Contents
	plain, err := decompressed(r)
	if err != nil {
		return zero, damaged("%w", err)
	}
	defer func() { _ = plain.Close() }()
	tr := tar.NewReader(contextReader{ctx, plain})
	d := newDigest()
	n, bytes := int64(0), int64(0)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return zero, damaged("it ends after %d entries, before %s: it was cut off", n, contentsName)
		}
		if err != nil {
			return zero, broken(err)
		}
		switch {
		case n == 0:
			if h.Name != headName {
				return zero, damaged("it does not begin with %s: it is not a backup of corpus-git", headName)
			}
			if err := document(io.TeeReader(tr, d.h), h.Size, &head); err != nil {
				return zero, err
			}
			if head.Version > Version {
				return zero, fault.New(fault.Refused, "read the backup", "it was written by corpus-git %s in format %d, and this version reads %d", head.Program, head.Version, Version).
					WithHint("use corpus-git %s or a newer one", head.Program)
			}
			if err := onHead(head); err != nil {
				return zero, err
			}
		case h.Name == contentsName:
			var c Contents
			if err := document(tr, h.Size, &c); err != nil {
				return zero, err
			}
			if c.Digest != d.String() || c.Entries != n || c.Bytes != bytes {
				return zero, damaged("its entries are not those that were written: it is damaged")
			}
			return c, nil
		default:
			d.header(h)
			content := &errorReader{r: io.TeeReader(tr, d.h)}
			err := entry(h, content)
			if err == nil {
				_, err = io.Copy(io.Discard, content) // skip what entry did not read
			}
			if content.err != nil {
				return zero, broken(content.err)
			}
			if err != nil {
				return zero, err
			}
			bytes += h.Size
		}
		n++
	}
}

// broken distinguishes a file that can't be read from one that is not a backup.
func broken(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return damaged("it can't be read to its end: %w", err)
}

// errorReader keeps the error of a reader, which its user may wrap.
type errorReader struct {
	r   io.Reader
	err error
}

func (m *errorReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context //nolint:containedctx // it lives as long as one call of read
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
