package main

import (
	"os"
	"os/exec"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdSmallDisk mounts a file as an ext4 without a share for root, on which a disk gets really full.
func cmdSmallDisk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: small-disk DIR MB")
	}
	dir := ts.MkAbs(args[0])
	image := dir + ".img"
	ts.Check(os.MkdirAll(dir, 0o755))
	for _, argv := range [][]string{
		{"truncate", "-s", args[1] + "M", image},
		{"mkfs.ext4", "-q", "-m", "0", image},
		{"mount", "-o", "loop", image, dir},
	} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
		if out, err := cmd.CombinedOutput(); err != nil {
			ts.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
		}
	}
	// The server may still run: the mount goes with its last open file.
	ts.Defer(func() { _ = exec.Command("umount", "-l", dir).Run() })
}

// loopMounts reports whether small-disk can work here.
func loopMounts() bool {
	_, err := os.Stat("/dev/loop-control")
	return err == nil && os.Geteuid() == 0
}
