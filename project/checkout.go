package project

import (
	"time"

	"corpus-git/internal/vfs"
)

// Checkout is a request to check a commit out into a working copy.
type Checkout struct {
	// Commit is published: its objects are in the repository.
	Commit Commit
	// Dir is the working copy.
	Dir string
	// Submodules says whether they are checked out in their places.
	Submodules Submodules
	// Owner owns what is written, .git included; nil leaves it to the process.
	Owner *Owner
	// Keep leaves files that were changed on the machine, and refuses a commit that has other versions of them.
	Keep bool
	// NoSync leaves it to the caller to make durable what was written.
	NoSync bool
	// Snapshot is a recent scan of Dir, which saves examining each file again; nil if there is none.
	Snapshot *vfs.Snapshot
}

// Owner is a user and a group by number, -1 leaves one unset, and the permissions: Perm maps those that git records (0644, 0755) to those
// to set. Nil keeps them.
type Owner struct {
	UID, GID int
	Perm     func(folder bool, perm uint32) uint32
}

// CheckoutStats counts what a checkout did.
type CheckoutStats struct {
	Written, Removed, Unchanged int
	// Untracked is the number of files that git does not track, which stayed.
	Untracked int
	// Local are tracked files that were changed on the machine and were overwritten (the first few; LocalCount is all).
	Local      []string
	LocalCount int
	// Kept are tracked files that were changed on the machine and stayed so.
	Kept      []string
	KeptCount int
	Bytes     int64
	// Touched are the paths of all files that were written, outside of .git; nil if there are many or the commit has submodules.
	Touched []string
	// Notes are lines for the pusher: submodules that were not fetched, attributes that are not honoured.
	Notes []string
}

// Subject is a commit's subject: any bytes, but line feeds.
type Subject struct{ Text, Author string }

// Description is what a push brings.
type Description struct {
	Subject string
	Author  string
	Time    time.Time
	// Commits is the number of commits new reaches and old does not; CommitsMore says that counting stopped there.
	Commits     int
	CommitsMore bool
	// Files is the number of files that differ, Paths the first of them, and Kinds what happens to each: 'A' for a file
	// that is added, 'D' for one that is removed, and another letter for one that changes.
	Files int
	Paths []string
	Kinds string
	// Bytes is about what the files of new that differ take on disk.
	Bytes int64
	// Forced: old is not an ancestor of new.
	Forced bool
}
