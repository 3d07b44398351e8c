// Package undo saves what exists outside of the archived trees before a deployment
// changes it, and restores it.
//
// It owns the undo log of a deployment: a folder with one journal and copies of files. Before a state changes something, it tells the log,
// which returns when the previous content is durable; when the state has ended, the log records the result. Undo processes the log
// backwards, and verifies each entry.
//
// It does not decide whether something is undone, and never touches what is not in the log. Anything that differs from what the state left was
// changed by someone else since then: it stays, and is listed. The same applies to anything that can't be undone.
//
// Invariants: nothing in the log is changed before its record is durable; no
// symbolic link is followed on the way to a path, neither when it is recorded nor
// when it is undone; what a state changes through an open folder is recorded
// through the same folder (Place); undoing twice has the same effect as undoing once.
//
// A crash may leave the last record incomplete, for a change that had not begun, and the last record of a state's results missing: then the
// present content counts as the state's result. After a crash in Undo some changes are undone and others are not: call Undo again.
package undo
