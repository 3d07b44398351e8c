package vfs

import (
	"iter"
	"time"
)

// Snapshot is what one walk of a tree found.
type Snapshot struct {
	// Begun is when the walk began, by the machine's clock.
	Begun time.Time
	// Each yields every name below the tree once, including folders, in byte order of paths relative to the tree. Each fact was true at a
	// moment after Begun, and no link was followed on the way.
	Each iter.Seq2[string, FileFacts]
}

// FileFacts are what lstat(2) reports about an inode. Times are nanoseconds since 1970.
type FileFacts struct {
	Mode, UID, GID uint32
	Dev, Ino       uint64
	Size           int64
	Mtime, Ctime   int64
}
