// Package cluster keeps the state of three hubs the same: one of them leads, and runs the server; the others follow.
//
// It owns the log of changes (cluster/stream, a stream of JetStream with three replicas), what a hub knows of its place in it (layout.State.ClusterPosition), and who leads. Under it
// `wal` reads and applies the transactions of the database, and `replica` the files. It does not know what the files mean, and decides nothing about a deployment.
//
// Invariants: what a Barrier has returned for is on the disks of a majority. Only the hub whose epoch is the last one in the log appends to it: of two writers the log refuses one. A
// follower applies batches whole and in order, and leads only when it has applied all of the log. A hub whose state may differ from the log copies the leader's state before it can lead.
//
// A crash leaves a follower at its position, from which it applies again; applying a batch twice is the same as once. A leader that did not end cleanly finds that in its
// position, and copies.
package cluster
