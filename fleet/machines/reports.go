package machines

import (
	"context"

	"corpus-git/fleet"
	"corpus-git/internal/fault"
)

// RecordReport records a node's report, and its facts if they have changed. An unknown node is ignored. Durable on return.
func (f *Fleet) RecordReport(ctx context.Context, name string, said fleet.NodeReport) error {
	if err := f.Store.RecordReport(ctx, name, said); err != nil || f.Facts == nil {
		return err
	}
	f.reports.Lock()
	defer f.reports.Unlock()
	if _, err := f.Get(ctx, name); fault.KindOf(err) == fault.Refused {
		return nil
	} else if err != nil {
		return err
	}
	return f.Facts(ctx, name, said.Facts)
}

// Remove removes a node with its facts, as fleet.Store.Remove does. After a crash the facts may be gone and the node still there; its next report sets them again.
func (f *Fleet) Remove(ctx context.Context, name string) error {
	f.reports.Lock()
	defer f.reports.Unlock()
	err := f.Removable(ctx, name)
	if err == nil && f.Facts != nil {
		err = f.Facts(ctx, name, nil)
	}
	if err != nil {
		return err
	}
	return f.Store.Remove(ctx, name)
}
