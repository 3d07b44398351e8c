// Package state lists the state functions of the built-in runner: cmd.run, file.managed, …. All is the only list of their
// families; each family is a package below this one, named after Salt's module or after what its modules have in common.
//
// A family owns, for each function, the arguments that it accepts and what it does. It never orders states, reads
// requisites or renders SLS files. Changes to the machine happen there: through host.Host for commands and accounts, and
// through the operating system for files. A family may use another one (file writes what archive unpacks); none imports
// this package.
//
// Invariants: with Call.Test set nothing on the machine changes. A function never panics on an argument of a wrong type: it
// makes the state fail with a comment. A managed file is replaced as a whole.
//
// Concurrency: a Table is read-only once it is made; a Call belongs to one goroutine.
//
// The arguments, results, changes and comments are those of Salt's state modules
// (Salt documentation, "Salt Module Reference", state modules), unless docs/salt-compatibility.md says otherwise.
package state
