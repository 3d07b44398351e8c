// Package sample holds the project that the demo deploys: a page that is built from its
// sources and from its configuration.
//
// It owns files only. Nothing here runs by itself.
package sample

import (
	"embed"
	"io/fs"
)

//go:embed all:sample
var files embed.FS

// Files returns the content of the project. Files under bin/ are meant to be executable, which an embedded file cannot be.
func Files() fs.FS {
	sub, err := fs.Sub(files, "sample")
	if err != nil {
		panic(err) // the name is a constant, and valid
	}
	return sub
}
