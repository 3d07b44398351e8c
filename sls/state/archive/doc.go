// Package archive implements the state functions of Salt's module archive: archive.extracted, for zip and tar in pure
// Go, or with tar(1) and unzip(1) if a state sets options for them.
//
// Nothing is written outside the directory, whatever names and links the archive contains.
package archive
