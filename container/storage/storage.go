// Package storage makes, resizes and removes the volumes of containers: file systems of a fixed size, whose data outlives the root file system.
//
// It owns the image of a volume (storage.img in the container's folder, an ext4 file system whose blocks are reserved) and its mount point next to it. It knows
// no container, and does not decide when one is stopped.
//
// Invariants: an image of that name is a complete file system. It is reduced only while it is not mounted, and never below what its files take.
//
// A crash leaves an image that is longer than its file system, which the next call for the same size completes, or a file that ends in .part, which the next call
// removes.
package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

// Min is the smallest size of a volume, and Unit what sizes are rounded up to, in bytes.
const (
	Min  = 16 << 20
	Unit = 1 << 20
)

// Volumes works on the volumes of folders.
type Volumes struct {
	Run execx.Commander
	FS  vfs.FS
	// Env is the environment of the tools.
	Env []string
}

// Mountpoint returns where the volume of a folder is mounted on this machine.
func Mountpoint(folder string) string { return filepath.Join(folder, "storage") }

func image(folder string) string { return filepath.Join(folder, "storage.img") }

// Size rounds the size of a volume, and refuses one that is too small.
func Size(size int64) (int64, error) {
	if size < Min {
		return 0, fault.New(fault.Usage, "", "a volume has at least %d MB", Min>>20)
	}
	return (size + Unit - 1) / Unit * Unit, nil
}

