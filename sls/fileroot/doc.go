// Package fileroot finds files of salt:// in several roots.
//
// It owns the order of roots, mounts (a tree that is not on disk yet, such as the recipe of
// a pushed commit, seen below a folder of salt://), and the mapping from dotted SLS names to
// files. It never writes.
//
// Invariants: the first root that has a path wins; below a mount only the mount is visible, so a
// file that a push removed is not found in the old checkout. It is safe for concurrent use if the
// file systems are. Source: Salt documentation, "Salt File Server".
package fileroot
