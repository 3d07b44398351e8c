// Package audit records who did what, when, from where and with which key:
// pushes, refusals, permissions, keys, rollbacks, cancels.
//
// It owns one append-only table. The table never holds a secret: what
// is recorded are names, refs, commits and reasons that are already redacted.
// A recorded entry is durable when Record returns.
package audit
