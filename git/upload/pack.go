package upload

import (
	"context"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/store"
)

// Pack writes to w a pack of what wants reach and haves do not, as a fetch would get it, and counts its objects. haves that objs does not
// have are ignored. The pack is thin (gitformat-pack(5)): its deltas may have bases that haves reach. If nothing is missing, nothing is
// written.
func Pack(ctx context.Context, objs store.Reader, wants, haves []plumbing.Hash, w io.Writer) (objects int, err error) {
	known := make([]plumbing.Hash, 0, len(haves))
	for _, h := range haves {
		t, _, err := objs.Header(h)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return 0, err
		}
		if t == plumbing.CommitObject || t == plumbing.TagObject {
			known = append(known, h)
		}
	}
	hashes, common, err := list(newHistory(ctx, objs), wants, known, &boundary{cut: hashSet{}}, hashSet{}, noFilter())
	if err != nil || len(hashes) == 0 {
		return 0, err
	}
	opt := store.PackOptions{OfsDelta: true}
	if len(common) > 0 {
		opt.Has = common.has
	}
	_, err = store.WritePack(ctx, w, objs, hashes, opt)
	return len(hashes), err
}

// Snapshots writes to w a pack of the commits wants and their trees, without history, except for what the trees of the commits haves hold, and counts
// its objects. The pack is thin: its deltas may have bases in those trees. All the commits must exist, with their trees. If nothing is
// missing, nothing is written.
func Snapshots(ctx context.Context, objs store.Reader, wants, haves []plumbing.Hash, w io.Writer) (objects int, err error) {
	l := &lister{ctx: ctx, objs: objs, f: noFilter()}
	add := func(commits []plumbing.Hash) error {
		for _, h := range commits {
			c, err := object.ReadHead(objs, h)
			if err != nil {
				return err
			}
			if !l.seen.add(h) {
				continue
			}
			l.out = append(l.out, h)
			if err := l.tree(c.Tree, 0); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add(haves); err != nil {
		return 0, err
	}
	theirs := hashSet{}
	l.seen.each(func(h plumbing.Hash) { theirs.add(h) })
	l.out = nil
	if err := add(wants); err != nil {
		return 0, err
	}
	if len(l.out) == 0 {
		return 0, nil
	}
	opt := store.PackOptions{OfsDelta: true}
	if len(theirs) > 0 {
		opt.Has = theirs.has
	}
	_, err = store.WritePack(ctx, w, objs, l.out, opt)
	return len(l.out), err
}
