// Package object parses git's objects: commits, trees and tags (gitformat-commit(5), git-mktree(1)).
//
// It owns the one parser of each, the modes of tree entries, the order of entries in a tree, following tags to their
// targets (Peel), and the queue of a walk through history by date, newest first.
//
// It never reads a file and never writes: bytes come from a Reader. It does not check what may be stored or checked out; package fsck does.
// What it can't parse is an error that names the object.
//
// Invariants: values share no memory with the bytes that they were parsed from, except Entry, whose Name points into its
// tree. Parsing costs memory in proportion to the object's size.
package object
