// Package access has identities and permissions: principals (people, bots, agents), the public keys and API tokens that they log in with,
// and the permissions that each has on each project.
//
// It owns the tables principals, keys, certificates, tokens, grants and directory of the state database. It records every
// change that it makes, and every change that it refused, in the audit log.
// It serves neither SSH nor HTTP and never opens a repository: it does not know whether a
// project exists, and a right on one that was destroyed is unused.
//
// Invariants: principals and keys have unique names, and a key one fingerprint and one principal. A principal that was made for its
// first key (Implied) goes with its last one. Of a token only the SHA-256 is stored. The zero
// Identity is nobody and may do nothing. Rights are asked again for each
// request, so a revoked right, a removed or expired key or token, and a disabled principal end with the current request.
// An admin has all permissions on every project, those to come included; a token has at most the rights of its principal.
//
// Answers of a directory (LDAP) about its users are cached for a time (DirectoryPolicy); they never apply to other principals.
//
// Concurrency: a Store may be used by any goroutine. A change is one transaction; a crash leaves it done or not done.
package access
