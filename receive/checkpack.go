package receive

import (
	"bufio"
	"context"
	"errors"
	"io"

	"corpus-git/git/pack"
	"corpus-git/git/store"
	"corpus-git/project"
	"corpus-git/receive/session"
)

// CheckPack reads a pack like that of a push, with all checks of every object, and stores nothing. If a push with the pack would be
// refused, the error is fault.Refused with the same message.
func (r *Repository) CheckPack(ctx context.Context, from io.Reader, limits pack.Limits) error {
	return r.change(ctx, func(o *opened) (err error) {
		db, err := r.all.objects(o)
		if err != nil {
			return err
		}
		q, err := db.NewQuarantine(string(project.NewID()))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, q.Discard()) }()
		_, err = q.Ingest(ctx, bufio.NewReader(from), store.IngestOptions{Limits: limits})
		return session.Classify(err)
	})
}
