// Package hubs is what this machine does as one of several hubs: it joins the others, follows until it leads, and then gives the listeners and the state to the server.
//
// While it follows it owns the lock of the state, the listeners, whose connections cluster/relay carries to the leader, and the control socket, over which it answers only questions about the
// cluster. It opens no database and runs no deployment. Joining is package cluster/member; here is the command for it.
//
// Invariants: a hub that no longer leads runs nothing more: the process replaces itself (UntilLost), and follows. What Share has returned for is on the disks of a majority of the hubs.
//
// For what a crash leaves see packages cluster and cluster/member.
package hubs
