package run

import (
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
)

// checkLinks refuses a state whose paths go through another user's symbolic link to something that does not belong to that user. Salt follows such
// links: the owner of a folder that a state writes to as root could make it write, chown or read anything.
func checkLinks(module string, c *core.Call) error {
	switch module {
	case "file", "archive", "git", "virtualenv":
	default:
		return nil
	}
	follow := true
	switch c.Function {
	case "file.symlink", "file.absent", "file.rename", "file.missing", "file.exists":
		follow = false // it is about the link itself
	}
	if err := vfs.CheckLinks(c.ExpandUser(c.Name), follow); err != nil {
		return err
	}
	read := []string{"source", "sources"}
	if module == "git" {
		read = []string{"target"}
	}
	for _, arg := range read {
		if !c.Has(arg) {
			continue
		}
		for _, path := range c.Strings(arg) {
			if err := vfs.CheckLinks(c.ExpandUser(path), true); err != nil {
				return err
			}
		}
	}
	return nil
}
