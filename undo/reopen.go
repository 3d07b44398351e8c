package undo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"corpus-git/internal/vfs"
)

// Keep makes everything that was recorded durable, so that another process can Reopen the log.
func (l *Log) Keep() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.journal == nil {
		if len(l.listed) == 0 {
			return nil
		}
		if err := l.create(); err != nil {
			return fmt.Errorf("undo log %s: %w", l.dir, err)
		}
	}
	return l.journal.Sync()
}

// Reopen is New for a log that an earlier process of the same deployment left: what that recorded counts as recorded. A truncated last line is
// removed. A missing log is an empty one.
func Reopen(m Machine, dir string, inside ...string) (*Log, error) {
	l, err := New(m, dir, inside...)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, journalFile)
	data, err := vfs.ReadFile(m.FS, path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	var recs []record
	if err == nil {
		recs, err = parse(data)
	}
	if err != nil {
		return nil, fmt.Errorf("undo log %s: %w", dir, err)
	}
	by := map[int]*note{}
	for _, r := range recs {
		if err := l.recorded(r, by); err != nil {
			return nil, fmt.Errorf("undo log %s: %w", dir, err)
		}
	}
	l.size = int64(sizeOf(data, len(recs)))
	if l.journal, err = m.FS.OpenFile(path, os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	if err = l.journal.Truncate(l.size); err == nil {
		_, err = l.journal.Seek(l.size, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, l.journal.Close())
	}
	return l, nil
}

// recorded takes over a record of the journal; by are the paths' notes by the numbers of their records.
func (l *Log) recorded(r record, by map[int]*note) error {
	l.seq = max(l.seq, r.Seq)
	switch r.Kind {
	case kindUndone:
		return errors.New("it has been undone")
	case kindBefore:
		saved := r.Node.Saved != "" || r.Node.Type != file
		if old := l.noted[string(r.Path)]; old != nil {
			old.saved = old.saved || saved
		} else {
			n := &note{seq: r.Seq, saved: saved}
			l.noted[string(r.Path)], by[r.Seq] = n, n
		}
	case kindAfter, kindAgain:
		if n := by[r.Of]; n != nil {
			n.after = r.Kind == kindAfter
		}
	}
	return nil
}

// sizeOf returns the length of the first lines.
func sizeOf(data []byte, lines int) (size int) {
	for range lines {
		size += bytes.IndexByte(data[size:], '\n') + 1
	}
	return size
}
