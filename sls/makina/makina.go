package makina

import (
	"embed"
	"io/fs"

	"corpus-git/sls/fileroot"
)

//go:embed all:tree
var files embed.FS

// Root returns the file root with the files, which should be the last one.
func Root() fileroot.Root {
	tree, err := fs.Sub(files, "tree")
	if err != nil {
		panic(err) // the name is constant
	}
	return fileroot.Root{FS: tree}
}
