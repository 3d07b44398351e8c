// Package nspawn runs containers with systemd-nspawn(1).
//
// It owns starting, stopping and entering them: nspawn runs in a session of its own, with the root file system that rootfs made, one interface (host0) on the bridge of
// network, and limits by control groups. It needs neither a service manager nor machined on this machine.
//
// Invariant: at most one nspawn runs on a root file system; nspawn locks it.
//
// A crash of who started a container leaves it running. Its process is found by the file pid in the container's folder, and by what the process has as
// its arguments, as numbers are used again.
package nspawn
