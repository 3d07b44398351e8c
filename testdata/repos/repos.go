// Package repos holds contents of repositories for the demo and for tests.
//
// It owns files only. Sample is a small, real project: a page that is built from its
// sources and from its configuration. Nothing here runs by itself.
package repos

import (
	"embed"
	"io/fs"
)

//go:embed all:sample
var files embed.FS

// Sample is the content of the sample project. Files under bin/ are meant to be executable, which an embedded file cannot be.
func Sample() fs.FS {
	sub, err := fs.Sub(files, "sample")
	if err != nil {
		panic(err) // the name is a constant, and valid
	}
	return sub
}
