// Package index reads and writes the index of a working copy (gitformat-index(5)): its entries, the facts of inodes that
// they keep, and the TREE extension.
//
// It owns the file's bytes. It opens no file and does not know what is to be checked out: package checkout does both.
//
//   - Parse reads versions 2, 3 and 4 into places that the caller owns; Unparsed reads a file of version 2 without parsing all of it.
//   - Content.Write writes version 2, and copies the bytes of entries that are unchanged.
//   - Stat is what an entry keeps of an inode, and reports which files may have changed without showing it.
//   - Tree is a node of the TREE extension; ID distinguishes one index file from another.
//
// Invariants: a path that Parse returns is one that package tree accepts, so it never leads out of a working copy. No count or length of the
// file is trusted before the bytes exist. A damaged or forged index is ErrUnusable. A large index is parsed in parts, in parallel with each other and
// with its checksum; checksums of a written index are computed while it is written.
//
// Concurrency: functions without state; a Tree is read by one goroutine at a time, because its nodes are parsed on demand.
// A crash leaves nothing: package checkout writes the file.
package index
