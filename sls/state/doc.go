// Package state holds the state functions of the built-in runner: cmd.run, file.managed, ….
//
// It owns, per function, the arguments it knows and what it does. It never orders states,
// reads requisites or renders SLS files. Changes to the machine happen here: through
// host.Host for commands and accounts, and through the operating system for files.
//
// Invariants: with Call.Test set nothing on the machine changes. A function never panics on an
// argument of a wrong type: it fails the state with a comment. What a text file held or will
// hold is only ever in Return.Changes and Return.Diff. A managed file is replaced by a rename.
//
// Concurrency: a Table is read only after it is made; a Call belongs to one goroutine.
//
// The arguments, results, changes and comments are those of Salt's state modules
// (Salt documentation, "Salt Module Reference", state modules), where docs/salt-compatibility.md
// does not say otherwise.
package state
