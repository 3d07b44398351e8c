package prepare

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/container"
	"corpus-git/container/names"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

// base installs the packages that the other steps need, and makes sure that an ssh server is running.
func (p *Plan) base(ctx context.Context) (string, error) {
	out, err := p.sh(ctx, nil, `missing=
for package in openssh-server nftables ca-certificates; do
	dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >&2
	apt-get install -y -qq --no-install-recommends $missing >&2
fi
systemctl enable --quiet --now ssh >&2
. /etc/os-release
echo "$PRETTY_NAME${missing:+, installed$missing}"`)
	return printable.Text(out), err
}

// knownHosts returns the path of the file with the machine's host keys, under its name.
func (p *Plan) knownHosts() string {
	return filepath.Join(p.Store.Folder(p.Container.Name), "known_hosts")
}

// keys generates the key with which the server logs in, and exchanges public keys with the machine through its driver, so that no network has to be
// trusted.
func (p *Plan) keys(ctx context.Context) (string, error) {
	key, err := p.Keys.Make(p.Container.Name)
	if err != nil {
		return "", err
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " corpus-git"
	former, err := p.Keys.Former(p.Container.Name)
	if err != nil {
		return "", err
	}
	if former != "" {
		former += " corpus-git"
	}
	out, err := p.sh(ctx, nil, `umask 077; mkdir -p /root/.ssh; f=/root/.ssh/authorized_keys
if ! grep -qsxF -- "$1" "$f" || { [ -n "$2" ] && grep -qsxF -- "$2" "$f"; }; then
	{ grep -svxF -e "$1" ${2:+-e "$2"} -- "$f" || true; echo "$1"; } >"$f.corpus-git-new"; sync "$f.corpus-git-new"; mv "$f.corpus-git-new" "$f"
fi
cat /etc/ssh/ssh_host_*_key.pub`, line, former)
	if err != nil {
		return "", err
	}
	if err := p.Keys.Forget(p.Container.Name); err != nil {
		return "", err
	}
	var hosts strings.Builder
	for l := range strings.Lines(out) {
		host, _, _, _, err := ssh.ParseAuthorizedKey([]byte(l))
		if err != nil {
			return "", fault.New(fault.Failed, "", "%s has a host key that is none: %w", p.Container.Name, err)
		}
		fmt.Fprintf(&hosts, "%s %s", p.Container.Name, ssh.MarshalAuthorizedKey(host))
	}
	if hosts.Len() == 0 {
		return "", fault.New(fault.Failed, "", "%s has no ssh host key", p.Container.Name).WithHint("there:  ssh-keygen -A")
	}
	return "the server logs in with " + ssh.FingerprintSHA256(key), vfs.WriteFileAtomic(p.Store.FS, p.knownHosts(), []byte(hosts.String()), 0o600)
}

// How long a machine may take to answer at its address, and the interval of attempts.
const (
	addressWait = time.Minute
	addressPoll = 200 * time.Millisecond
)

// address waits until the machine's ssh server answers at the address at which other machines reach it, with its own host key.
func (p *Plan) address(ctx context.Context) (string, error) {
	a, err := p.Driver.Address(ctx, p.Container)
	if err != nil {
		return "", err
	}
	if p.Container.Target != "" {
		return a.String() + ", reached as " + printable.Text(p.Container.Target), nil
	}
	for deadline := time.Now().Add(addressWait); ; {
		err := p.answers(ctx, netip.AddrPortFrom(a, 22))
		if err == nil {
			return a.String(), nil
		}
		if time.Now().After(deadline) {
			return "", fault.New(fault.Failed, "", "no ssh server answers at %s: %w", a, err)
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(addressPoll):
		}
	}
}

// answers begins a login, up to the check of the host key.
func (p *Plan) answers(ctx context.Context, at netip.AddrPort) error {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", at.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	known, err := os.ReadFile(p.knownHosts())
	if err != nil {
		return err
	}
	good := errors.New("the host key is known")
	_, _, _, err = ssh.NewClientConn(conn, at.String(), &ssh.ClientConfig{User: "root", HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
		if bytes.Contains(known, ssh.MarshalAuthorizedKey(key)) {
			return good
		}
		return errors.New("another host key answers there")
	}})
	// The error only says that the callback refused, and contains the text of its error.
	if err != nil && strings.Contains(err.Error(), good.Error()) {
		return nil
	}
	return err
}

