// Package convert changes the content of a blob into that of a file, as .gitattributes requires (gitattributes(5)): the ends of lines,
// ident, and working-tree-encoding of the Unicode family and Latin 1. Native line ends are those of Linux, LF, so only eol=crlf converts.
//
// It owns these three conversions, and reports whether a file is the result of a conversion. It runs no filter and reads no file.
//
// Invariants: content to which a conversion cannot apply (binary, not UTF-8, not in the encoding) stays as it is, as in git.
//
// Concurrency: functions without state. A crash leaves nothing.
package convert
