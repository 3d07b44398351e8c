// Package undo keeps what was outside of the archived trees before a deployment
// changed it, and restores it.
//
// It owns the undo log of a deployment: a folder with one journal and copies of
// files. A state tells the log before it changes something, and the log returns
// when what was there is durable; when the state has ended, the log records what
// it left. Undo goes through the log backwards, and verifies each entry.
//
// It never decides whether something is undone, and never touches what is not in
// the log. What is not as the state left it was changed by somebody else since:
// it stays, and is listed. So is what cannot be undone.
//
// Invariants: nothing in the log is changed before its record is durable; no
// symbolic link is followed on the way to a path, neither when it is recorded nor
// when it is undone; undoing twice is undoing once.
//
// A crash may leave the last record cut short, which is what had not begun to be
// changed, and the last record of a state missing: then what is there counts
// as what the state left. A crash in Undo leaves things that are undone and things
// that are not: Undo again.
package undo
