package core

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/internal/vfs"
	"corpus-git/undo"
)

// Every change that a state makes outside the archived trees is recorded in the undo log before it is made: by the functions in this file,
// and by ReplaceFile, Rewrite, MakeDir and Enforce. A state fails if that cannot be recorded.

// at does something at a place: by a path that does not go through a link put there meanwhile. See vfs.OpenPlace.
func at(path string, follow bool, do func(p *vfs.Place) error) error {
	p, err := vfs.OpenPlace(path, follow)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	return p.Named(do(p))
}

// Remove removes a file, a link or an empty directory.
func (c *Call) Remove(path string) error {
	return at(path, false, func(p *vfs.Place) error {
		if err := c.Undo.BeforePlace(c.Ctx, p); err != nil {
			return err
		}
		return os.Remove(p.Path())
	})
}

// RemoveAll removes a path and everything below it; it is not an error if it does not exist.
func (c *Call) RemoveAll(path string) error {
	err := at(path, false, func(p *vfs.Place) error {
		if err := c.Undo.BeforePlaceTree(c.Ctx, p); err != nil {
			return err
		}
		return os.RemoveAll(p.Path())
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Rename renames a path; what exists at the new one is replaced.
func (c *Call) Rename(from, to string) error {
	return at(from, false, func(old *vfs.Place) error {
		return at(to, false, func(p *vfs.Place) error {
			if err := c.Undo.BeforePlaceTree(c.Ctx, old); err != nil {
				return err
			}
			if whole, err := c.Undo.BeforePlaceWhole(c.Ctx, p); err != nil || !whole {
				if err == nil {
					err = c.Undo.BeforePlaceTree(c.Ctx, p)
				}
				if err != nil {
					return err
				}
			}
			return os.Rename(old.Path(), p.Path())
		})
	})
}

// Symlink creates a symbolic link. An existing one is replaced by a rename, so that there is always a link.
func (c *Call) Symlink(target, path string) error {
	return at(path, false, func(p *vfs.Place) error {
		if err := c.Undo.BeforePlace(c.Ctx, p); err != nil {
			return err
		}
		err := os.Symlink(target, p.Path())
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		tmp := p.Path() + ".corpus-link"
		_ = os.Remove(tmp)
		if err := os.Symlink(target, tmp); err != nil {
			return err
		}
		if err := os.Rename(tmp, p.Path()); err != nil {
			_ = os.Remove(tmp)
			return err
		}
		return nil
	})
}

// Link creates a hard link, which must not exist.
func (c *Call) Link(target, path string) error {
	return at(target, false, func(old *vfs.Place) error {
		return at(path, false, func(p *vfs.Place) error {
			if err := c.Undo.BeforePlace(c.Ctx, p); err != nil {
				return err
			}
			return os.Link(old.Path(), p.Path())
		})
	})
}

// Chtimes sets the times of what a path points to.
func (c *Call) Chtimes(path string, atime, mtime time.Time) error {
	return at(path, true, func(p *vfs.Place) error {
		if err := c.Undo.BeforeAttributes(c.Ctx, p); err != nil {
			return err
		}
		f, err := p.Open(unix.O_PATH, 0)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		return os.Chtimes("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), atime, mtime)
	})
}

// WriteFile writes a file in place, as os.WriteFile does.
func (c *Call) WriteFile(path string, data []byte, mode fs.FileMode) error {
	return at(path, true, func(p *vfs.Place) error {
		if err := c.Undo.BeforePlace(c.Ctx, p); err != nil {
			return err
		}
		f, err := p.Open(os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NONBLOCK, mode)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return errors.Join(err, f.Close())
	})
}

// Before records a file that a program is about to write in place: for a link, its target.
func (c *Call) Before(path string) error {
	return at(path, true, func(p *vfs.Place) error { return c.Undo.BeforePlace(c.Ctx, p) })
}

// Followed returns the target of a path after following links; the path itself if the target does not exist.
func Followed(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// MkdirAll makes a directory and those above it.
func (c *Call) MkdirAll(dir string, mode fs.FileMode) error {
	if IsDir(dir) {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := c.MkdirAll(parent, mode); err != nil {
			return err
		}
	}
	return at(dir, true, func(p *vfs.Place) error {
		if err := c.Undo.BeforePlace(c.Ctx, p); err != nil {
			return err
		}
		return os.Mkdir(p.Path(), mode)
	})
}

// BeforeWhole records a directory whose whole later content belongs to the state. If it already contains something, what the state does
// there is listed as something that cannot be undone.
func (c *Call) BeforeWhole(dir string) error {
	c.noted = true
	whole, err := c.Undo.BeforeWhole(c.Ctx, dir)
	if err == nil && !whole {
		err = c.Manual()
	}
	return err
}

// BeforeAction records a change that is not to a file, and that programs make.
func (c *Call) BeforeAction(a undo.Action) error {
	c.noted = true
	return c.Undo.BeforeAction(c.Ctx, a)
}

// ManualAt records that a program changes what is in a directory, unless that is below the project's trees.
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

// Manual records what cannot be undone automatically: the function and what it acts on.
func (c *Call) Manual() error {
	c.noted = true
	if c.manual {
		return nil
	}
	c.manual = true
	return c.Undo.Manual(c.Function + ": " + c.Name)
}

// program records that a program changes what the state has not recorded. Queries have no Output.
func (c *Call) program() error {
	if c.noted || c.Output == nil {
		return nil
	}
	return c.Manual()
}
