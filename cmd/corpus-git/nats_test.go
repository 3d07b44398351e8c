package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"
)

// natsServer is the program nats-server, with the one option that we use.
func natsServer() {
	opts, err := natsd.ProcessConfigFile(os.Args[2])
	if err == nil {
		var s *natsd.Server
		if s, err = natsd.NewServer(opts); err == nil {
			s.ConfigureLogger()
			err = natsd.Run(s)
			s.WaitForShutdown()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type brokerKey struct{}

// cmdBroker starts and kills the NATS server of a hub of a scenario. The first start of that of $ROOT has corpus-git nats init write its configuration, and sets $NATS to its address.
// The others, in $WORK/HUB, have theirs from  corpus-git hub join . What it says is in nats.log, or nats-HUB.log.
func cmdBroker(ts *testscript.TestScript, neg bool, args []string) {
	hub := ""
	if len(args) == 2 {
		hub = args[1]
	}
	if neg || len(args) == 0 || len(args) > 2 || args[0] == "address" && hub == "" {
		ts.Fatalf("usage: broker start|stop [HUB], broker address HUB")
	}
	running := ts.Value(brokerKey{}).(map[string]*exec.Cmd)
	switch args[0] {
	case "address":
		for variable, scheme := range map[string]string{"_SSH": "", "_NATS": "tls://", "_ROUTE": ""} {
			ts.Setenv(hub+variable, scheme+freeAddress(ts))
		}
	case "stop":
		ts.Check(running[hub].Process.Kill())
		_ = running[hub].Wait()
		delete(running, hub)
	case "start":
		running[hub] = startBroker(ts, hub)
	}
}

func freeAddress(ts *testscript.TestScript) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer l.Close()
	return l.Addr().String()
}

// startBroker starts the NATS server of a hub, and waits until it listens.
func startBroker(ts *testscript.TestScript, hub string) *exec.Cmd {
	root, at, logs := ts.Getenv("ROOT"), ts.Getenv("NATS"), "nats.log"
	if hub != "" {
		root, at, logs = filepath.Join(ts.Getenv("WORK"), hub), ts.Getenv(hub+"_NATS"), "nats-"+hub+".log"
	} else if at == "" {
		at = "tls://" + freeAddress(ts)
		ts.Setenv("NATS", at)
		ts.Check(ts.Exec("corpus-git", "nats", "init", at))
	}
	exe, err := exec.LookPath("nats-server")
	if err != nil {
		exe = filepath.Join(os.Getenv("TESTSCRIPT_BIN"), "nats-server")
	}
	c := exec.CommandContext(context.Background(), exe, "-c", filepath.Join(root, ".corpus-git", "nats", "nats.conf"))
	log, err := os.OpenFile(ts.MkAbs(filepath.Join(ts.Getenv("WORK"), logs)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer log.Close()
	c.Stderr, c.Stdout = log, log
	ts.Check(c.Start())
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", at[len("tls://"):])
		if err == nil {
			_ = conn.Close()
			return c
		}
		if time.Since(begun) > time.Minute {
			ts.Fatalf("the NATS server does not listen: %v", err)
		}
	}
}
