// Package network connects containers: to each other, to other networks, and where a port was published to those who ask for it.
//
// It owns a bridge with the machine's address in the network of containers, and one table of the kernel's packet filter, which translates the addresses of what
// leaves the network, and of what comes to published ports. Nothing else of the machine's network is touched: who lets it forward packets is the
// operator (net.ipv4.ip_forward).
//
// Invariants: the table is replaced in one transaction of the kernel, so that a connection meets the old rules or the new ones, and none in between; connections that
// stand go on as they began. A port that is not published is reached from this machine and from containers of the network only.
//
// A crash leaves what was there before or after a transaction. All of it is made again by the next Up: the kernel forgets it when the machine starts.
package network
