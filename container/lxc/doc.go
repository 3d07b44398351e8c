// Package lxc runs containers with the tools of LXC (lxc-start(1), lxc.container.conf(5)).
//
// It owns booting, stopping and limiting them: the container's configuration is written anew at each boot, into the container's folder, where LXC also keeps its
// own files. Root file system, network and commands in a container are those of package system.
//
// Invariant: a container is found by its name and its folder (lxcpath), so the containers of two folders never meet.
//
// If the process that started a container crashes, the container keeps running, with LXC's monitor process.
package lxc
