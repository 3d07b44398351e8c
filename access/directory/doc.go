// Package directory queries an LDAP server for its users: their names, addresses, SSH keys and groups, and whether a password is correct.
//
// It only reads, and only over TLS. It stores nothing between queries; package access caches answers.
//
// Invariants: outside input is escaped in filters (RFC 4515); an empty password is refused without a query, because a server treats it as a
// successful anonymous bind (RFC 4513, 5.1.2); referrals are not followed; if two entries match, neither is used.
package directory
