package db

import (
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// IsFull reports whether an error of the database is a full disk: SQLite reports that by its own result code, and hides the system's error.
// Source: SQLite documentation, "Result and Error Codes".
func IsFull(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_FULL
}
