// Package audit keeps who did what, when, from where and with which key:
// pushes, refusals, rights, keys, rollbacks, cancels.
//
// It owns one table that is only ever added to. It never holds a secret: what
// is recorded are names, refs, commits and reasons that were redacted before.
// A recorded entry is durable when Record returns.
package audit
