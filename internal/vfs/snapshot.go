package vfs

import (
	"iter"
	"time"
)

// Snapshot is what one walk of a tree found.
type Snapshot struct {
	// Begun is when the walk began, by the machine's clock.
	Begun time.Time
	// Each gives every name below the tree once, folders too, in byte order of paths; these are relative to the tree. What it gives was
	// so at a moment after Begun, and no link was followed on the way to it.
	Each iter.Seq2[string, FileFacts]
}

// FileFacts are what lstat(2) tells of an inode. Times are nanoseconds since 1970.
type FileFacts struct {
	Mode, UID, GID uint32
	Dev, Ino       uint64
	Size           int64
	Mtime, Ctime   int64
}
