package hubs

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/cluster/relay"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project/config"
)

const (
	// refusing limits how long a client may take to be told.
	refusing = 10 * time.Second
	// retryAfter is when an HTTP client may ask again, in seconds.
	retryAfter = 5
)

// refusal is what a client is told that was not relayed. It is not known who that is, so that addresses are only in the log.
func refusal(why error) error {
	var known *fault.Error
	switch {
	case errors.As(why, &known):
		return why
	case errors.Is(why, relay.ErrUnreachable):
		return fault.New(fault.Busy, "", "this hub follows, and does not reach the one that leads").WithHint("nothing was changed; try again, or another hub; on a hub:  corpus-git hub list  shows what is wrong")
	}
	return noLeader()
}

// noAddress is what clients are told of a hub that leads, and whose listener for them the others don't know.
func noAddress(hub string) error {
	return fault.New(fault.Refused, "", "this hub follows %s, and does not know the address of its listener", hub).
		WithHint("nothing was changed; use that hub's own address. Those of web listeners are named when hubs are added: docs/guide/hubs.md")
}

// noLeader is what clients are told while no hub leads.
func noLeader() error {
	return fault.New(fault.Busy, "", "no hub leads at the moment: two of the three have to run, with their NATS servers").WithHint("nothing was changed; try again, and on a hub:  corpus-git hub list  shows what is wrong")
}

// refuseSSH tells a client of ssh why it is not relayed, whoever it is: it is asked for no key, and nothing that it sends is read.
func refuseSSH(state layout.State) func(net.Conn, error) {
	return func(c net.Conn, why error) {
		if c.SetDeadline(time.Now().Add(refusing)) != nil {
			return
		}
		cfg := &ssh.ServerConfig{NoClientAuth: true}
		for _, path := range []string{state.HostKey(), state.HostKeyECDSA()} {
			if text, err := os.ReadFile(path); err == nil {
				if key, err := ssh.ParsePrivateKey(text); err == nil {
					cfg.AddHostKey(key)
				}
			}
		}
		conn, channels, requests, err := ssh.NewServerConn(c, cfg)
		if err != nil {
			return
		}
		defer conn.Close()
		go ssh.DiscardRequests(requests)
		for n := range channels {
			if n.ChannelType() != "session" {
				_ = n.Reject(ssh.UnknownChannelType, refusal(why).Error())
				continue
			}
			ch, asked, err := n.Accept()
			if err != nil {
				return
			}
			go refuseSession(ch, asked, refusal(why))
		}
	}
}

func refuseSession(ch ssh.Channel, asked <-chan *ssh.Request, err error) {
	for q := range asked {
		run := q.Type == "exec" || q.Type == "shell" || q.Type == "subsystem"
		if q.WantReply {
			_ = q.Reply(run || q.Type == "pty-req", nil)
		}
		if run {
			_, _ = fmt.Fprintf(ch.Stderr(), "error: %s\nhint: %s\n", err, fault.HintOf(err))
			_, _ = ch.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(fault.ExitCode(err)))) //nolint:gosec // an exit status
			_ = ch.CloseWrite()
			_ = ch.Close()
		}
	}
}

// refuseHTTP answers the first request of a client with 503. Where the certificates are made by an authority (ACME) the connection is closed without.
func refuseHTTP(cfg *config.Config) func(net.Conn, error) {
	return func(c net.Conn, why error) {
		if c.SetDeadline(time.Now().Add(refusing)) != nil {
			return
		}
		if cfg.HTTPCert != "" {
			pair, err := tls.LoadX509KeyPair(cfg.HTTPCert, cfg.HTTPKey)
			if err != nil {
				return
			}
			t := tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})
			defer t.Close()
			c = t
		}
		if _, err := http.ReadRequest(bufio.NewReader(io.LimitReader(c, 64<<10))); err != nil {
			return
		}
		err := refusal(why)
		text := fmt.Sprintf("%s\n%s\n", err, fault.HintOf(err))
		_, _ = fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nRetry-After: %d\r\nConnection: close\r\n\r\n%s", len(text), retryAfter, text)
	}
}
