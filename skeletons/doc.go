// Package skeletons holds the projects that one begins with: working applications with everything that deploys them.
//
// It owns files only: those of its folders, which are in the program, and those of an operator, below a folder of theirs or in a git
// repository. Nothing here runs, and nothing is written but by Write, into a folder that a person named.
//
// Invariants: each skeleton passes  corpus-git lint  as it is, under any name of a project, and needs Debian's packages only (compose an image
// of a registry, too). Files that begin with #! are executable. Names lose a suffix .skeleton, which keeps Go's own tools away from the files of a
// module. An own skeleton goes before one of the program with the same name.
package skeletons
