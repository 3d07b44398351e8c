// Package file implements the state functions of Salt's module file, one file for each function or group of them: managed,
// directory, recurse, symlink, copy and related ones, append, replace and related ones, line, keyvalue, blockreplace, serialize,
// accumulated. The formats of file.serialize are in package formats.
//
// The old and new contents of a text file appear only in Return.Changes and Return.Diff.
package file
