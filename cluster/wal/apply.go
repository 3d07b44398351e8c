package wal

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"corpus-git/internal/vfs"
)

// Copy is a database that nobody has open, to which changes are applied.
type Copy struct {
	f    vfs.File
	size int
}

// OpenCopy opens the database at path, which is created, readable by its owner only, if it is missing. pageSize is that of the changes. The caller calls Close.
func OpenCopy(fsys vfs.FS, path string, pageSize int) (*Copy, error) {
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &Copy{f, pageSize}, nil
}

// Page writes one page.
func (c *Copy) Page(page uint32, data []byte) error {
	if page == 0 || len(data) != c.size {
		return errors.New("a page of a database has a wrong number or size")
	}
	if _, err := c.f.Seek(int64(page-1)*int64(c.size), io.SeekStart); err != nil {
		return err
	}
	_, err := c.f.Write(data)
	return err
}

// Close ends a change after which the database has that many pages. It is durable on return.
func (c *Copy) Close(pages uint32) error {
	err := c.f.Truncate(int64(pages) * int64(c.size))
	if err == nil {
		err = c.f.Sync()
	}
	return errors.Join(err, c.f.Close())
}

// Abandon closes a copy whose change could not be applied.
func (c *Copy) Abandon() { _ = c.f.Close() }

// RemoveLog removes the log of a database that nobody has open, and with it what the log contains.
func RemoveLog(fsys vfs.FS, path string) error {
	for _, suffix := range []string{Suffix, SharedSuffix} {
		if err := fsys.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
