// Package container manages containers, and other machines that this one prepares as nodes.
//
// It owns the records of them (Store), the interface that a kind of container implements (Driver), and the rules for their names, addresses
// and limits. Below it are rootfs: root file systems, made once by debootstrap and then copied; network: the bridge, address translation
// and published ports; nspawn, lxc and bare: the drivers; containertest: the tests that each driver passes.
//
// It does not decide what is deployed in a container, and knows no project: a container becomes a node in the same way as any machine.
//
// Invariants: a name belongs to one container, and so does an address of the network. Whoever changes a container holds its lock. A root file system
// that is not complete has a temporary name. No port of a container is open to other machines unless it is published.
//
// A crash leaves a container recorded as not ready, whose creation the same command continues; folders that end in .part, which the next
// command removes; and containers that keep running: they do not depend on the process that started them.
package container
