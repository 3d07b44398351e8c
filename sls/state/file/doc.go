// Package file has the state functions of Salt's module file, one file for each function or group of them: managed,
// directory, recurse, symlink, copy and related ones, append, replace and related ones, line, keyvalue, blockreplace, serialize,
// accumulated. The formats of file.serialize are in package formats.
//
// What a text file held or will hold is only ever in Return.Changes and Return.Diff.
package file
