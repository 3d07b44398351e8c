// Package approvals is the table of deployments that wait for the approval of others.
//
// It owns the requests, the votes, and the hash of a plan, which binds both to what would be done. It does not decide who may approve, runs nothing, and moves
// no ref: package pipeline pins the commits of a request while it is open.
//
// Invariants: a request ends once, in one transaction, and is never opened again. One principal has one vote on a request. Only the end of a request changes:
// what approvers were shown is what is deployed.
//
// Concurrency: a Store may be used by any goroutine. A change is durable when its method returns; a crash leaves it done or not done.
package approvals
