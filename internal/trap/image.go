package trap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Disk is an ext4 file system, in a file on a file system in memory, whose power can be cut: Cut copies the current content of the disk,
// without what is only in the kernel's memory, and Mount mounts such a copy as the next boot would, replaying the journal. Needs root, loop
// devices, and the programs mkfs.ext4, mount and umount.
//
// The file system writes by itself as late as it can (commit=300), so that a copy has what was synced and little else.
// It is for one goroutine.
type Disk struct {
	// Dir is where it is mounted.
	Dir string

	top, image string
	mounts     []string
	cuts       int
}

// NewDisk makes a disk of that many megabytes below dir, which must be empty. Close it.
func NewDisk(dir string, megabytes int) (*Disk, error) {
	d := &Disk{Dir: filepath.Join(dir, "disk"), top: filepath.Join(dir, "images")}
	d.image = filepath.Join(d.top, "disk.img")
	err := errors.Join(os.Mkdir(d.Dir, 0o755), os.Mkdir(d.top, 0o700))
	if err == nil {
		err = unix.Mount("images", d.top, "tmpfs", 0, "mode=0700")
	}
	if err != nil {
		return nil, err
	}
	d.mounts = []string{d.top}
	err = program("truncate", "-s", fmt.Sprintf("%dM", megabytes), d.image)
	if err == nil {
		err = program("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", d.image)
	}
	if err == nil {
		err = program("mount", "-o", "loop,commit=300,noatime", d.image, d.Dir)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.mounts = append(d.mounts, d.Dir)
	return d, nil
}

// Close unmounts everything and forgets all copies.
func (d *Disk) Close() (err error) {
	for i := len(d.mounts) - 1; i >= 0; i-- {
		err = errors.Join(err, unix.Unmount(d.mounts[i], unix.MNT_DETACH))
	}
	d.mounts = nil
	return err
}

// Cut returns the current content of the disk. With names the file system's journal is written first, as another program's fsync may make
// it at any moment: names, owners and modes are then on the disk, and content that nobody synced is not.
func (d *Disk) Cut(names bool) (image string, err error) {
	if names {
		if err := d.commit(); err != nil {
			return "", err
		}
	}
	d.cuts++
	image = filepath.Join(d.top, fmt.Sprintf("cut%d.img", d.cuts))
	for range 100 {
		before, _, err := d.written()
		if err != nil {
			return "", err
		}
		if err := copyFile(d.image, image); err != nil {
			return "", err
		}
		after, busy, err := d.written()
		if err != nil {
			return "", err
		}
		if before == after && !busy {
			return image, nil
		}
		// The kernel wrote meanwhile: half of this copy is older than the other.
	}
	return "", errors.New("the disk does not stand still")
}

// commit has the journal written, by the sync of a file that nobody needs.
func (d *Disk) commit() error {
	f, err := os.OpenFile(filepath.Join(d.Dir, ".commit"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = f.Chmod(0o600); err == nil { // something to write
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// written changes whenever the loop device has written; busy reports whether it is writing.
func (d *Disk) written() (sectors string, busy bool, err error) {
	var st unix.Stat_t
	if err := unix.Stat(d.Dir, &st); err != nil {
		return "", false, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(st.Dev), unix.Minor(st.Dev)))
	f := strings.Fields(string(text)) // Documentation/block/stat.rst
	if err != nil || len(f) < 9 {
		return "", false, errors.Join(errors.New("no statistics of the loop device"), err)
	}
	return f[6], f[8] != "0", nil
}

// Mount mounts a copy at a new folder, as after a power cut. end unmounts and deletes it.
func (d *Disk) Mount(image string) (dir string, end func() error, err error) {
	dir = strings.TrimSuffix(image, ".img")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", nil, err
	}
	unmount, err := d.mountAt(image, dir)
	return dir, func() error { return errors.Join(unmount(), os.Remove(dir)) }, err
}

// Boot mounts a copy over Dir, for programs that know that path. Nothing may have a file of the disk open. end unmounts and deletes it.
func (d *Disk) Boot(image string) (end func() error, err error) { return d.mountAt(image, d.Dir) }

func (d *Disk) mountAt(image, dir string) (end func() error, err error) {
	if err := program("mount", "-o", "loop,noatime", image, dir); err != nil {
		return func() error { return nil }, err
	}
	d.mounts = append(d.mounts, dir)
	return func() error {
		d.mounts = d.mounts[:len(d.mounts)-1]
		// What a killed server had started may still have a file open: its mount goes with it.
		return errors.Join(unix.Unmount(dir, unix.MNT_DETACH), os.Remove(image))
	}, nil
}

// copyFile copies a file, holes as holes.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	st, err := in.Stat()
	if err == nil {
		err = out.Truncate(st.Size())
	}
	for at := int64(0); err == nil; {
		var end int64
		if at, err = unix.Seek(int(in.Fd()), at, unix.SEEK_DATA); errors.Is(err, unix.ENXIO) {
			err = nil
			break
		}
		if err == nil {
			end, err = unix.Seek(int(in.Fd()), at, unix.SEEK_HOLE)
		}
		if err == nil {
			_, err = io.Copy(io.NewOffsetWriter(out, at), io.NewSectionReader(in, at, end-at))
			at = end
		}
	}
	return errors.Join(err, out.Close())
}

func program(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// Fill fills the file system of path except for so many bytes, with a file of that name that is synced.
func Fill(path string, room int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for size := 1 << 20; size > 0; {
		_, err := f.Write(make([]byte, size))
		if err != nil && !errors.Is(err, unix.ENOSPC) {
			return errors.Join(err, f.Close())
		}
		if err != nil {
			size /= 2
		}
	}
	err = f.Sync()
	if st, serr := f.Stat(); serr != nil {
		err = errors.Join(err, serr)
	} else if err == nil {
		err = errors.Join(f.Truncate(st.Size()-room), f.Sync())
	}
	return errors.Join(err, f.Close())
}
