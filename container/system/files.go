package system

import (
	"context"

	"corpus-git/container"
	"corpus-git/container/storage"
)

// volumes works on the volumes of containers.
func (d Driver) volumes() storage.Volumes {
	return storage.Volumes{Run: d.Run, FS: d.Store.FS, Env: d.Env}
}

// Storage implements container.Driver.
func (d Driver) Storage(ctx context.Context, c container.Container, size int64) error {
	folder := d.Store.Folder(c.Name)
	if c.Storage == 0 || size < c.Storage {
		if err := d.stopped(ctx, c); err != nil {
			return err
		}
		if err := d.volumes().Unmount(ctx, folder); err != nil {
			return err
		}
	}
	if size == 0 {
		return d.volumes().Remove(folder)
	}
	return d.volumes().Set(ctx, folder, c.Storage, size)
}

// Room implements container.Driver.
func (d Driver) Room(c container.Container, size int64) error {
	return storage.Room(d.Store.Folder(c.Name), size-c.Storage)
}

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
	if err := d.volumes().Unmount(ctx, d.Store.Folder(c.Name)); err != nil {
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
