// Package directory asks an LDAP server who its users are: their names, addresses, SSH keys and groups, and whether a password is theirs.
//
// It only reads, and only over TLS. It keeps nothing between two questions: package access decides how long an answer counts.
//
// Invariants: what comes from outside is escaped in filters (RFC 4515); an empty password is refused without being asked about, because a server takes it for
// an anonymous bind that succeeds (RFC 4513, 5.1.2); referrals are not followed; of two entries that match none is taken.
package directory
