// Package names has machines found by their names, at a name server that takes updates (RFC 2136).
//
// It owns the updates. It decides neither names nor addresses.
//
// Invariants: what it sends is signed (RFC 8945), and only what is signed is sent.
//
// A crash leaves a name server that has taken an update or has not.
package names
