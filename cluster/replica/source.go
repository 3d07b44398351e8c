package replica

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"corpus-git/internal/vfs"
)

const (
	// settling is how long after a change of a file a further one might not show in its times.
	settling = 50 * time.Millisecond
	// small is the size up to which the content of a file is read at once, and compared with what was captured last.
	small = 1 << 20
	// ending is how much of the end of a file is compared before what was appended is captured alone, in bytes.
	ending = 256
)

// node is what is known of a file or folder.
type node struct {
	st      vfs.Stat
	settled bool
	sum     uint64 // of the content; of the end of what only grows; 0 if unknown
	kids    map[string]*node
}

// tracker knows what hubs have in common, as it was captured last.
type tracker struct {
	Files
	root *node
	seed maphash.Seed
	now  func() time.Time
	undo []func()
	// b is the batch, nil while only the present state is learned.
	b *Batch
	// copied means that another hub copies the files: it may have read what was there between two captures that are equal.
	copied bool
	// journals collects the projects whose journals have changed.
	journals map[string]bool
}

func newTracker(f Files) *tracker {
	return &tracker{Files: f, root: &node{kids: map[string]*node{}}, seed: maphash.MakeSeed(), now: time.Now}
}

// set records what was captured.
func (t *tracker) set(parent *node, base string, n *node) {
	old, had := parent.kids[base]
	if parent.kids == nil {
		parent.kids = map[string]*node{}
	}
	if n == nil {
		delete(parent.kids, base)
	} else {
		parent.kids[base] = n
	}
	t.undo = append(t.undo, func() {
		if had {
			parent.kids[base] = old
		} else {
			delete(parent.kids, base)
		}
	})
}

// find returns the node of a name's folder, whose nodes are created; they are compared when they are visited.
func (t *tracker) find(name string) *node {
	n := t.root
	for _, part := range strings.Split(path.Dir(name), "/") {
		if part == "." {
			continue
		}
		if n.kids[part] == nil {
			t.set(n, part, &node{kids: map[string]*node{}})
		}
		n = n.kids[part]
	}
	return n
}

// wants says for a name whether a walk captures it, and whether it visits what is below.
type wants func(name string) (capture, below bool)

func all(string) (capture, below bool) { return true, true }

// walk captures what has changed at a name, and below it.
func (t *tracker) walk(ctx context.Context, name string, want wants) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.visit(ctx, name, t.find(name), want)
}

func (t *tracker) visit(ctx context.Context, name string, parent *node, want wants) error {
	base := path.Base(name)
	capture, below := want(name)
	if !capture && !below || !t.common(name) {
		return nil
	}
	began := t.now()
	st, err := t.FS.Lstat(t.at(name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.IsDir() && t.tree(name) {
		return t.gone(name, parent, capture)
	}
	if err != nil {
		return err
	}
	switch {
	case st.IsDir():
		return t.folder(ctx, name, st, parent, want)
	case !capture:
		return nil
	case st.IsRegular():
		err = t.file(name, st, began, parent)
		if errors.Is(err, fs.ErrNotExist) {
			return t.gone(name, parent, capture)
		}
		return err
	case st.IsSymlink():
		if old := parent.kids[base]; old != nil && old.st == st {
			return nil
		}
		target, err := t.FS.Readlink(t.at(name))
		if err != nil {
			return err
		}
		r := attributes(link, name, st)
		r.Target = Text(target)
		t.set(parent, base, &node{st: st, settled: true})
		return t.add(r, nil)
	}
	return nil
}

func (t *tracker) add(r record, content io.Reader) error {
	if t.b == nil {
		return nil
	}
	return t.b.add(r, content)
}

// gone captures that something was removed.
func (t *tracker) gone(name string, parent *node, capture bool) error {
	if parent.kids[path.Base(name)] == nil || !capture {
		return nil
	}
	t.set(parent, path.Base(name), nil)
	return t.add(record{Kind: gone, Name: Text(name)}, nil)
}

// folder captures a folder and what is in it.
func (t *tracker) folder(ctx context.Context, name string, st vfs.Stat, parent *node, want wants) error {
	base := path.Base(name)
	n := parent.kids[base]
	if n != nil && n.kids == nil { // it was a file
		n = nil
	}
	capture, _ := want(name)
	same := n != nil && n.settled && n.st.Mtime == st.Mtime && n.st.Ctime == st.Ctime && n.st.Ino == st.Ino
	if n == nil || capture && !same {
		fresh := &node{kids: map[string]*node{}}
		if n != nil {
			fresh.kids = n.kids
		}
		if capture { // otherwise its attributes are unknown, and another walk captures them
			fresh.st, fresh.settled = st, t.now().UnixNano()-st.Ctime > int64(settling)
			if strings.Contains(name, "/") && (n == nil || t.copied || n.st.Ino == 0 || n.st.Perm() != st.Perm() || n.st.UID != st.UID || n.st.GID != st.GID) {
				if err := t.add(attributes(folder, name, st), nil); err != nil {
					return err
				}
			}
		}
		t.set(parent, base, fresh)
		n = fresh
	}
	if _, below := want(name); !below {
		return nil
	}
	names, err := t.names(name, n, same)
	if err != nil {
		return err
	}
	for _, kid := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.visit(ctx, name+"/"+kid, n, want); err != nil {
			return err
		}
	}
	return nil
}

// names returns the names in a folder, and those that were in it. Files of an object store need not be visited again while the folder is unchanged.
func (t *tracker) names(name string, n *node, same bool) (names []string, err error) {
	if same && inObjects(name) {
		for kid, k := range n.kids {
			if k.kids != nil {
				names = append(names, kid)
			}
		}
		return names, nil
	}
	names, err = t.FS.ReadDir(t.at(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	there := make(map[string]bool, len(names))
	for _, kid := range names {
		there[kid] = true
	}
	for kid := range n.kids {
		if !there[kid] {
			names = append(names, kid) // removed
		}
	}
	return names, nil
}
