// Package core contains what the families of state functions share: the call with its arguments, the result, the table of
// functions, and operations that many of them need: running a tool, replacing a file as a whole, keeping owner and mode,
// looking up accounts.
//
// It knows no state function and imports no family.
//
// Invariants: an argument of a wrong type makes the state fail with a comment (BadArg); the panic never goes further. A file
// is replaced by a rename or a link; what a killed run leaves behind has no name, or is removed by the next run that writes
// there.
package core
