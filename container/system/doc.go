// Package system is what drivers share whose containers are root file systems on this machine, and boot with systemd.
//
// It owns creating and copying their root file systems, commands in them, which enter the namespaces of their init, and waiting for their boot. It
// implements container.Driver over a Kind, which boots, ends and limits them: nspawn and lxc.
//
// Invariant: a root file system is changed from outside only while its container does not run.
//
// It keeps nothing: a crash leaves what rootfs and the kinds say.
package system
