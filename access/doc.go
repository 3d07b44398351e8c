// Package access manages identities and permissions: principals (people, bots, agents), the public keys and API tokens that they log in
// with, and the permissions that each has on each project.
//
// It owns the tables principals, keys, certificates, tokens, grants and directory of the state database. It records every
// change that it makes, and every change that it refused, in the audit log.
// It serves neither SSH nor HTTP and never opens a repository: it does not know whether a
// project exists, and a permission on a destroyed project has no effect.
//
// Invariants: principals and keys have unique names, and a key one fingerprint and one principal. A principal that was created for its
// first key (Implied) is removed with its last one. Only the SHA-256 of a token is stored. The zero Identity is nobody and may do
// nothing. Permissions are looked up for each request, so a revoked permission, a removed or expired key or token, and a disabled
// principal end with the current request. An admin has all permissions on every project, including future ones; a token has at most the
// permissions of its principal.
//
// Answers of a directory (LDAP) about its users are cached for a time (DirectoryPolicy); they never apply to other principals.
//
// Concurrency: a Store may be used by any goroutine. A change is one transaction; a crash leaves it done or not done.
package access
