// Package difflib makes unified diffs, line for line those of Python's difflib.
package difflib
