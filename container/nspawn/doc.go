// Package nspawn runs containers with systemd-nspawn(1).
//
// It owns starting, stopping and limiting them: nspawn runs in its own session, with the root file system made by rootfs, one interface (host0) on the bridge of
// network, and limits set by control groups. It needs neither a service manager nor machined on this machine.
//
// Invariant: at most one nspawn runs on a root file system; nspawn locks it.
//
// If the process that started a container crashes, the container keeps running. Its process is found by the file pid in the container's folder, and verified by its
// arguments, since PIDs are reused.
package nspawn
