package app

import (
	"cmp"
	"corpus-git/cmd/corpus-git/statedir"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/status"
	"fmt"
	"net"
	"os"
	"strings"
)

// listens returns the addresses of the server of a state directory, and its process ID.
func listens(state layout.State) (pid int, on string, err error) {
	a, err := statedir.ReadAddresses(state)
	return a.PID, strings.TrimSpace(a.SSH + " " + a.HTTP), err
}

// remotes returns the addresses to push to.
func (c *core) remotes(name project.Name) status.Remotes {
	base := "ssh://deploy@" + c.address() + "/" + string(name) + "/"
	return status.Remotes{Project: base + "project.git", Pillar: base + "pillar.git"}
}

// sshCommand returns the command line that runs the server's commands over SSH.
func (c *core) sshCommand() string {
	name, port, err := net.SplitHostPort(c.address())
	if err != nil || port == "22" {
		return "ssh deploy@" + cmp.Or(name, c.address())
	}
	return "ssh -p " + port + " deploy@" + name
}

// address returns the host and port at which clients reach the SSH server.
func (c *core) address() string {
	cfg := c.cfg.Load()
	listenHost, port, _ := net.SplitHostPort(cfg.Listen)
	if p := c.port.Load(); p > 0 {
		port = fmt.Sprint(p)
	} else if port == "0" || port == "" {
		if a, err := statedir.ReadAddresses(c.state); err == nil {
			_, port, _ = net.SplitHostPort(a.SSH)
		}
	}
	name := cfg.Public
	if h, p, err := net.SplitHostPort(name); err == nil {
		name, port = h, p
	}
	if name == "" {
		switch ip := net.ParseIP(listenHost); {
		case ip != nil && !ip.IsUnspecified():
			name = listenHost
		case listenHost != "" && ip == nil:
			name = listenHost
		default:
			name = c.hostName()
		}
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if port == "22" || port == "" {
		return name
	}
	return name + ":" + port
}

// hostName returns this machine's full name.
func (c *core) hostName() string {
	if v, ok := c.facts().GetStr("fqdn"); ok {
		if s, ok := v.(string); ok && s != "" {
			return s
		}
	}
	h, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return h
}
