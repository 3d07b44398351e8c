package hubs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"corpus-git/cluster/member"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// mayLead returns why this hub must not lead. Its program must know the database, which a hub with a newer one may have migrated. And if it has heard of no leader since it was started, the NATS servers of
// the others must not refuse it: those of a hub that went on without it (hub alone, hub remove) do, and two of the lost ones would be a majority of a cluster that is no more.
func (f *follower) mayLead(ctx context.Context, fresh bool) error {
	if err := f.knows(ctx); err != nil {
		return err
	}
	if !fresh {
		return nil
	}
	if refused := member.RefusedBy(ctx, f.state); len(refused) > 0 {
		return fault.New(fault.Refused, "", "it was lost, or removed, and others went on without it: the NATS servers of %s refuse it; end this server and the NATS server beside it for good, or, if those were set up anew by mistake, end them", strings.Join(refused, " and "))
	}
	return nil
}

// knows returns an error if the database has tables that this program does not know.
func (f *follower) knows(ctx context.Context) (err error) {
	path := f.state.Database()
	if there, err := vfs.Exists(vfs.OS{}, path); err != nil || !there || f.Schemas == nil {
		return err
	}
	d, err := db.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	_, release, err := db.Schemas(ctx, d)
	if err != nil || release == f.Release {
		return err
	}
	if f.known == nil {
		if f.known, err = f.Schemas(ctx); err != nil {
			return fmt.Errorf("find out which tables this program knows: %w", err)
		}
	}
	var newer *db.NewerError
	if err = db.Known(ctx, d, f.known); errors.As(err, &newer) {
		err = fault.New(fault.Refused, "", "%w; this is corpus-git %s: install that version here", err, f.Release)
	}
	return err
}