// name makes the machine known to others by its name.
func (p *Plan) name(ctx context.Context) (string, error) {
	a, err := p.Driver.Address(ctx, p.Container)
	if err != nil {
		return "", err
	}
	var said []string
	if p.Hosts != "" {
		changed, err := names.SetHost(p.Store.FS, p.Hosts, p.Container.Name, a)
		if err != nil {
			return "", err
		}
		said = append(said, changes(changed, p.Container.Name+" in "+p.Hosts))
	}
	if p.DNS != nil {
		addresses := []netip.Addr{a}
		if p.Container.Address6.IsValid() {
			addresses = append(addresses, p.Container.Address6.Addr())
		}
		if err := p.DNS.Add(ctx, p.Container.Name, addresses...); err != nil {
			return "", err
		}
		said = append(said, p.DNS.Full(p.Container.Name)+" at "+p.DNS.Server)
	}
	if len(said) == 0 {
		said = []string{"nowhere"}
	}
	return strings.Join(said, "; "), nil
}

// environment writes the variables in /etc/environment (pam_env(8)), between marks: other content of the file is kept.
func (p *Plan) environment(ctx context.Context) (string, error) {
	out, err := p.sh(ctx, strings.NewReader(strings.Join(append(p.Env, ""), "\n")), `f=/etc/environment; t="$f.corpus-git-new"; trap 'rm -f "$t"' EXIT
{ sed '/^# corpus-git begins$/,/^# corpus-git ends$/d' "$f" 2>/dev/null || true; echo '# corpus-git begins'; cat; echo '# corpus-git ends'; } >"$t"
chmod 644 "$t"
if cmp -s "$t" "$f"; then rm "$t"; else sync "$t"; mv "$t" "$f"; echo changed; fi`)
	if err != nil {
		return "", err
	}
	what := "no variables"
	if len(p.Env) > 0 {
		var names []string
		for _, e := range p.Env {
			name, _, _ := strings.Cut(e, "=")
			names = append(names, name)
		}
		what = strings.Join(names, ", ")
	}
	return changes(out == "changed", what), nil
}

// unit is the service that runs the agent, which owns the state there, so that what was deployed is converged and checked without the server.
const unit = `[Unit]
Description=corpus-git agent
After=network-online.target
Wants=network-online.target

[Service]
ExecStart=/usr/local/bin/corpus-git agent --idle 0
Restart=always
RestartSec=1
KillMode=process

[Install]
WantedBy=multi-user.target
`

// agent installs the program and its service. If the program is installed already, the running one is kept.
func (p *Plan) agent(ctx context.Context) (string, error) {
	f, err := os.Open(p.Program)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	want := hex.EncodeToString(sum.Sum(nil))
	have, err := p.sh(ctx, nil, `sha256sum /usr/local/bin/corpus-git 2>/dev/null | cut -d' ' -f1`)
	if err != nil {
		return "", err
	}
	changed := have != want
	if changed {
		if _, err := p.put(ctx, "/usr/local/bin/corpus-git", "755", f); err != nil {
			return "", err
		}
	}
	other, err := p.put(ctx, "/etc/systemd/system/corpus-git-agent.service", "644", strings.NewReader(unit))
	if err != nil {
		return "", err
	}
	restart := "start"
	if changed || other {
		restart = "restart"
	}
	_, err = p.sh(ctx, nil, `systemctl daemon-reload; systemctl enable --quiet corpus-git-agent; systemctl "$1" corpus-git-agent
for i in $(seq 100); do systemctl is-active --quiet corpus-git-agent && corpus-git version >/dev/null && exit 0; sleep .1; done
journalctl --no-pager -q -n 5 -u corpus-git-agent >&2; exit 1`, restart)
	return changes(changed || other, "corpus-git-agent.service runs"), err
}