// Set gives the volume of a folder a size, in bytes, and makes it if there is none; was is the size that it has according to its record, 0 for none. A mounted volume
// can only be enlarged, and where the kernel does not allow that, it is fault.Busy. Too little room on this machine, or in a smaller volume, is fault.Refused. It is durable on return.
func (v Volumes) Set(ctx context.Context, folder string, was, size int64) error {
	if was == 0 {
		if err := v.Remove(folder); err != nil { // the rest of an interrupted removal
			return err
		}
		return v.create(ctx, folder, size)
	}
	f, err := os.OpenFile(image(folder), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return v.missing(folder)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	mounted, err := Mounted(folder)
	if err != nil {
		return err
	}
	if mounted && size < fi.Size() {
		return fault.New(fault.Refused, "", "a volume is reduced only while it is not mounted")
	}
	if err := reserve(f, fi.Size(), size); err != nil {
		return err
	}
	if mounted {
		return v.online(ctx, folder)
	}
	if err := v.tool(ctx, 1, "e2fsck", "-f", "-p", image(folder)); err != nil {
		return err
	}
	if err := v.tool(ctx, 0, "resize2fs", image(folder), fmt.Sprintf("%dK", size>>10)); err != nil {
		if size < fi.Size() {
			err = fault.New(fault.Refused, "", "the volume cannot be reduced to that: %w", err).WithHint("resize2fs -P %s  estimates how small it can be, in blocks", image(folder))
		}
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync())
}

// reserve enlarges a file to a size, with its blocks.
func reserve(f *os.File, from, to int64) error {
	if to <= from {
		return nil
	}
	err := Room(filepath.Dir(f.Name()), to-from) // before anything is taken
	if err == nil {
		if err = unix.Fallocate(int(f.Fd()), 0, from, to-from); err != nil { //nolint:gosec // a descriptor fits
			err = errors.Join(err, f.Truncate(from))
		}
	}
	if vfs.IsFull(err) {
		return noRoom(filepath.Dir(f.Name()), to-from)
	}
	return err
}

// Room is fault.Refused if the file system of a folder has fewer bytes left than a volume is to have more.
func Room(folder string, more int64) error {
	if more <= 0 {
		return nil
	}
	var room unix.Statfs_t
	if err := unix.Statfs(folder, &room); err != nil {
		return err
	}
	if room.Bavail < uint64(more)/uint64(room.Bsize) { //nolint:gosec // neither is negative
		return noRoom(folder, more)
	}
	return nil
}

func noRoom(folder string, more int64) error {
	return fault.New(fault.Refused, "", "this machine has no room for %d MB more in %s", more>>20, folder).WithHint("free some space there, or choose a smaller size")
}

// create makes the volume.
func (v Volumes) create(ctx context.Context, folder string, size int64) error {
	part := image(folder) + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err = reserve(f, 0, size); err == nil {
		err = v.tool(ctx, 0, "mkfs.ext4", "-q", "-F", "-m", "0", part)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return vfs.RenameDurable(v.FS, part, image(folder))
}

// device returns the loop device of a volume, "" if there is none.
func (v Volumes) device(ctx context.Context, folder string) (string, error) {
	var out strings.Builder
	st, err := v.Run.Run(ctx, execx.Cmd{Argv: []string{"losetup", "--noheadings", "--output", "NAME", "--associated", image(folder)}, Dir: "/", Env: v.Env, Stdout: &out})
	if err == nil && st.Exit != 0 {
		err = fault.New(fault.Failed, "", "losetup: exit status %d", st.Exit)
	}
	return strings.TrimSpace(out.String()), err
}

// online makes the file system of a mounted volume as large as its image.
func (v Volumes) online(ctx context.Context, folder string) error {
	device, err := v.device(ctx, folder)
	if err == nil && (device == "" || strings.Contains(device, "\n")) {
		err = fault.New(fault.Failed, "", "the loop device of %s was not found", image(folder))
	}
	if err != nil {
		return err
	}
	if err := v.tool(ctx, 0, "losetup", "--set-capacity", device); err != nil {
		return err
	}
	if err := v.tool(ctx, 0, "resize2fs", device); err != nil {
		if strings.Contains(err.Error(), "Permission denied") { // the kernel wants CAP_SYS_RESOURCE (fs/ext4/ioctl.c), which root of a container lacks
			return fault.New(fault.Busy, "", "this machine enlarges no file system while it is mounted: %w", err)
		}
		return err
	}
	return nil
}

// tool runs a program, whose exit status is at most good; an error has the last line of its standard error, or of its output.
func (v Volumes) tool(ctx context.Context, good int, argv ...string) error {
	out, errw := &execx.Tail{Max: 4 << 10}, &execx.Tail{Max: 4 << 10}
	st, err := v.Run.Run(ctx, execx.Cmd{Argv: argv, Dir: "/", Env: v.Env, Stdout: out, Stderr: errw})
	if err == nil && st.Exit > good {
		lines := strings.Split(strings.TrimSpace(cmp.Or(errw.String(), out.String())), "\n")
		err = fault.New(fault.Failed, "", "%s: exit status %d: %s", argv[0], st.Exit, printable.Text(strings.TrimSpace(lines[len(lines)-1])))
	}
	return err
}

// Mounted reports whether the volume of a folder is mounted.
func Mounted(folder string) (bool, error) {
	var in, out unix.Stat_t
	if err := unix.Stat(Mountpoint(folder), &in); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if err := unix.Stat(folder, &out); err != nil {
		return false, err
	}
	return in.Dev != out.Dev, nil
}

// missing is the error for a volume that is recorded, whose image is gone: its removal was interrupted, or somebody removed it.
func (v Volumes) missing(folder string) error {
	name := filepath.Base(folder)
	return fault.New(fault.Failed, "", "the volume of %s is gone: there is no %s", name, image(folder)).WithHint("corpus-git container storage free %s --yes  forgets it", name)
}

// Mount mounts the volume of a folder. It is not an error if it is mounted.
func (v Volumes) Mount(ctx context.Context, folder string) error {
	if mounted, err := Mounted(folder); err != nil || mounted {
		return err
	}
	if err := os.Mkdir(Mountpoint(folder), 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // its folder is root's alone
		return err
	}
	if have, err := vfs.Exists(v.FS, image(folder)); err != nil || !have {
		return errors.Join(err, v.missing(folder))
	}
	return v.tool(ctx, 0, "mount", "-o", "loop,nodev", image(folder), Mountpoint(folder))
}

// How long Unmount waits for others to release the volume, in tries, and the interval between them.
const (
	releaseTries = 300
	releaseEvery = 100 * time.Millisecond
)

// Unmount unmounts the volume of a folder, and returns when nobody uses it: the mounts of a container that has ended may last a moment longer, and until then its file
// system is in use. It is not an error if it is not mounted.
func (v Volumes) Unmount(ctx context.Context, folder string) error {
	for { // mount(8) of a call that was killed may have ended after the next one looked, so that it is mounted twice
		mounted, err := Mounted(folder)
		if err != nil {
			return err
		}
		if !mounted {
			break
		}
		if err := v.tool(ctx, 0, "umount", Mountpoint(folder)); err != nil {
			return err
		}
	}
	if have, err := vfs.Exists(v.FS, image(folder)); err != nil || !have {
		return err
	}
	for range releaseTries {
		device, err := v.device(ctx, folder)
		if err != nil || device == "" { // it is detached with its last mount: mount(8), loop
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(releaseEvery):
		}
	}
	return fault.New(fault.Busy, "", "%s is still in use", image(folder)).WithHint("try again")
}

// Remove removes the volume of a folder, which is not mounted. It is not an error if there is none. It is durable on return.
func (v Volumes) Remove(folder string) error {
	for _, name := range []string{image(folder), image(folder) + ".part"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return vfs.SyncDir(v.FS, folder)
}
