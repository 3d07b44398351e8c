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

// cmdBroker starts and kills the NATS server of a scenario. The first start has corpus-git nats init write its configuration, and sets $NATS to its address.
func cmdBroker(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: broker start|stop")
	}
	running := ts.Value(brokerKey{}).(*exec.Cmd)
	if args[0] == "stop" {
		ts.Check(running.Process.Kill())
		_ = running.Wait()
		*running = exec.Cmd{}
		return
	}
	if ts.Getenv("NATS") == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		ts.Setenv("NATS", "tls://"+l.Addr().String())
		ts.Check(l.Close())
		ts.Check(ts.Exec("corpus-git", "nats", "init", ts.Getenv("NATS")))
	}
	exe, err := exec.LookPath("nats-server")
	if err != nil {
		exe = filepath.Join(os.Getenv("TESTSCRIPT_BIN"), "nats-server")
	}
	*running = *exec.CommandContext(context.Background(), exe, "-c", filepath.Join(ts.Getenv("ROOT"), ".corpus-git", "nats", "nats.conf"))
	log, err := os.OpenFile(ts.MkAbs(filepath.Join(ts.Getenv("WORK"), "nats.log")), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer log.Close()
	running.Stderr, running.Stdout = log, log
	ts.Check(running.Start())
	at := ts.Getenv("NATS")[len("tls://"):]
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Since(begun) > time.Minute {
			ts.Fatalf("the NATS server does not listen: %v", err)
		}
	}
}
