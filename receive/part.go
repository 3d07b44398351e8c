package receive

import (
	"context"

	"corpus-git/git/part"
	"corpus-git/project"
)

// Part stores a commit with a part of another one's files: see part.Make. No ref is moved. It is durable on return; maintenance removes it if no ref reaches it.
func (r *Repository) Part(ctx context.Context, of project.Commit, share func(path string) part.Share) (c project.Commit, err error) {
	err = r.change(ctx, func(o *opened) error {
		db, err := r.all.objects(o)
		if err != nil {
			return err
		}
		h, err := part.Make(db, hashOf(of), share, db.Put)
		c = commitOf(h)
		return err
	})
	return c, err
}
