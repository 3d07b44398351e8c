// Package object reads git's objects: commits, trees and tags as bytes become values (gitformat-commit(5), git-mktree(1)).
//
// It owns the one parser of each, the modes of tree entries, the order of entries in a tree, following tags to what
// they name (Peel), and the queue of a walk that goes through history by date, newest first.
//
// It never reads a file and never writes: bytes come from a Reader. It does not judge what may be stored or checked
// out; package fsck does. What it cannot decode is an error that names the object.
// It never reads a file and never writes: bytes come from a Reader. It does not check what may be stored or checked out; package fsck does.
// What it can't parse is an error that names the object.
// tree. Parsing costs memory in proportion to the object's size.
package object
