// Package tree reads the content of a commit directly from the objects, without a checkout.
//
//   - Read and Parse return the entries of one tree; CheckName and CheckPath report which names may reach a file system.
//   - FS is a commit, or a folder of one, as a read-only fs.FS; FSWith has the files of submodules in their places. File and Gitlink are single entries.
//   - Diff lists the differences of two commits; Describe returns who made a commit, and Compare how it follows from another.
//   - Fits reports whether a commit can be checked out at all, before anything is stopped for it.
//
// It reads objects through store.Reader, and nothing else. It writes nothing.
//
// Refused, with fault.Refused: every name that fsck refuses at receipt, names over 255 and paths over 4095 bytes, unknown modes, entries out of order
// or duplicate, a .gitmodules that is a symbolic link, symbolic links that no file system accepts, too many files and folders.
//
// Concurrency: everything may be used by any goroutine. A crash leaves nothing.
package tree
