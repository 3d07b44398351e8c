// Package replica captures what has changed in a hub's state, and applies it to another hub's.
//
// It owns the choice of the files that hubs have in common, and the format of a batch of changes. It does not know how a batch is sent, nor who leads. Not in common are the trees of
// projects and of their archives, which are made from git, and whatever belongs to one machine or one process.
//
// Invariants: a capture reads in the reverse of the order in which things are written (the database, the journals, refs, objects), so what one part mentions is in the parts after it. A
// batch that was applied twice leaves the same as once. What was applied is durable when Apply returns.
//
// A crash while a batch is applied leaves some of its changes, and files named by vfs.TempName, which are never sent and which Sweep removes.
package replica
