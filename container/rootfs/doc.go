// Package rootfs makes, copies and removes the root file systems of containers.
//
// It owns the base systems, which debootstrap makes once for each list of packages, the copies that containers run on, with what is specific to
// each (its name, its address, its host keys, its machine-id), and their snapshots. It runs nothing in them except the tools that make them.
//
// Invariants: whatever has its final name is complete. A base is never modified. No two containers share a host key or a machine-id.
//
// A crash leaves folders that end in .part or .trash, which the next call for the same name removes.
package rootfs
