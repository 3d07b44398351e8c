// Package core is what the families of state functions share: the call with its arguments, the result, the table of functions,
// and what many of them do on a machine: run a tool, replace a file whole, keep owner and mode, name accounts.
//
// It knows no state function and imports no family.
//
// Invariants: an argument of a wrong type fails the state with a comment (BadArg), it never panics further. A file is replaced
// by a rename or a link; what a killed run leaves has no name, or is removed by the next run that writes there.
package core
