// Package rootfs makes, copies and removes the root file systems of containers.
//
// It owns the base systems, which debootstrap makes once for each list of packages, the copies that containers run on, with what is particular to
// one (its name, its address, its host keys, its machine-id), and their snapshots. It starts nothing in them but the tools that make them.
//
// Invariants: what has its final name is complete. A base is never written to again. No two containers have a host key or a machine-id in common.
//
// A crash leaves folders that end in .part or .trash, which the next call for the same name removes.
package rootfs
