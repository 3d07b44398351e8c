// Package attributes reads .gitattributes files and tells what they say of a path (gitattributes(5)).
//
// It owns the syntax, macros, precedence, and the patterns (gitignore(5)). Attributes that a checkout does not look at are dropped. What they
// mean for a file's content is package convert's matter.
//
// Invariants: it agrees with git 2.39, also where the manual is silent. A pattern takes time in proportion to its length times that of the path at most.
//
// Concurrency: an *Attributes is not changed after Load or Parse, and serves any goroutine; nil says nothing of any path. A crash leaves nothing.
package attributes
