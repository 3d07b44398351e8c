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
	// Submodules says whether submodules are checked out at their paths.
	Submodules Submodules
	// Owner owns what is written, .git included; nil keeps that of the process.
	Owner *Owner
	// Keep leaves files that were changed on the machine, and refuses a commit that has other versions of them.
	Keep bool
	// NoSync leaves it to the caller to make the written files durable.
	NoSync bool
	// Snapshot is a recent scan of Dir, which saves examining each file again; nil if there is none.
	Snapshot *vfs.Snapshot
}

// Owner is a user and a group by number, where -1 leaves one unset, and permissions: Perm maps those that git records (0644, 0755) to
// those to set. Nil keeps them.
type Owner struct {
	UID, GID int
	Perm     func(folder bool, perm uint32) uint32
}

// CheckoutStats counts what a checkout did.
type CheckoutStats struct {
	Written, Removed, Unchanged int
	// Untracked is the number of files that git does not track, which were kept.
	Untracked int
	// Local are tracked files that were changed on the machine and were overwritten (the first few; LocalCount counts all).
	Local      []string
	LocalCount int
	// Kept are tracked files that were changed on the machine and kept as they are.
	Kept      []string
	KeptCount int
	Bytes     int64
	// Touched are the paths of all files that were written, outside of .git; nil if there are many or the commit has submodules.
	Touched []string
	// Notes are lines for the pusher: submodules that were not fetched, attributes that are not honoured.
	Notes []string
}

// Subject is a commit's subject: any bytes except line feeds.
type Subject struct{ Text, Author string }

// Description is what a push changes.
type Description struct {
	Subject string
	Author  string
	Time    time.Time
	// Commits is the number of commits reachable from new and not from old; CommitsMore reports that counting stopped there.
	Commits     int
	CommitsMore bool
	// Files is the number of files that differ, Paths the first ones, and Kinds the change of each: 'A' for a file that is added, 'D' for
	// one that is removed, and another letter for one that is modified.
	Files int
	Paths []string
	Kinds string
	// Bytes is the approximate size on disk of the files of new that differ.
	Bytes int64
	// Forced: old is not an ancestor of new.
	Forced bool
}
