//go:build containers

package main

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/testutil"
)

// initHub is a server whose machine prepares nodes, and its operator.
type initHub struct {
	k                       *keeper
	work, root, hosts, home string
	env                     []string
	stop                    func()
}

// newInitHub starts a server with the project app, whose containers are those of the keeper.
func newInitHub(k *keeper) *initHub {
	t := k.t
	work := filepath.Dir(k.dir)
	h := &initHub{k: k, work: work, root: filepath.Join(work, "srv"), hosts: filepath.Join(work, "hosts"), home: filepath.Join(work, "home")}
	require.NoError(t, os.WriteFile(h.hosts, []byte("127.0.0.1 localhost\n"), 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(h.root, ".corpus-git"), 0o700))
	require.NoError(t, os.Rename(k.dir, filepath.Join(h.root, ".corpus-git", "containers")))
	k.dir = filepath.Join(h.root, ".corpus-git", "containers")
	h.env = append(os.Environ(), "HOME="+h.home, "CORPUS_GIT_ACCOUNTS=off", "GIT_SSH_COMMAND=ssh -i "+h.home+"/key -o IdentitiesOnly=yes -o UserKnownHostsFile="+h.home+"/known_hosts", "PATH="+work+":"+os.Getenv("PATH"), "ROOT="+h.root, "CORPUS_GIT_ROOT="+h.root, "GIT_CONFIG_GLOBAL=/dev/null")
	h.serve()
	h.must(`mkdir -p home; ssh-keygen -q -t ed25519 -N '' -f home/key; corpus-git project create app; corpus-git key add dev --file home/key.pub
corpus-git access grant app dev deploy; corpus-git access grant app dev configure; corpus-git host-key >home/known_hosts`)
	return h
}

// sh runs a script as the operator.
func (h *initHub) sh(script string) (string, error) {
	cmd := exec.CommandContext(h.k.t.Context(), "sh", "-euc", script)
	cmd.Dir, cmd.Env = h.work, h.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must is sh for what must succeed.
func (h *initHub) must(script string) string {
	h.k.t.Helper()
	out, err := h.sh(script)
	require.NoError(h.k.t, err, "%s\n%s", script, out)
	return out
}

// serve starts the server; stop ends it.
func (h *initHub) serve() {
	t := h.k.t
	require.NoError(t, os.RemoveAll(filepath.Join(h.root, ".corpus-git", "addr.json")))
	cmd := exec.Command(h.k.program, "--root", h.root, "serve", "--listen", "127.0.0.1:0")
	cmd.Env = h.env
	require.NoError(t, cmd.Start())
	h.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	t.Cleanup(h.stop)
	h.must(`for i in $(seq 300); do test -s "$ROOT/.corpus-git/addr.json" && exit 0; sleep .1; done; exit 1`)
}

// begin runs a command, and kills it within the step after the named one; "" kills nothing, and the command must succeed.
func (h *initHub) begin(args []string, after string) string {
	t := h.k.t
	t.Helper()
	cmd := exec.CommandContext(t.Context(), h.k.program, args...)
	cmd.Env, cmd.Dir = h.env, h.work
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var said strings.Builder
	var errw bytes.Buffer
	cmd.Stderr = &errw
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), after+" ") && after != "" {
			time.Sleep(time.Duration(len(after)*13) * time.Millisecond) // within the next step
			_ = cmd.Process.Kill()
		}
	}
	err = cmd.Wait()
	require.True(t, err == nil || after != "", "%s%s", said.String(), errw.String())
	return said.String()
}

// killed kills a command once in every step.
func (h *initHub) killed(args []string) {
	for _, step := range []string{"starting", "base", "keys", "address", "name", "firewall", "environment", "agent", "node", "deploy"} {
		h.begin(args, step)
	}
}

// served returns what a name server says of a machine: for the beginning of each of its addresses, the names that the address leads to.
func (h *initHub) served(server, name string) map[string][]string {
	r, out := testutil.Resolver(server), map[string][]string{}
	list, _ := r.LookupHost(h.k.t.Context(), name+".example.org") // an error is a name that is not there
	for _, a := range list {
		kind := a[:2]
		if strings.HasPrefix(a, "10.213.") {
			kind = "10.213"
		}
		names, _ := r.LookupAddr(h.k.t.Context(), a)
		out[kind] = append(out[kind], names...)
	}
	return out
}

// push commits what a script makes in the folder of app, and pushes it.
func (h *initHub) push(script string) (string, error) {
	return h.sh(`mkdir -p app/.salt; cd app; test -d .git || git init -q -b master
` + script + `
git add -A; git -c user.name=dev -c user.email=dev@localhost commit -qm Release; git push ssh://deploy@$(sed -n 's/.*"ssh": *"\([^"]*\)".*/\1/p' "$ROOT/.corpus-git/addr.json")/app/project.git HEAD:master`)
}

