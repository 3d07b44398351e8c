package project

import (
	"time"

	"corpus-git/internal/quantity"
)

// Retention says which archives of a project are kept. Pinned archives are always kept, and so is the newest archive of a good
// deployment; if Keep is at least 2, no age or size limit removes the one before it either.
type Retention struct {
	// Keep is the number of archives of good deployments that are kept, at least 1; KeepFailed that of failed ones, with the tree
	// that failed.
	Keep, KeepFailed int
	// MaxBytes is the maximum size on disk of all archives of the project; 0 means no limit.
	MaxBytes int64
	// MaxAge is the age at which archives of good deployments are removed, FailedMaxAge that of failed ones; 0 means no limit.
	MaxAge, FailedMaxAge time.Duration
}

// DefaultRetention returns the default.
func DefaultRetention() Retention {
	return Retention{Keep: DefaultKeepArchives, KeepFailed: 1, FailedMaxAge: 7 * quantity.Day}
}
