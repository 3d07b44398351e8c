// Package archive has the state functions of Salt's module archive: archive.extracted, over zip and tar in pure Go, with
// tar(1) and unzip(1) where a state gives options for them.
//
// Nothing is written outside of the directory, whatever the names and links of the archive say.
package archive
