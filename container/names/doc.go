// Package names has machines found by their names: in a hosts(5) file, and at a name server that takes updates (RFC 2136).
//
// It owns the lines of the file that it wrote, and the addresses of the names that it was told to set. It decides neither names nor addresses.
//
// Invariants: lines of others in the file stay as they are. What it sends is signed (RFC 8945), and only what is signed is sent.
//
// A crash leaves the file as it was before or after, and a name server that has taken an update or has not.
package names
