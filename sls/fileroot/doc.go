// Package fileroot finds files of salt:// over several roots.
//
// It owns the order of roots, mounts (a tree that is not on disk yet, such as the recipe of
// a pushed commit, seen below a folder of salt://), and the mapping from dotted SLS names to
// files. It never writes.
//
// Invariants: the first root that has a path wins; below a mount only the mount is seen, so a
// file that a push removed is not found in the old checkout. Safe for concurrent use as far
// as the file systems are. Source: Salt documentation, "Salt File Server".
package fileroot
