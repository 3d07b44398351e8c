package core

import (
	"io/fs"
	"os"
	"path/filepath"

	"corpus-git/internal/vfs"
	"corpus-git/undo"
)

// Every change of a state outside of what the archive holds is noted in the undo log before it is made: by what is in this file, and by
// ReplaceFile, Rewrite, MakeDir and Enforce. A state fails where that cannot be noted.

// Remove removes a file, a link or an empty directory.
func (c *Call) Remove(path string) error {
	if err := vfs.CheckLinks(path, false); err != nil {
		return err
	}
	if err := c.Undo.Before(path); err != nil {
		return err
	}
	return os.Remove(path)
}

// RemoveAll removes a path and all below it.
func (c *Call) RemoveAll(path string) error {
	if err := vfs.CheckLinks(path, false); err != nil {
		return err
	}
	if err := c.Undo.BeforeTree(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// Rename renames a path; what stands at the new one is replaced.
func (c *Call) Rename(from, to string) error {
	if err := c.Undo.BeforeTree(from); err != nil {
		return err
	}
	if whole, err := c.Undo.BeforeWhole(to); err != nil || !whole {
		if err == nil {
			err = c.Undo.BeforeTree(to)
		}
		if err != nil {
			return err
		}
	}
	return os.Rename(from, to)
}

// WriteFile writes a file in place, as os.WriteFile does.
func (c *Call) WriteFile(path string, data []byte, mode fs.FileMode) error {
	if err := c.Before(path); err != nil {
		return err
	}
	return os.WriteFile(path, data, mode)
}

// Before notes a file that is about to be written in place: that which a link leads to, where it is one.
func (c *Call) Before(path string) error { return c.Undo.Before(Followed(path)) }

// Followed is where a path leads to; itself, where it leads nowhere.
func Followed(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// MkdirAll makes a directory and those above it.
func (c *Call) MkdirAll(dir string, mode fs.FileMode) error {
	if !Exists(dir) {
		if err := c.Undo.Before(dir); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, mode)
}

// BeforeWhole notes a directory of which all that comes to be in it belongs to the state. Where something is in it already, what the state
// does there is listed as what cannot be undone.
func (c *Call) BeforeWhole(dir string) error {
	c.noted = true
	whole, err := c.Undo.BeforeWhole(dir)
	if err == nil && !whole {
		err = c.Manual()
	}
	return err
}

// BeforeAction notes a change that is no file, and which programs make.
func (c *Call) BeforeAction(a undo.Action) error {
	c.noted = true
	return c.Undo.BeforeAction(c.Ctx, a)
}

// ManualAt notes that a program changes what lies in a directory, unless that is below the project's trees.
func (c *Call) ManualAt(dir string) error {
	if c.noted {
		return nil
	}
	c.noted = true
	if c.Undo.Inside(dir) {
		return nil
	}
	return c.Manual()
}

// Manual notes what cannot be undone by itself: the function and what it acts on.
func (c *Call) Manual() error {
	c.noted = true
	if c.manual {
		return nil
	}
	c.manual = true
	return c.Undo.Manual(c.Function + ": " + c.Name)
}

// program notes that a program changes what the state has not noted. Questions have no Output.
func (c *Call) program() error {
	if c.noted || c.Output == nil {
		return nil
	}
	return c.Manual()
}
