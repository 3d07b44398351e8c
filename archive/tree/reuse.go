package tree

import (
	"errors"
	"io/fs"
	"os"

	"corpus-git/internal/vfs"
)

// Recreate opens a file of an unfinished tree for writing: a new one, or the regular file that has the name, in which the caller replaces old bytes of content (-1 in a new one). To remove that one and
// create another takes longer, and so does each later creation nearby: ext4 without a journal gives an inode out again only after minutes, and looks at each that it does not. A file
// with further names (a backup of hard links, say) is not written to: then the name gets a new file.
func Recreate(d vfs.FS, name string, perm uint32) (f vfs.File, old int64, err error) {
	create := func() (vfs.File, error) { return d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm) }
	if f, err = create(); !errors.Is(err, fs.ErrExist) {
		return f, -1, err
	}
	if st, err := d.Lstat(name); err == nil && st.IsRegular() && st.Nlink == 1 {
		if f, err := d.OpenFile(name, os.O_WRONLY, 0); err == nil {
			return f, st.Size, nil
		}
	}
	if err := d.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, -1, err
	}
	f, err = create()
	return f, -1, err
}

// Rewrite makes a file of an unfinished tree, with the content data. It replaces the content of one that exists, and syncs nothing.
func Rewrite(d vfs.FS, name string, data []byte, perm uint32) error {
	f, old, err := Recreate(d, name, perm)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil && old > int64(len(data)) {
		err = f.Truncate(int64(len(data)))
	}
	return errors.Join(err, f.Close())
}
