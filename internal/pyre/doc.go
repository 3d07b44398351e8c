// Package pyre matches regular expressions as Python's re module does.
//
// An expression that a finite automaton can decide is run by Go's engine, in time that grows with the text; only one with a
// look-around, a back reference, a condition or an atomic group is run by a backtracking engine, whose text and time are
// limited. The result does not depend on the engine.
//
// Invariants: a match in Python is a match here, with the same groups; what Python refuses is refused. Concurrency: a
// Regexp may be used by many goroutines.
//
// Two differences remain: a repeated group that matched nothing last, as in (a*)*, keeps its previous match; and a look-behind may have any
// width.
//
// Source: Python documentation, re; the behaviour of CPython 3.11.
package pyre
