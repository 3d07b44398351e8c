// Package wal reads the committed transactions of an SQLite database from its write-ahead log, and applies them to a copy, page by page.
//
// It owns nothing: it reads the log of a database that is in use, and writes to a database that nobody has open. Source: SQLite documentation, "WAL-mode File Format" and
// "Write-Ahead Logging".
//
// Invariants: only what a transaction has committed is read; an incomplete frame, and what was rolled back, is not. The log must not be started again before all of it was read,
// so the database is opened with db.Options{Replicated: true}, and Checkpoint is called when everything was taken.
//
// A crash while a change is applied leaves a copy with some of its pages; applying the change again completes it.
package wal