// target returns how the server reaches the machine: the destination and options for ssh(1).
func (p *Plan) target(ctx context.Context) (string, []string, error) {
	options := []string{
		"HostKeyAlias=" + p.Container.Name, "UserKnownHostsFile=" + p.knownHosts(), "GlobalKnownHostsFile=none", p.Agent, "IdentitiesOnly=yes", "IdentityFile=" + p.Keys.Public(p.Container.Name),
	}
	if p.Container.Target != "" {
		return p.Container.Target, options, nil
	}
	a, err := p.Driver.Address(ctx, p.Container)
	return "root@" + a.String(), options, err
}

// node registers the machine as a node of the server.
func (p *Plan) node(ctx context.Context) (string, error) {
	target, options, err := p.target(ctx)
	if err != nil {
		return "", err
	}
	var said bytes.Buffer
	exit, err := p.Verb(ctx, []string{"node", "show", p.Container.Name, "--json"}, &said, io.Discard)
	if err != nil {
		return "", err
	}
	if exit == 0 {
		if Ours(p.Store, p.Container.Name, said.Bytes()) && bytes.Contains(said.Bytes(), []byte(`"`+target+`"`)) {
			return "unchanged: " + target, nil
		}
		return "", Another(p.Container.Name)
	}
	argv := append([]string{"node", "add", p.Container.Name, "--ssh=" + target}, p.operatorOptions()...)
	for _, o := range options {
		argv = append(argv, "--ssh-option="+o)
	}
	said.Reset()
	if exit, err = p.Verb(ctx, argv, io.Discard, &said); err == nil && exit != 0 {
		err = VerbError(exit, said.String())
	}
	return "added: " + target, err
}

// ownOptions are the options of ssh(1) that belong to the operator's login: the server has its own key, and known_hosts.
var ownOptions = regexp.MustCompile(`(?i)^\s*(Identity\w*|CertificateFile|\w*KnownHostsFile|KnownHostsCommand|HostKeyAlias|StrictHostKeyChecking|PreferredAuthentications)\b`)

// operatorOptions returns the flags of node add that say how the machine is reached: the operator's options, without those that belong to the operator's login.
func (p *Plan) operatorOptions() (argv []string) {
	for i := 0; i+1 < len(p.Container.Options); i += 2 {
		switch flag, value := p.Container.Options[i], p.Container.Options[i+1]; {
		case flag == "-i" || flag == "-o" && ownOptions.MatchString(value):
		case flag == "-o":
			argv = append(argv, "--ssh-option="+value)
		default:
			argv = append(argv, flag, value)
		}
	}
	return argv
}

// Ours reports whether a node, as node show --json prints it, is the machine of that name that was prepared from the store, and not another one.
func Ours(s container.Store, name string, document []byte) bool {
	p := &Plan{Store: s, Container: container.Container{Name: name}}
	return bytes.Contains(document, []byte(`"`+p.knownHostsOption()+`"`))
}

// Another returns the error for a name that another node has.
func Another(name string) error {
	return fault.New(fault.Refused, "", "the server has another node %s", name).WithHint("choose another name, or first:  corpus-git node remove %s", name)
}

func (p *Plan) knownHostsOption() string { return "UserKnownHostsFile=" + p.knownHosts() }

// deploy assigns projects to the node, and deploys projects, in the order in which they are given.
func (p *Plan) deploy(ctx context.Context) (string, error) {
	for _, name := range p.Projects {
		var said bytes.Buffer
		exit, err := p.Verb(ctx, []string{"node", "assign", p.Container.Name, name}, p.Out, &said)
		if err == nil && exit != 0 {
			err = VerbError(exit, said.String())
		}
		if err != nil {
			return "", err
		}
	}
	for _, name := range p.Deploy {
		exit, err := p.Verb(ctx, []string{"deploy", name}, p.Out, p.Out)
		if err == nil && exit != 0 {
			err = fault.New(fault.Failed, "", "the deployment of %s ended with exit status %d", name, exit)
		}
		if err != nil {
			return "", err
		}
	}
	if len(p.Deploy) == 0 && len(p.Projects) > 0 {
		return "assigned: " + strings.Join(p.Projects, ", "), nil
	}
	if len(p.Deploy) == 0 {
		return "nothing: no project was named", nil
	}
	return "live: " + strings.Join(p.Deploy, ", "), nil
}
