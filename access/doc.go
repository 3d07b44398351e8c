// Package access knows who may do what: the public keys that may log in, and
// the rights that each has on each project.
//
// It owns the tables keys and grants of the state database. It records every
// change that it makes, and every change that it refused, in the audit log.
// It never speaks SSH and never opens a repository: it does not know whether a
// project exists, and a right on one that was destroyed is unused.
//
// Invariants: a key has one name and one fingerprint, both unique. The zero
// Identity is nobody and may do nothing. Rights are asked anew for each
// request, so a revoked right or a removed key ends with the current request.
// An admin key has every right on every project, those to come included.
//
// Concurrency: a Store serves any number of goroutines. A change is one
// transaction; a crash leaves it done or not done.
package access