// A machine that exists, with an ssh server at a port of its own and rules of its operator, becomes a node by a command that is killed in every step, and after a
// mistake in the login. Its name is on a name server. Others reach what is open and nothing else, also after a reboot, and the operator's rules stay.
func TestContainerNodeSSH(t *testing.T) {
	k := newKeeper(t)
	const machine, name = "cgtest-host", "cgtest-db"
	h := newInitHub(k)
	k.create(machine)
	server, key := testutil.Named(t, "example.org")
	h.must(`ssh-keygen -q -t ed25519 -N '' -f home/operator`)
	operator, err := os.ReadFile(filepath.Join(h.home, "operator.pub"))
	require.NoError(t, err)
	k.run("exec", machine, "--", "sh", "-euc", `mkdir -p -m 700 /root/.ssh; echo "$0" >/root/.ssh/authorized_keys; echo 'Port 2022' >/etc/ssh/sshd_config.d/port.conf
printf '#!/usr/sbin/nft -f\nflush ruleset\ntable inet operator { }\n' >/etc/nftables.conf; systemctl enable -q nftables; systemctl restart nftables ssh`, strings.TrimSpace(string(operator)))
	var address string
	for line := range strings.Lines(k.run("show", machine)) {
		if a, ok := strings.CutPrefix(line, "address"); ok && address == "" { // the first is that of IPv4, at which its services below listen
			address, _, _ = strings.Cut(strings.TrimSpace(a), "/")
		}
	}
	require.NotEmpty(t, address)
	hostKeys := ""
	for line := range strings.Lines(k.run("exec", machine, "--", "sh", "-c", "cat /etc/ssh/ssh_host_*_key.pub")) {
		hostKeys += "[" + address + "]:2022 " + line
	}
	require.NoError(t, os.WriteFile(filepath.Join(h.home, "operator_hosts"), []byte(hostKeys), 0o600))

	// The login of the first attempt is wrong. The paths are those of the folder in which the command is typed.
	args := []string{"node", "init", name, "--ssh", "root@" + address, "-p", "2022", "--ssh-option", "UserKnownHostsFile=" + h.home + "/operator_hosts", "--hosts", h.hosts, "--open", "8080", "--env", "GREETING=hello",
		"--project", "app", "--dns-server", server, "--dns-zone", "example.org", "--dns-key", key}
	out, err := h.sh("corpus-git " + strings.Join(args, " ") + " -i home/key")
	require.Error(t, err)
	require.Contains(t, out, "Permission denied")
	args = append(args, "-i", "home/operator")
	h.killed(args)
	said := h.begin(args, "")
	require.Contains(t, said, name+" is a node")
	require.Contains(t, said, "open: ssh (2022), 8080")
	require.Contains(t, said, name+".example.org. at "+server)
	lookup := func() []string {
		names, _ := testutil.Resolver(server).LookupHost(t.Context(), name+".example.org")
		return names
	}
	require.Equal(t, []string{address}, lookup())
	text, err := os.ReadFile(h.hosts)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1 localhost\n"+address+" "+name+" # corpus-git\n", string(text))
	require.Equal(t, "1\n", k.run("exec", machine, "--", "grep", "-c", " corpus-git", "/root/.ssh/authorized_keys"))

	// The server logs in with its own key: the operator's is gone.
	h.must("rm home/operator home/operator_hosts")
	h.must(`mkdir pillar; cd pillar; git init -q -b master; printf '{}\n' >init.sls
git add -A; git -c user.name=dev -c user.email=dev@localhost commit -qm Pillar; git push ssh://deploy@$(sed -n 's/.*"ssh": *"\([^"]*\)".*/\1/p' "$ROOT/.corpus-git/addr.json")/app/pillar.git HEAD:master`)
	out, err = h.push(`printf 'page:\n  cmd.run:\n    - name: hostname >/srv/page\n' >.salt/010_page.sls`)
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "live on 1 node")
	require.Equal(t, machine+"\n", k.run("exec", machine, "--", "cat", "/srv/page"))
	require.Equal(t, "active\n", k.run("exec", machine, "--", "systemctl", "is-active", "corpus-git-agent"))

	// reaches reports whether a port of the machine answers; what the firewall drops does not even refuse.
	reaches := func(port string) bool {
		ctx, end := context.WithTimeout(t.Context(), 2*time.Second)
		defer end()
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(address, port))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	for range 2 {
		for _, port := range []string{"8080", "8081"} {
			k.run("exec", machine, "--", "systemd-run", "--quiet", "--unit=listen"+port, "perl", "-e", `use IO::Socket::INET; my $s = IO::Socket::INET->new(LocalPort => `+port+`, Listen => 5) or die; while (my $c = $s->accept) { close $c }`)
			k.run("exec", machine, "--", "sh", "-c", "for i in $(seq 100); do ss -Hlnt sport = :"+port+" | grep -q . && exit 0; sleep .1; done; exit 1")
		}
		require.True(t, reaches("8080"))
		require.True(t, reaches("2022"))
		require.False(t, reaches("8081"))
		require.Contains(t, k.run("exec", machine, "--", "nft", "list", "ruleset"), "table inet operator")
		k.run("stop", machine)
		k.run("start", machine)
	}
	out, err = h.push(`printf 'page:\n  cmd.run:\n    - name: hostname >/srv/two\n' >.salt/010_page.sls`)
	require.NoError(t, err, "after a reboot: %s", out)

	// What was told to others is taken back; the machine stays as it is.
	h.must("corpus-git node unassign app; corpus-git container destroy " + name + " --yes --hosts " + h.hosts + " --dns-server " + server + " --dns-zone example.org --dns-key " + key)
	require.Empty(t, lookup())
	require.Contains(t, h.must("corpus-git node list"), "no nodes yet")
	require.Equal(t, "running\n", k.run("exec", machine, "--", "systemctl", "is-system-running"))
}
