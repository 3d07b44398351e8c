// Package attributes reads .gitattributes files and reports what they say of a path (gitattributes(5)).
//
// It owns the syntax, macros, precedence, and the patterns (gitignore(5)). Attributes that do not affect a checkout are dropped. Package
// convert applies them to a file's content.
//
// Invariants: it agrees with git 2.39, also where the manual is silent. A pattern takes time at most in proportion to its length times that of the path.
//
// Concurrency: an *Attributes is not changed after Load or Parse, and may be used by any goroutine; nil has no attributes. A crash leaves
// nothing.
package attributes
