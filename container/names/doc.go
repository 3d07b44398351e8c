// Package names makes machines known by their names: in a hosts(5) file, and on a name server that accepts updates (RFC 2136).
//
// It owns the lines of the file that it wrote, and the addresses of the names that it set. It decides neither names nor addresses.
//
// Invariants: lines of others in the file stay as they are. Every message that it sends is signed (RFC 8945).
//
// A crash leaves the file either unchanged or updated, and a name server that either has or has not applied an update.
package names
