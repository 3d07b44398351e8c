// Package relay carries connections of clients from a hub that follows to the hub that leads, so that a client may use the address of any.
//
// It owns the listeners while the hub follows, and on the leader the header that names the client's address (the PROXY protocol, version 1, of HAProxy's
// documentation). It reads nothing of what it carries: SSH and TLS are between the client and the leader.
//
// Invariants: the header is accepted only from the addresses of hubs. A connection of a client that arrives while no hub leads waits a limited time. A crash
// leaves nothing; connections end.
package relay
