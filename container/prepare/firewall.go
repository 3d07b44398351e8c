package prepare

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// The files on the machine: the rules, and the service that loads them. The operator's own /etc/nftables.conf is left alone, and is loaded before, because it may
// remove all rules.
const (
	rulesFile = "/etc/corpus-git/firewall.nft"
	rulesUnit = "/etc/systemd/system/corpus-git-firewall.service"
)

const firewallUnit = `[Unit]
Description=corpus-git firewall
DefaultDependencies=no
Wants=network-pre.target
Before=network-pre.target shutdown.target
After=nftables.service
PartOf=nftables.service
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f ` + rulesFile + `

[Install]
WantedBy=sysinit.target
`

// sshPort is the port of an ssh server that is not configured (RFC 4253, 4).
const sshPort = 22

// sshListens returns the port on which the machine's ssh server was reached.
func (p *Plan) sshListens(ctx context.Context) (uint16, error) {
	if p.Container.Target == "" {
		return sshPort, nil
	}
	// sshd(8) sets SSH_CONNECTION: the addresses and ports of the client and of the server.
	out, err := p.sh(ctx, nil, `set -- ${SSH_CONNECTION:-}; echo "${4:-}"`)
	if err != nil || out == "" {
		return sshPort, err
	}
	port, err := strconv.ParseUint(out, 10, 16)
	return uint16(port), err
}

// rules returns the machine's rules, which set what others may reach.
func (p *Plan) rules(ssh uint16) string {
	ports := strconv.Itoa(int(ssh))
	for _, port := range p.Open {
		ports += fmt.Sprintf(", %d", port)
	}
	return `#!/usr/sbin/nft -f
# Written by corpus-git node init.
table inet corpus-git
delete table inet corpus-git
table inet corpus-git {
	chain input {
		type filter hook input priority filter; policy drop;
		ct state established,related accept
		iif lo accept
		meta l4proto { 1, 58 } accept comment "ICMP, ICMPv6"
		ip6 saddr fe80::/10 udp dport 546 accept comment "DHCPv6"
		tcp dport { ` + ports + ` } accept
	}
}
`
}

// firewall allows others to reach ssh and the ports in Open, now and after each boot. Rules that the kernel refuses are not installed.
func (p *Plan) firewall(ctx context.Context) (string, error) {
	ssh, err := p.sshListens(ctx)
	if err != nil {
		return "", err
	}
	rules := p.rules(ssh)
	if _, err := p.sh(ctx, strings.NewReader(rules), `nft -c -f -`); err != nil {
		return "", err
	}
	changed, err := p.put(ctx, rulesFile, "755", strings.NewReader(rules))
	if err != nil {
		return "", err
	}
	other, err := p.put(ctx, rulesUnit, "644", strings.NewReader(firewallUnit))
	if err != nil {
		return "", err
	}
	if _, err := p.sh(ctx, nil, `systemctl daemon-reload; systemctl enable --quiet corpus-git-firewall; systemctl restart corpus-git-firewall`); err != nil {
		return "", err
	}
	open := "open: ssh"
	if ssh != sshPort {
		open += fmt.Sprintf(" (%d)", ssh)
	}
	for _, port := range p.Open {
		open += fmt.Sprintf(", %d", port)
	}
	return changes(changed || other, open), nil
}
