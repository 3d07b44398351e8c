// Package python implements the state functions of Python's tools: pip, virtualenv, buildout.
package python
