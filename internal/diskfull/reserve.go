package diskfull

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Enough is the space needed for records, journals and renames, in bytes: less counts as a full disk.
const Enough = 1 << 20

// KeepReserve maintains a file whose removal frees space for the journal and the records of a rollback on a full disk. If it can't be
// written now, a later deployment tries again.
func KeepReserve(path string) error {
	if st, err := os.Stat(path); err == nil && st.Size() == Enough {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, Enough)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		_, err = f.Write(make([]byte, Enough))
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}
