package project

import "time"

// Retention says which archives of a project stay. Pinned ones always do, and so does the newest archive of a good
// deployment; the one before it, where Keep is at least 2, goes by no age and no size either.
type Retention struct {
	// Keep is how many archives of good deployments stay, at least 1; KeepFailed how many of failed ones, with the tree
	// that failed.
	Keep, KeepFailed int
	// MaxBytes is what all archives of the project may take on disk; 0 is no limit.
	MaxBytes int64
	// MaxAge ends archives of good deployments, FailedMaxAge those of failed ones; 0 is no limit.
	MaxAge, FailedMaxAge time.Duration
}

// DefaultRetention is what stays where nothing else is said.
func DefaultRetention() Retention {
	return Retention{Keep: DefaultKeepArchives, KeepFailed: 1, FailedMaxAge: 7 * day}
}
