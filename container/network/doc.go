// Package network connects containers: to each other, to other networks, and, through published ports, to clients.
//
// It owns a bridge with the machine's address in the network of containers, and one table of the kernel's packet filter, which translates the addresses of packets
// that leave the network, and of packets to published ports. It changes nothing else in the machine's network: the operator decides whether the machine forwards
// packets (net.ipv4.ip_forward).
//
// Invariants: the table is replaced in one kernel transaction, so that a connection sees either the old rules or the new ones; established connections continue
// unchanged. A port that is not published can be reached only from this machine and from containers in the network.
//
// A crash leaves the state before or after a transaction. The next Up recreates all of it, since the kernel loses it when the machine restarts.
package network
