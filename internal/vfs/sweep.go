package vfs

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// SweepTemps removes from a folder the temporary files that a crash left there: files and links, but no folders, of a
// name that TempName returns. Call it only when nobody writes. A missing folder is not an error.
func SweepTemps(f FS, dir string) error {
	names, err := f.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range names {
		if !isTemp(n) {
			continue
		}
		path := filepath.Join(dir, n)
		st, err := f.Lstat(path)
		if err == nil && !st.IsDir() {
			err = f.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func isTemp(name string) bool {
	digits, ok := strings.CutPrefix(name, tempPrefix)
	b, err := hex.DecodeString(digits)
	return ok && err == nil && len(b) == 8
}
