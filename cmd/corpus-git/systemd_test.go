package main

import (
	"net"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdServiceManager takes what servers tell a service manager (sd_notify(3)), which looks for a sign of life every two seconds: FILE gets every message.
func cmdServiceManager(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: service-manager FILE")
	}
	file, err := os.OpenFile(ts.MkAbs(args[0]), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	ts.Check(err)
	// The folder of a scenario may be too long for the name of a socket.
	dir, err := os.MkdirTemp("", "sd")
	ts.Check(err)
	path := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	ts.Check(err)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			_, _ = file.Write(append(buf[:n:n], '\n'))
		}
	}()
	ts.Defer(func() {
		_ = conn.Close()
		_ = file.Close()
		_ = os.RemoveAll(dir)
	})
	ts.Setenv("NOTIFY_SOCKET", path)
	ts.Setenv("WATCHDOG_USEC", "2000000")
}
