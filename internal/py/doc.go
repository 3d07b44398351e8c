// Package py is Python's value model, as far as templates, YAML and SLS files can see it.
//
// Values are plain Go values: nil is None; bool, int64 and *big.Int (an int that does not fit 64 bits), float64 and string are themselves;
// *Dict, *List and Tuple are the containers; everything else is an object that implements some of the small interfaces of object.go
// (Callable, Attributer …).
//
// It owns: those types, conversion to and from Go and JSON, str() and repr(), comparison, arithmetic,
// slicing, % and str.format formatting, and the methods of str, dict, list, tuple, int and float. The
// reference is CPython 3.11; error messages are CPython's own if a template author can meet them.
//
// It never touches: files, the environment, the clock, Salt. It has no package state.
//
// Invariants: a Dict keeps insertion order, and 1, 1.0 and True are one key, as in Python. An int64 is
// never held in a *big.Int: every operation returns the smallest form (see Norm). An error text never
// holds the value of a variable.
//
// Limits: operations that can be made to allocate or to run without end are methods of Ops, which charges
// them to a budget; a nil *Ops has no limits and is for trusted values.
//
// Concurrency: Dict and List are not safe for use by several goroutines while one writes; reading is safe.
// Nothing here outlives the process, so a crash leaves nothing.
package py
