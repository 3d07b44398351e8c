package app

import (
	"context"
	"net"
	"net/http"
	"strings"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/limits"
	"corpus-git/project"
	"corpus-git/receive"
)

// submodules returns the current settings for fetching submodules, which a reload may change.
func (c *core) submodules() receive.SubmoduleSettings {
	cfg := c.cfg.Load()
	return receive.SubmoduleSettings{
		Hosts: cfg.Submodules.Hosts, Timeout: cfg.Submodules.Timeout, Limits: limits.Pack(cfg.Limits, c.memory), HTTP: http.Client{Transport: http.DefaultTransport},
		Agent: clientAgent(), Mirrors: cfg.Submodules.Mirrors, MayRead: c.mayRead, Home: c.homeOf, Here: c.isHere,
	}
}

// mayRead reports whether a pusher may read a repository: local users may; a key needs the permission to fetch it.
func (c *core) mayRead(ctx context.Context, who project.Pusher, name project.Name, repo project.Repo) (bool, error) {
	want := project.Read
	if repo == project.PillarRepo {
		want = project.Configure
	}
	return c.may(ctx, who, name, want)
}

// may reports whether a pusher has a permission now; local users have all.
func (c *core) may(ctx context.Context, who project.Pusher, name project.Name, want project.Right) (bool, error) {
	id := access.Identity{Name: who.Key, Fingerprint: who.Fingerprint, From: who.From}
	id.Admin = access.IsLocal(who.Fingerprint, who.From)
	return c.access.Can(ctx, id, name, want)
}

// homeOf returns the home directory with a project's ssh key: that of its user, or the server's if projects have no users.
func (c *core) homeOf(user string) string {
	if !c.tools.Accounts || c.tools.Host.EUID != 0 {
		return Environment{Env: c.env}.get("HOME")
	}
	u, err := c.tools.Host.Users.User(user)
	if err != nil || u.UID == 0 {
		return ""
	}
	return u.Home
}

// isHere reports whether host:port is the SSH server's own address, as it prints it.
func (c *core) isHere(hostport string) bool {
	own := c.address()
	if _, _, err := net.SplitHostPort(own); err != nil {
		own = net.JoinHostPort(strings.Trim(own, "[]"), "22")
	}
	return strings.EqualFold(own, hostport)
}
