// Package member describes the hubs that form a cluster: their names, addresses and keys, how a machine becomes one of them, and how a hub connects to the log.
//
// It owns the files layout.State.ClusterHubs and ClusterSelf, and what a machine keeps while it joins. The keys and the configuration of the NATS server beside a hub it leaves to
// fleet/broker. It does not decide which hub leads, and does not know what is in the log.
//
// Invariants: a private key stays on the machine on which it was generated. A machine is given secrets only under the name that an administrator has added, only before it has joined, and
// with a key that it has shown a token for. Two hubs never have the same address or key.
//
// A crash leaves the old list of hubs, or the new. A machine that was joining goes on when hub join is run again.
package member
