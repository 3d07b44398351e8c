// Package kv stores keys with values for the projects of this server and the nodes that it deploys to: values that are set from outside of a deployment, the registered services, and the facts that nodes report.
//
// It owns the table, the names of keys, and their revisions. It never decides who may read or write, nor what follows from a change; kv/watch decides when a project is applied again.
//
// Invariants: every change has its own revision, which grows by one; a deleted key keeps its revision until Forget. Setting a key to its present value changes only its
// lease. A key with a lease that is not set again in time is deleted. A change that was acknowledged is durable.
//
// A crash leaves nothing.
package kv
