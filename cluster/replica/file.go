package replica

import (
	"bytes"
	"hash/maphash"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"corpus-git/internal/vfs"
)

// file captures a file if it has changed.
func (t *tracker) file(name string, st vfs.Stat, began time.Time, parent *node) error {
	base := path.Base(name)
	old := parent.kids[base]
	if old != nil && old.kids != nil { // it was a folder
		old = nil
	}
	if old != nil && unchanged(name, old, st) {
		return nil
	}
	fresh := &node{st: st, settled: inObjects(name) || appended(name) || st.Size > small || began.UnixNano()-st.Ctime > int64(settling)}
	if t.b == nil { // a file that changes right after this has another time, or is captured again
		t.set(parent, base, fresh)
		return nil
	}
	h, err := t.FS.OpenFile(t.at(name), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer h.Close()
	if fresh.st, err = h.Stat(); err != nil {
		return err
	}
	switch {
	case appended(name):
		err = t.growing(name, h, old, fresh)
	case fresh.st.Size <= small:
		err = t.small(name, h, old, fresh)
	default:
		r := attributes(whole, name, fresh.st)
		r.Size = fresh.st.Size
		err = t.add(r, h)
	}
	if err != nil {
		return err
	}
	if top, rest, _ := strings.Cut(strings.TrimPrefix(name, stateDir+"/"), "/"); top == journalDir {
		t.journals[strings.TrimSuffix(rest, ".journal")] = true
	}
	t.set(parent, base, fresh)
	return nil
}

// unchanged reports whether a file is as it was captured. An object is never changed, but it gets and loses other names while it is published.
func unchanged(name string, old *node, st vfs.Stat) bool {
	if !old.settled || old.st.Size != st.Size || old.st.Mtime != st.Mtime || old.st.Mode != st.Mode || old.st.UID != st.UID || old.st.GID != st.GID {
		return false
	}
	return inObjects(name) || old.st.Ino == st.Ino && old.st.Ctime == st.Ctime
}

// small captures a file with its content, unless the content is the same as before.
func (t *tracker) small(name string, h vfs.File, old, fresh *node) error {
	content, err := io.ReadAll(io.LimitReader(h, fresh.st.Size))
	if err != nil {
		return err
	}
	fresh.sum = maphash.Bytes(t.seed, content)
	if !t.copied && old != nil && old.sum == fresh.sum && old.st.Size == int64(len(content)) && old.st.Size == fresh.st.Size {
		if old.st.Mode == fresh.st.Mode && old.st.Mtime == fresh.st.Mtime && old.st.UID == fresh.st.UID && old.st.GID == fresh.st.GID {
			return nil
		}
		return t.add(attributes(attrs, name, fresh.st), nil)
	}
	r := attributes(whole, name, fresh.st)
	r.Size = int64(len(content))
	return t.add(r, bytes.NewReader(content))
}

// growing captures what was appended to a file, or all of it.
func (t *tracker) growing(name string, h vfs.File, old, fresh *node) (err error) {
	r := attributes(whole, name, fresh.st)
	if old != nil && old.sum != 0 && old.st.Ino == fresh.st.Ino && old.st.Size <= fresh.st.Size {
		sum, err := t.ending(h, old.st.Size)
		if err != nil {
			return err
		}
		if sum == old.sum {
			r.Kind, r.At = tail, old.st.Size
		}
	}
	if fresh.sum, err = t.ending(h, fresh.st.Size); err != nil {
		return err
	}
	r.Size = fresh.st.Size - r.At
	if r.Kind == tail && r.Size == 0 {
		r.Kind, r.At = attrs, 0
		return t.add(r, nil)
	}
	if _, err := h.Seek(r.At, io.SeekStart); err != nil {
		return err
	}
	return t.add(r, h)
}

// ending returns the checksum of the last part of a file before a place.
func (t *tracker) ending(h vfs.File, at int64) (uint64, error) {
	from := max(0, at-ending)
	if _, err := h.Seek(from, io.SeekStart); err != nil {
		return 0, err
	}
	data, err := io.ReadAll(io.LimitReader(h, at-from))
	return maphash.Bytes(t.seed, data), err
}
