// Package vfs is the interface between corpus-git and a file system.
//
// It owns the interface FS, its one implementation on Linux (OS), and the helpers with which every room writes durable state:
// WriteFileAtomic, SyncDir, RemoveAll, Reaper. Paths come from the caller, as plain strings that may hold any byte but NUL.
//
// Invariants. The last element of a path is never followed when it is a
// symbolic link, by any method. A Dir is bound to an open directory, not to a
// name: its relative paths keep meaning the same folder when a parent is
// renamed, and OpenDir on it refuses every symbolic link on the way, so a walk
// as root through a folder that another user can write to cannot be led out of it.
// Every error is an *fs.PathError or *os.LinkError around a syscall.Errno.
//
// What is durable is documented for each call. A crash may lose anything that was not
// synced, in any order: content by File.Sync or SyncFS, names by SyncDir or
// SyncFS.
//
// Concurrency: an FS and a Dir may be used by many goroutines, a File by one.
//
// vfs/vfstest wraps an FS so that a chosen call fails, and holds a file system
// in memory that forgets what was not synced when it crashes.
package vfs
