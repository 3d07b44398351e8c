package project

import "time"

// CheckoutStats counts what a checkout did.
type CheckoutStats struct {
	Written, Removed, Unchanged int
	// Untracked is the number of files that git does not track, which stayed.
	Untracked int
	// Local are tracked files that were changed on the machine and were overwritten (the first few; LocalCount is all).
	Local      []string
	LocalCount int
	Bytes      int64
	// Notes are lines for the pusher: submodules that were not fetched, attributes that are not honoured.
	Notes []string
}

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
