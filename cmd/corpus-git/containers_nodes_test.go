//go:build containers

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/container/lxc"
	"corpus-git/container/network"
	"corpus-git/container/nspawn"
	"corpus-git/internal/testutil"
)

// keeper is the program on this machine, with containers in a folder, and a network, of its own.
type keeper struct {
	t            *testing.T
	program, dir string
	gateway      string
	network      []string
	names        []string
}

// newKeeper builds the program. What it makes goes with the test.
func newKeeper(t *testing.T) *keeper {
	t.Helper()
	for _, program := range []string{"debootstrap", "systemd-nspawn", "ip"} {
		_, err := exec.LookPath(program)
		require.NoError(t, err, "apt-get install debootstrap systemd-container iproute2")
	}
	require.Zero(t, os.Geteuid(), "containers need root")
	tmp := t.TempDir()
	k := &keeper{t: t, program: filepath.Join(tmp, "corpus-git"), dir: filepath.Join(tmp, "containers")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", k.program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.MkdirAll(filepath.Join(rootCache, "bases"), 0o700))
	require.NoError(t, os.Mkdir(k.dir, 0o700))
	require.NoError(t, os.Symlink(filepath.Join(rootCache, "bases"), filepath.Join(k.dir, "bases")))
	k.gateway = fmt.Sprintf("10.213.%d.1", 100+os.Getpid()%100)
	bridge := fmt.Sprintf("cgt%d", os.Getpid())
	k.network = []string{"--network", k.gateway + "/24", "--bridge", bridge}
	t.Cleanup(func() {
		for _, name := range k.names {
			out, err := exec.Command(k.program, "container", "--dir", k.dir, "destroy", name, "--yes").CombinedOutput()
			if err != nil && !strings.Contains(string(out), "there is no container") {
				t.Errorf("destroy %s: %v\n%s", name, err, out)
			}
		}
		require.NoError(t, network.Network{Bridge: bridge}.Down())
	})
	return k
}

// try runs the command container.
func (k *keeper) try(args ...string) (string, error) {
	cmd := exec.CommandContext(k.t.Context(), k.program, append([]string{"container", "--dir", k.dir}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run is try for what must succeed.
func (k *keeper) run(args ...string) string {
	k.t.Helper()
	out, err := k.try(args...)
	require.NoError(k.t, err, "container %s:\n%s", strings.Join(args, " "), out)
	return out
}

// create makes a container.
func (k *keeper) create(name string) {
	k.t.Helper()
	k.names = append(k.names, name)
	k.run(append([]string{"create", name}, k.network...)...)
}

// answering is a server in Perl, which the base system has: it says its name to each connection, after a while, so that some are open at each moment.
const answering = `use IO::Socket::IP; $SIG{CHLD} = "IGNORE";
my $s = IO::Socket::IP->new(LocalHost => "::", V6Only => 0, LocalPort => 8080, Listen => 512, ReuseAddr => 1) or die "listen: $!";
while (my $c = $s->accept) { next if fork; my $line = <$c>; select undef, undef, undef, 0.05; print $c "$ARGV[0] $line"; close $c; exit 0 }`

// Clients ask again and again while the port that they ask is switched between two containers. Each is answered, and after a switch has returned only the new
// container gets connections.
func TestContainerPublish(t *testing.T) {
	k := newKeeper(t)
	for _, name := range []string{"cgtest-a", "cgtest-b"} {
		k.create(name)
		k.run("exec", name, "--", "sh", "-c", "cat >/root/server.pl <<'E'\n"+answering+"\nE\nsystemd-run --quiet --unit=answering perl /root/server.pl "+name+"\nfor i in $(seq 100); do ss -Hlnt sport = :8080 | grep -q . && exit 0; sleep .1; done; exit 1")
	}
	const port = "18080"
	six := network.Network{Bridge: k.network[3], Prefix: netip.MustParsePrefix(k.network[1])}.Prefix6().Addr().String()
	ask := func(host string) (string, error) {
		conn, err := (&net.Dialer{Timeout: 20 * time.Second}).DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err != nil {
			return "", err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.WriteString(conn, "hello\n"); err != nil {
			return "", err
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		name, rest, _ := strings.Cut(line, " ")
		if err == nil && rest != "hello\n" {
			err = fmt.Errorf("answered %q", line)
		}
		return name, err
	}
	_, err := ask(k.gateway)
	require.Error(t, err, "nothing is published yet")
	k.run("publish", "cgtest-a", port+":8080")

	done := make(chan struct{})
	var clients sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	hosts := []string{k.gateway, "127.0.0.1", six}
	for i := range 9 {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				name, err := ask(hosts[i%len(hosts)])
				if err != nil {
					name = err.Error()
				}
				mu.Lock()
				answers[name]++
				mu.Unlock()
			}
		})
	}
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for _, c := range answers {
			n += c
		}
		return n >= 1000
	}
	for i := 0; i < 20 || i%2 == 1 || !enough(); i++ { // the last one is to cgtest-a
		name := []string{"cgtest-b", "cgtest-a"}[i%2]
		k.run("publish", name, port+":8080")
		for _, host := range hosts {
			got, err := ask(host)
			require.NoError(t, err, host)
			require.Equal(t, name, got, "after the switch")
		}
	}
	close(done)
	clients.Wait()
	t.Logf("%v", answers)
	require.Len(t, answers, 2, "a client was not answered")
	require.Greater(t, answers["cgtest-a"], 20)
	require.Greater(t, answers["cgtest-b"], 20)

	// A port is published by who has it; what is destroyed gives it back, and one that is not published is none.
	require.Contains(t, k.run("show", "cgtest-a"), "port      8080, published at "+port)
	require.NotContains(t, k.run("show", "cgtest-b"), "published")
	k.run("destroy", "cgtest-a", "--yes")
	out, err := k.try("unpublish", port)
	require.Error(t, err)
	require.Contains(t, out, "is not published")
	for _, host := range hosts {
		_, err = ask(host)
		require.Error(t, err)
	}
}

// The command is killed at random moments while it makes a container; the same command continues. What it says and refuses on the way.
func TestContainerCommand(t *testing.T) {
	k := newKeeper(t)
	out, err := k.try("show", "cgtest-c")
	require.Error(t, err)
	require.Contains(t, out, "corpus-git container create cgtest-c")
	k.names = append(k.names, "cgtest-c")
	for _, after := range []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second} {
		cmd := exec.CommandContext(t.Context(), k.program, append([]string{"container", "--dir", k.dir, "create", "cgtest-c", "--memory", "512M"}, k.network...)...)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		require.NoError(t, cmd.Start())
		time.Sleep(after)
		_ = cmd.Process.Kill()
		if cmd.Wait() == nil {
			break // it was faster
		}
	}
	out, err = k.try(append([]string{"create", "cgtest-c", "--memory", "512M"}, k.network...)...)
	require.True(t, err == nil || strings.Contains(out, "there is a container cgtest-c already"), "%s", out)
	k.run("start", "cgtest-c")
	require.Contains(t, k.run("list"), "running")
	require.Contains(t, k.run("show", "cgtest-c"), "537 MB of memory")
	require.Equal(t, "cgtest-c\n", k.run("exec", "cgtest-c", "--", "hostname"))
	_, err = k.try("exec", "cgtest-c", "--", "sh", "-c", "exit 7")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.ExitCode())

	// Copies and what is refused.
	k.run("exec", "cgtest-c", "--", "sh", "-c", "echo one >/root/file")
	k.run("snapshot", "create", "cgtest-c", "one")
	k.run("exec", "cgtest-c", "--", "sh", "-c", "echo two >/root/file")
	k.run("snapshot", "restore", "cgtest-c", "one")
	require.Equal(t, "one\n", k.run("exec", "cgtest-c", "--", "cat", "/root/file"))
	out, err = k.try("snapshot", "restore", "cgtest-c", "two")
	require.Error(t, err)
	require.Contains(t, out, `has no snapshot "two"`)
	out, err = k.try("destroy", "cgtest-c")
	require.Error(t, err)
	require.Contains(t, out, "--yes")
	out, err = k.try("resize", "cgtest-c", "--memory", "1M")
	require.Error(t, err)
	require.Contains(t, out, "at least 64 MB")
	k.run("destroy", "cgtest-c", "--yes")
	require.Contains(t, k.run("list"), "no containers yet")
	left, err := filepath.Glob(filepath.Join(k.dir, "machines", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A container becomes a node, by a command that is killed in every step and typed again; a push deploys there. What was prepared is found by the server when it
// starts anew, and nothing of it is left when the container is destroyed.
func TestContainerNode(t *testing.T) {
	for _, driver := range []string{nspawn.Name, lxc.Name} {
		t.Run(driver, func(t *testing.T) { containerNode(t, driver) })
	}
}

func containerNode(t *testing.T, driver string) {
	k := newKeeper(t)
	h := newInitHub(k)
	hosts, sh, must := h.hosts, h.sh, h.must
	// Every step is killed once, when the one before it has been told.
	const name = "cgtest-node"
	k.names = append(k.names, name)
	args := append([]string{"node", "init", name, "--hosts", hosts, "--open", "8080", "--env", "GREETING=hello world", "--project", "app", "--driver", driver}, k.network...)
	server, key := testutil.Named(t, "example.org", "213.10.in-addr.arpa", "d.f.ip6.arpa")
	args = append(args, "--dns-server", server, "--dns-zone", "example.org", "--dns-key", key, "--dns-reverse", "213.10.in-addr.arpa", "--dns-reverse", "d.f.ip6.arpa")
	h.killed(args)
	said := h.begin(args, "")
	require.Contains(t, said, name+" is a node")
	served := h.served(server, name)
	require.Equal(t, []string{name + ".example.org."}, served["10.213"])
	require.Equal(t, []string{name + ".example.org."}, served["fd"])
	require.Len(t, served, 2, "one address of each kind: %v", served)
	require.Equal(t, 1, strings.Count(k.run("list"), "\n"))
	require.Contains(t, said, "keys         done before: the server logs in with SHA256:")
	text, err := os.ReadFile(hosts)
	require.NoError(t, err)
	require.Regexp(t, `^127.0.0.1 localhost\n10\.213\.\d+\.2 `+name+` # corpus-git\n$`, string(text))
	require.Equal(t, "1\n", k.run("exec", name, "--", "grep", "-c", "corpus-git", "/root/.ssh/authorized_keys"))
	require.Equal(t, "# corpus-git begins\nGREETING=hello world\n# corpus-git ends\n", k.run("exec", name, "--", "cat", "/etc/environment"))
	require.Contains(t, k.run("exec", name, "--", "nft", "list", "ruleset"), "tcp dport { 22, 8080 } accept")
	require.Equal(t, "active\n", k.run("exec", name, "--", "systemctl", "is-active", "corpus-git-agent"))
	private, err := exec.Command("grep", "-rlE", "PRIVATE KEY", filepath.Join(k.dir, "machines", name, "key.sealed"), filepath.Join(k.dir, "credentials.key"), filepath.Join(k.dir, "machines", name, "init.json")).Output()
	require.Error(t, err, "a private key can be read: %s", private)

	// A push deploys there, by the service that runs there; a release that fails is rolled back.
	must(`mkdir pillar; cd pillar; git init -q -b master; printf '{}\n' >init.sls
git add -A; git -c user.name=dev -c user.email=dev@localhost commit -qm Pillar; git push ssh://deploy@$(sed -n 's/.*"ssh": *"\([^"]*\)".*/\1/p' "$ROOT/.corpus-git/addr.json")/app/pillar.git HEAD:master`)
	push := func(text, more string) (string, error) {
		return sh(`mkdir -p app/.salt; cd app; test -d .git || git init -q -b master; echo '` + text + `' >page
printf 'page:\n  cmd.run:\n    - name: cp page /srv/page; hostname >>/srv/page\n    - cwd: {{ cfg.project_root }}\n' >.salt/010_page.sls
` + more + `
git add -A; git -c user.name=dev -c user.email=dev@localhost commit -qm '` + text + `'; git push ssh://deploy@$(sed -n 's/.*"ssh": *"\([^"]*\)".*/\1/p' "$ROOT/.corpus-git/addr.json")/app/project.git HEAD:master`)
	}
	out, err := push("one", "")
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "live on 1 node")
	require.Equal(t, "one\n"+name+"\n", k.run("exec", name, "--", "cat", "/srv/page"))
	require.Contains(t, k.run("exec", name, "--", "corpus-git", "report"), "app")
	out, err = push("two", `printf 'fails:\n  cmd.run:\n    - name: exit 1\n' >.salt/020_no.sls`)
	require.Error(t, err)
	require.Contains(t, out, "rolled back", "%s", out)
	require.Equal(t, "one\n"+name+"\n", k.run("exec", name, "--", "cat", "/srv/page"))

	// Another server process signs with the same key; a step is done again, and changes nothing.
	h.stop()
	h.serve()
	must("corpus-git host-key >home/known_hosts")
	out, err = push("three", "rm .salt/020_no.sls")
	require.NoError(t, err, "%s", out)
	require.Equal(t, "three\n"+name+"\n", k.run("exec", name, "--", "cat", "/srv/page"))
	args = append(args, "--from", "keys", "--deploy", "app")
	allowed := func() string { return k.run("exec", name, "--", "cat", "/root/.ssh/authorized_keys") }
	was := allowed()
	require.NoError(t, os.Remove(filepath.Join(k.dir, "machines", name, "key.sealed")))
	said = h.begin(args, "")
	require.NotEqual(t, was, allowed(), "a new key takes the place of one that was removed")
	require.Equal(t, 1, strings.Count(allowed(), " corpus-git\n"))
	require.NoFileExists(t, filepath.Join(k.dir, "machines", name, "key.old"))
	require.Contains(t, said, "corpus-git-agent.service runs, unchanged")
	require.Contains(t, said, "open: ssh, 8080, unchanged")
	require.Contains(t, said, "deploy       live: app")

	out, err = sh(`corpus-git container destroy ` + name + ` --yes --hosts ` + hosts)
	require.Error(t, err)
	require.Contains(t, out, "app is assigned to the node "+name)
	out = must(`corpus-git node unassign app; corpus-git container destroy ` + name + ` --yes --hosts ` + hosts + ` --dns-server ` + server + ` --dns-zone example.org --dns-key ` + key + `; corpus-git node list`)
	require.Empty(t, h.served(server, name), "also in the zones of addresses, which are recorded")
	require.Contains(t, out, "no nodes yet")
	text, err = os.ReadFile(hosts)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1 localhost\n", string(text))
}
