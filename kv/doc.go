// Package kv keeps keys with values for the projects of this server and the nodes that it deploys on: what is set from outside of a deployment, and which services there are.
//
// It owns the table, the names of keys, and their revisions. It never decides who may read or write, nor what follows from a change; below it watch decides when a project is applied again.
//
// Invariants: every change has a revision of its own, which grows by one; a key that is deleted keeps its revision until Forget. Setting a key to the value that it has changes nothing but its
// lease. What has a lease and is not set again in time is deleted. A change that was acknowledged is durable.
//
// A crash leaves nothing behind.
package kv
