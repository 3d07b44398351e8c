// Package skeletons contains the projects to start from: working applications with everything needed to deploy them.
//
// It only owns files: those in its folders, which are embedded in the program, and the operator's, below a folder or in a git repository. Nothing
// here is run, and only Write writes anything, into a folder that a person named.
//
// Invariants: each skeleton passes corpus-git lint unchanged, under any project name, and needs only Debian's packages (compose also an image from
// a registry). Files that begin with #! are executable. A suffix .skeleton is removed from names; it keeps Go's own tools from treating the files
// as a module. An operator's skeleton takes precedence over one of the program with the same name.
package skeletons
