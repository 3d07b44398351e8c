// Package difflib makes unified diffs that are identical, line for line, to those of Python's
// difflib.
package difflib
