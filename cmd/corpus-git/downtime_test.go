package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// socketHolder is a program of the scenario zero_downtime: it holds a listening socket, and has a worker accept from it, as
// systemd does with a .socket unit and gunicorn with its master. A new worker gets the socket first, and the old one is
// asked to finish when the new one is ready; one that does not become ready has cost nobody anything.
//
//	socket-holder hold ADDRESS CONTROL DIR   listen; write the address into a file; take "restart" on a Unix socket
//	socket-holder restart CONTROL            ask for it; the exit status reports whether the new worker is ready
//	socket-holder work DIR                   the worker: what DIR/version says at its start is its answer
func socketHolder() {
	var err error
	switch args := os.Args[1:]; args[0] {
	case "hold":
		err = hold(args[1], args[2], args[3])
	case "restart":
		err = askRestart(args[1])
	case "work":
		err = holderWork(args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hold(address, control, dir string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	_ = l.Close() // the file is the socket that stays
	asked, err := net.Listen("unix", control)
	if err != nil {
		return err
	}
	if err := os.WriteFile(address, []byte(l.Addr().String()+"\n"), 0o600); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		_ = asked.Close()
	}()
	var worker *exec.Cmd
	defer func() {
		if worker != nil {
			_ = worker.Process.Signal(syscall.SIGTERM)
			_ = worker.Wait()
		}
	}()
	for {
		c, err := asked.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		next, err := startWorker(socket, dir)
		if err != nil {
			fmt.Fprintln(c, err)
			_ = c.Close()
			continue
		}
		if worker != nil {
			_ = worker.Process.Signal(syscall.SIGTERM)
			_ = worker.Wait() // it answers whom it has accepted first
		}
		worker = next
		fmt.Fprintln(c, "ok")
		_ = c.Close()
	}
}

// startWorker starts a worker and waits until it says that it is ready.
func startWorker(socket *os.File, dir string) (*exec.Cmd, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "work", dir)
	cmd.ExtraFiles, cmd.Stderr = []*os.File{socket, w}, os.Stderr
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return nil, err
	}
	if text, _ := io.ReadAll(r); string(text) != "ready" {
		return nil, fmt.Errorf("the new worker is not ready: %w", cmd.Wait())
	}
	return cmd, nil
}

func holderWork(dir string) error {
	version, err := os.ReadFile(filepath.Join(dir, "version"))
	if err != nil || strings.HasPrefix(string(version), "broken") {
		return fmt.Errorf("cannot start: %q, %v", version, err)
	}
	l, err := net.FileListener(os.NewFile(3, "socket"))
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		_ = l.(*net.TCPListener).SetDeadline(time.Now()) // what was accepted by now is answered
	}()
	ready := os.NewFile(4, "ready")
	_, _ = ready.WriteString("ready")
	_ = ready.Close()
	var answering sync.WaitGroup
	defer answering.Wait()
	for {
		c, err := l.Accept()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		answering.Go(func() {
			defer c.Close()
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(version), version)
			}
		})
	}
}

func askRestart(control string) error {
	c, err := net.Dial("unix", control)
	if err != nil {
		return err
	}
	defer c.Close()
	said, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && said != "ok\n" {
		err = errors.New(strings.TrimSpace(said))
	}
	return err
}

type visitorsKey struct{}

// visitors ask an address 50 times a second.
type visitors struct {
	stop   chan struct{}
	wait   sync.WaitGroup
	mu     sync.Mutex
	asked  int
	failed []string
	seen   map[string]int
}

// ask is one visit, on a connection of its own.
func (v *visitors) ask(client *http.Client, address string) {
	text, err := func() (string, error) {
		res, err := client.Get("http://" + address + "/")
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		if err == nil && (res.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), "good ")) {
			err = fmt.Errorf("%s: %q", res.Status, body)
		}
		return strings.TrimSpace(string(body)), err
	}()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	v.seen[text]++
	if err != nil {
		v.failed = append(v.failed, err.Error())
	}
}

// cmdVisitors is  visitors start FILE , with the address in the file, and  visitors stop , which wants every visit to have been answered.
func cmdVisitors(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: visitors start FILE | visitors stop")
	}
	if args[0] == "start" {
		address := strings.TrimSpace(ts.ReadFile(args[1]))
		v := &visitors{stop: make(chan struct{}), seen: map[string]int{}}
		ts.Value(visitorsKey{}).(map[string]*visitors)["now"] = v
		end := sync.OnceFunc(func() { close(v.stop); v.wait.Wait() })
		ts.Defer(end)
		client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil}}
		v.wait.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-v.stop:
					return
				case <-tick.C:
					v.wait.Go(func() { v.ask(client, address) })
				}
			}
		})
		return
	}
	v := ts.Value(visitorsKey{}).(map[string]*visitors)["now"]
	answered := func() int {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.asked
	}
	for end := answered() + 50; answered() < end; { // some more, after the last push
		time.Sleep(20 * time.Millisecond)
	}
	close(v.stop)
	v.wait.Wait()
	v.stop = make(chan struct{}) // the deferred end closes it
	ts.Logf("%d visits, %d failed, answers: %v", v.asked, len(v.failed), v.seen)
	if len(v.failed) > 0 {
		ts.Fatalf("%d of %d visits failed: %s", len(v.failed), v.asked, strings.Join(v.failed[:min(5, len(v.failed))], "; "))
	}
	for _, want := range args[1:] {
		if v.seen["good "+want] == 0 {
			ts.Fatalf("nobody saw release %s", want)
		}
	}
}
