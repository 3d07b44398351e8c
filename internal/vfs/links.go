package vfs

import (
	"errors"
	"path/filepath"
)

// CheckLinks checks the symbolic links in an absolute path, for a process with more privileges than the owner of some folder in it.
// ErrUntrusted reports a link that another user made, in a folder that users other than root and this process's may write to, and whose target
// does not belong to the link's owner: a link must not lead further than its owner's own permissions. follow includes the last element. It is a
// check before work begins; the work itself uses a Place. Paths that can't be examined pass: the work fails by itself.
func CheckLinks(path string, follow bool) error {
	if !filepath.IsAbs(path) {
		return nil
	}
	p, err := OpenPlace(path, follow)
	if err == nil {
		_ = p.Close()
	}
	if errors.Is(err, ErrUntrusted) {
		return err
	}
	return nil
}
