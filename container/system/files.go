package system

import (
	"context"

	"corpus-git/container"
)

// Snapshot implements container.Driver.
func (d Driver) Snapshot(ctx context.Context, c container.Container, id string) error {
	if err := d.stopped(ctx, c); err != nil {
		return err
	}
	return d.Maker.Snapshot(ctx, d.Store.Folder(c.Name), id)
}

// Restore implements container.Driver.
func (d Driver) Restore(ctx context.Context, c container.Container, id string) error {
	if err := d.stopped(ctx, c); err != nil {
		return err
	}
	return d.Maker.Restore(ctx, d.Store.Folder(c.Name), id)
}

// Forget implements container.Driver.
func (d Driver) Forget(_ context.Context, c container.Container, id string) error {
	return d.Maker.Forget(d.Store.Folder(c.Name), id)
}

// Snapshots implements container.Driver.
func (d Driver) Snapshots(_ context.Context, c container.Container) ([]string, error) {
	return d.Maker.Snapshots(d.Store.Folder(c.Name))
}

// Destroy implements container.Driver.
func (d Driver) Destroy(ctx context.Context, c container.Container) error {
	if err := d.stopped(ctx, c); err != nil {
		return err
	}
	return d.Maker.Remove(d.Store.Folder(c.Name))
}

// stopped refuses operations on a running container that need a stopped one.
func (d Driver) stopped(ctx context.Context, c container.Container) error {
	running, err := d.Kind.Running(ctx, c)
	if err == nil && running {
		err = container.Running(c)
	}
	return err
}
