package checkout

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/tree"
	"corpus-git/internal/fault"
)

// maxPointer is the upper limit for the size of a git-lfs pointer: git-lfs, docs/spec.md.
const maxPointer = 1024

// isLFS reports whether a file is a git-lfs pointer: lines "key value", the version first, then in order, among them oid and size. Source:
// git-lfs, docs/spec.md, "The Pointer".
func isLFS(data []byte) bool {
	if len(data) >= maxPointer || !bytes.HasPrefix(data, []byte("version ")) {
		return false
	}
	var oid, size bool
	last := ""
	for i, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r"), " ")
		switch {
		case !ok || value == "":
			return false
		case i == 0:
			if value != "https://git-lfs.github.com/spec/v1" && value != "https://hawser.github.com/spec/v1" && value != "http://git-media.io/v/2" {
				return false
			}
			continue
		case key <= last:
			return false
		}
		switch last = key; key {
		case "oid":
			hash, isSHA := strings.CutPrefix(value, "sha256:")
			oid = isSHA && len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == ""
		case "size":
			_, err := strconv.ParseUint(value, 10, 63)
			size = err == nil
		}
	}
	return oid && size
}

// pointers collects the paths of git-lfs pointers, from any goroutine.
type pointers struct {
	mu    sync.Mutex
	paths []string
}

func (p *pointers) add(path string) {
	p.mu.Lock()
	p.paths = append(p.paths, path)
	p.mu.Unlock()
}

// pointerText describes the pointers.
func pointerText(p Paths) string {
	is := "files are pointers of git-lfs, not their content"
	if p.Count == 1 {
		is = "file is a pointer of git-lfs, not its content"
	}
	return fmt.Sprintf("%d %s: %s", p.Count, is, list(p.First))
}

// isPointer reports whether a blob is a git-lfs pointer; only small ones are read.
func isPointer(objs tree.Objects, h plumbing.Hash) (bool, error) {
	if _, size, err := objs.Header(h); err != nil || size >= maxPointer {
		return false, err
	}
	data, err := tree.Get(objs, h, plumbing.BlobObject)
	return err == nil && isLFS(data), err
}

// RefuseLFS returns fault.Refused if a file of a commit, or of the given submodules, is a git-lfs pointer.
func RefuseLFS(ctx context.Context, objs tree.Objects, commit plumbing.Hash, modules []tree.Submodule) error {
	var found []string
	if err := findPointers(ctx, objs, commit, modules, "", &found); err != nil || len(found) == 0 {
		return err
	}
	return fault.New(fault.Refused, "", "%s", pointerText(newPaths(found))).
		WithHint("put the files themselves into git, or set  lfs: note  in the project's configuration to deploy the pointers")
}

func findPointers(ctx context.Context, objs tree.Objects, commit plumbing.Hash, modules []tree.Submodule, prefix string, found *[]string) error {
	c, err := tree.ReadCommit(objs, commit)
	if err != nil {
		return err
	}
	x, err := newTreeLister(ctx, objs, 2, 0).list(c.Tree, nil)
	if err != nil {
		return err
	}
	for i := range x.entries {
		e := &x.entries[i]
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if e.Mode == object.ModeGitlink || !object.SameType(e.Mode, object.ModeFile) {
			continue
		}
		is, err := isPointer(objs, e.Hash)
		if err != nil {
			return err
		}
		if is {
			*found = append(*found, prefix+e.Path)
		}
	}
	for _, m := range modules {
		if err := findPointers(ctx, m.Objects, m.Commit, m.Modules, prefix+m.Path+"/", found); err != nil {
			return err
		}
	}
	return nil
}

// lfsNote describes all pointers of a commit that .gitattributes marks (marked), and those that were written; "" if there are none.
func lfsNote(objs tree.Objects, marked []*entry, written []string) string {
	all := slices.Clone(written)
	for _, e := range marked {
		// A file that can't be examined is not counted.
		if is, err := isPointer(objs, e.Hash); err == nil && is {
			all = append(all, e.Path)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return ""
	}
	return pointerText(newPaths(all))
}
