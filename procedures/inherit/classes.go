package inherit

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures/keyplace"
	"corpus-git/project/schema"
)

// Classes returns the classes that the recipe and the recipes below it declare, its own ones last; nil if none has the
// file.
func (in *Recipes) Classes() (out *schema.Classes, err error) {
	if in == nil {
		return nil, nil
	}
	read := func(files fs.FS, of string) error {
		if files == nil {
			return nil
		}
		shown := path.Join(layout.SaltDir, schema.ClassesFile)
		if of != "" {
			shown = of + ":" + shown
		}
		text, err := fs.ReadFile(vfs.Bounded{FS: files, Max: keyplace.MaxSearched}, schema.ClassesFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fault.New(fault.KindOf(err), "read "+shown, "%w", err)
		}
		out, err = schema.ParseClasses(shown, text, out)
		return err
	}
	for _, l := range slices.Backward(in.Layers) {
		if err := read(l.Files, l.ID()); err != nil {
			return nil, err
		}
	}
	return out, read(in.Own, "")
}
