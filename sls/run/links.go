package run

import (
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
)

// checkLinks refuses a state whose paths lead over another user's symbolic link to what is not that user's. Salt follows such links: who owns the folder
// that a state writes to as root has it write, chown or read what he likes.
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
