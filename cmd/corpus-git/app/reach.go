package app

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/statedir"
	"corpus-git/project"
	"corpus-git/project/config"
	"corpus-git/project/status"
	"corpus-git/receive/sshd"
)

// reach returns the addresses of the server and of a project's page; "" means no project.
func (c *core) reach(name project.Name) status.Server {
	at := status.Server{SSH: c.address()}
	if listen := c.cfg.Load().HTTP; listen != "" {
		if a, err := statedir.ReadAddresses(c.state); err == nil && a.HTTP != "" {
			listen = a.HTTP
		}
		at.HTTP = c.webURL(listen) + "/projects/" + string(name)
	}
	host, port, err := net.SplitHostPort(at.SSH)
	if err != nil {
		host, port = strings.Trim(at.SSH, "[]"), "22"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Host %s\n    HostName %s\n    Port %s\n    User deploy\n", name, host, port)
	for _, path := range []string{c.state.HostKey(), c.state.HostKeyECDSA(), sshd.NextKey(c.state.HostKey()), sshd.NextKey(c.state.HostKeyECDSA())} {
		text, err := os.ReadFile(path + ".pub")
		if err != nil {
			continue // the first start creates it; or there is no next one
		}
		if key, _, _, _, err := ssh.ParseAuthorizedKey(text); err == nil {
			fmt.Fprintf(&b, "    # host key %s %s\n", key.Type(), access.Fingerprint(key))
			at.HostKeys = append(at.HostKeys, status.HostKey{
				Type: key.Type(), Fingerprint: access.Fingerprint(key), KnownHosts: knownhosts.Line([]string{net.JoinHostPort(host, port)}, key),
			})
		}
	}
	at.SSHConfig = b.String()
	return at
}

// webURL returns the URL of a listening address.
func (c *core) webURL(listen string) string {
	cfg := c.cfg.Load()
	switch {
	case cfg.HTTPURL != "":
		return cfg.HTTPURL
	case len(cfg.ACME.Hosts) > 0:
		if _, port, _ := net.SplitHostPort(listen); port != "443" {
			return "https://" + net.JoinHostPort(cfg.ACME.Hosts[0], port)
		}
		return "https://" + cfg.ACME.Hosts[0]
	case cfg.HTTPCert != "":
		return "https://" + c.browsable(listen)
	}
	return "http://" + c.browsable(listen)
}

// browsable turns a listening address into one for a browser.
func (c *core) browsable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort(c.hostName(), port)
	}
	return listen
}

// networks parses addresses and networks of the configuration, which has validated them.
func networks(list []string) (out []netip.Prefix) {
	for _, text := range list {
		if p, err := config.ParseNetwork(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}
