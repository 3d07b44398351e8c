//go:build containers

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// packages are what the container has: Debian's, those of the skeletons among them, so that no deployment needs the network.
const packages = "systemd,systemd-sysv,dbus,openssh-client,iproute2,git,curl,ca-certificates,procps,cron,logrotate,nginx-light," +
	"python3-venv,python3-flask,python3-gunicorn,php8.2-fpm,nodejs,python3-django,ruby,ruby-sinatra,puma,bundler,golang-go," +
	"podman,podman-compose,crun,netavark,aardvark-dns,iptables,busybox-static"

// rootCache is where the root of the containers is kept, by the list of its packages.
const rootCache = "/var/cache/corpus-git-test"

// machine is a container that systemd has booted, without a network, with a server in it.
type machine struct {
	t      *testing.T
	root   string
	leader string // its init, as a process of this machine
}

// baseRoot makes the root that all containers share, once; it is never written to after that. Packages after a blank are installed by apt: debootstrap
// does not choose among packages that provide what another depends on.
func baseRoot(t *testing.T, packages string) string {
	var missing []string
	for _, program := range []string{"debootstrap", "systemd-nspawn", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	if len(missing) > 0 {
		t.Fatalf("the containers need %s:  apt-get install debootstrap systemd-container , and run as root", strings.Join(missing, ", "))
	}
	sum := sha256.Sum256([]byte(packages))
	dir := filepath.Join(rootCache, fmt.Sprintf("bookworm-%x", sum[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	t.Logf("making %s with debootstrap: some minutes, once", dir)
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(rootCache, 0o755); err != nil {
		t.Fatal(err)
	}
	first, byApt, _ := strings.Cut(packages, " ")
	args := []string{"--variant=minbase", "--include=" + first, "bookworm", part}
	if mirror := os.Getenv("DEBIAN_MIRROR"); mirror != "" {
		args = append(args, mirror)
	}
	if out, err := exec.CommandContext(t.Context(), "debootstrap", args...).CombinedOutput(); err != nil {
		t.Fatalf("debootstrap: %v\n%s", err, out[max(0, len(out)-4000):])
	}
	if byApt != "" {
		apt := exec.CommandContext(t.Context(), "chroot", part, "sh", "-c", "apt-get update && apt-get install -y --no-install-recommends "+strings.ReplaceAll(byApt, ",", " ")+" && apt-get clean")
		apt.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
		if out, err := apt.CombinedOutput(); err != nil {
			t.Fatalf("apt-get: %v\n%s", err, out[max(0, len(out)-4000):])
		}
	}
	if err := os.Rename(part, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// boot starts a container over the shared root, which goes with the test.
func boot(t *testing.T) *machine {
	t.Helper()
	return bootWith(t, packages)
}

// bootWith is boot with other packages.
func bootWith(t *testing.T, packages string) *machine {
	t.Helper()
	base := baseRoot(t, packages)
	tmp := t.TempDir()
	m := &machine{t: t, root: filepath.Join(tmp, "root")}
	for _, dir := range []string{"root", "up", "work"} {
		if err := os.Mkdir(filepath.Join(tmp, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	layers := "lowerdir=" + base + ",upperdir=" + filepath.Join(tmp, "up") + ",workdir=" + filepath.Join(tmp, "work")
	if err := syscall.Mount("overlay", m.root, "overlay", 0, layers); err != nil {
		t.Fatalf("mount an overlay: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(m.root, syscall.MNT_DETACH) })
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(m.root, "usr/local/bin/corpus-git"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	// podman as it is cannot store images on an overlay, nor make control groups in a container of a machine that has their first version, nor keyrings
	// in one of systemd-nspawn's.
	if err := os.MkdirAll(filepath.Join(m.root, "etc/containers"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"storage.conf":    "[storage]\ndriver = \"vfs\"\nrunroot = \"/run/containers/storage\"\ngraphroot = \"/var/lib/containers/storage\"\n",
		"containers.conf": "[containers]\ncgroups = \"disabled\"\nkeyring = false\n",
	} {
		if err := os.WriteFile(filepath.Join(m.root, "etc/containers", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var console bytes.Buffer
	nspawn := exec.Command("systemd-nspawn", "-q", "-D", m.root, "--register=no", "--keep-unit", "-b", "--private-network")
	nspawn.Stdout, nspawn.Stderr = &console, &console
	if err := nspawn.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = nspawn.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = nspawn.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = nspawn.Process.Kill()
			<-ended
		}
	})
	children := fmt.Sprintf("/proc/%d/task/%[1]d/children", nspawn.Process.Pid)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if data, err := os.ReadFile(children); err == nil && len(strings.Fields(string(data))) == 1 {
			m.leader = strings.TrimSpace(string(data))
			if out, _ := m.try("systemctl is-system-running --wait"); strings.Contains(out, "running") || strings.Contains(out, "degraded") {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the container does not boot:\n%s", console.String())
		}
	}
	m.install()
	return m
}

// install sets up a server, as the guide says, and a developer with a key.
func (m *machine) install() {
	m.run(`
cat > /etc/systemd/system/corpus-git.service <<'UNIT'
[Unit]
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/local/bin/corpus-git serve --listen 127.0.0.1:2222 --public-address 127.0.0.1:2222
KillMode=process
Restart=on-failure
RestartSec=100ms
[Install]
WantedBy=multi-user.target
UNIT
systemctl enable --now corpus-git
mkdir -p -m 700 ~/.ssh
ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519
for i in $(seq 300); do corpus-git host-key >~/.ssh/known_hosts 2>/dev/null && break; sleep .1; done
git config --global user.name dev
git config --global user.email dev@localhost
git config --global init.defaultBranch master
corpus-git key add dev --file ~/.ssh/id_ed25519.pub`)
}

// try runs a shell script in the container and gives what it printed.
func (m *machine) try(script string) (string, error) {
	return m.in(m.t.Context(), script)
}

func (m *machine) in(ctx context.Context, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "nsenter", "-t", m.leader, "-a", "env", "-i", "HOME=/root", "USER=root", "LANG=C.UTF-8",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-euc", "cd\n"+script)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run is try for what must succeed.
func (m *machine) run(script string) string {
	m.t.Helper()
	out, err := m.try(script)
	if err != nil {
		m.t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	return out
}

// soon is run for what must succeed within seconds: after a reload, workers of nginx with the old configuration answer a last request.
func (m *machine) soon(script string) {
	m.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if _, err := m.try(script); err == nil {
			return
		}
	}
	m.run(script)
}

// fail is try for what must not succeed.
func (m *machine) fail(script string) string {
	m.t.Helper()
	out, err := m.try(script)
	if err == nil {
		m.t.Fatalf("%s\nsucceeded:\n%s", script, out)
	}
	return out
}

// deploy makes a project of a skeleton and pushes it as it is.
func (m *machine) deploy(skeleton string) {
	m.t.Helper()
	m.run(strings.ReplaceAll(`
corpus-git project create NAME
corpus-git access grant NAME dev deploy
corpus-git init --skeleton NAME NAME
corpus-git lint NAME
cd NAME
git init -q
git add -A
git commit -qm One
git remote add prod ssh://deploy@127.0.0.1:2222/NAME/project.git
git push prod master`, "NAME", skeleton))
}

// busybox gives podman the image that the skeleton compose begins with: there is no network to fetch it from its registry.
func (m *machine) busybox() {
	m.t.Helper()
	m.run(`mkdir -p image/bin image/etc; cp /bin/busybox image/bin/; for a in sh httpd; do ln -sf busybox image/bin/$a; done
tar -C image -c . | podman import - docker.io/library/busybox:1.36`)
}

// visit asks for a page of a project as a visitor does.
func (m *machine) visit(name string) string {
	m.t.Helper()
	return m.run("curl -sS --fail --max-time 10 -H 'Host: " + name + ".localhost' http://127.0.0.1/")
}

// visitor asks for a page again and again until stop, which gives every different answer: the body, or the status where it is not 200.
func (m *machine) visitor(name string) (stop func() map[string]int) {
	ctx, cancel := context.WithCancel(m.t.Context())
	answers := map[string]int{}
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			out, err := m.in(ctx, "for i in 1 2 3 4 5 6 7 8 9 10; do curl -sS --max-time 10 -w '%{http_code}@' -H 'Host: "+name+".localhost' http://127.0.0.1/ 2>/dev/null || true; sleep .02; done")
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				answers[out]++
				continue
			}
			for answer := range strings.SplitSeq(strings.TrimSuffix(out, "@"), "@") {
				if body, ok := strings.CutSuffix(answer, "200"); ok {
					answers[strings.TrimSpace(body)]++
				} else {
					answers[answer[max(0, len(answer)-3):]]++
				}
			}
		}
	})
	m.t.Cleanup(func() { cancel(); done.Wait() })
	return func() map[string]int {
		cancel()
		done.Wait()
		return answers
	}
}

// everySecond asks for a page n times a second, each time over a new connection and without waiting for the answers before, until stop, which gives every
// different answer: the status and the body, or the error.
func (m *machine) everySecond(n int, name string) (stop func() map[string]int) {
	m.t.Helper()
	const client = `
import collections, http.client, json, os, sys, threading, time
answers, lock, asking = collections.Counter(), threading.Lock(), []
def ask():
    try:
        c = http.client.HTTPConnection("127.0.0.1", 80, timeout=60)
        c.request("GET", "/", headers={"Host": sys.argv[2], "Connection": "close"})
        r = c.getresponse()
        answer = "%d %s" % (r.status, r.read().decode().strip()[:80])
    except Exception as e:
        answer = repr(e)
    with lock:
        answers[answer] += 1
due = time.monotonic()
while not os.path.exists("/root/visitors.stop"):
    t = threading.Thread(target=ask)
    t.start()
    asking = [a for a in asking if a.is_alive()] + [t]
    due += 1 / int(sys.argv[1])
    time.sleep(max(0, due - time.monotonic()))
for t in asking:
    t.join()
json.dump(answers, open("/root/visitors.part", "w"))
os.rename("/root/visitors.part", "/root/visitors.json")
`
	if err := os.WriteFile(filepath.Join(m.root, "root/visitors.py"), []byte(client), 0o644); err != nil {
		m.t.Fatal(err)
	}
	m.run(fmt.Sprintf("rm -f visitors.stop visitors.json; python3 visitors.py %d %s.localhost >/root/visitors.log 2>&1 &", n, name))
	return func() map[string]int {
		m.run("touch visitors.stop; for i in $(seq 900); do test -e visitors.json && break; sleep .1; done; cat visitors.log")
		answers := map[string]int{}
		if err := json.Unmarshal([]byte(m.run("cat visitors.json")), &answers); err != nil {
			m.t.Fatal(err)
		}
		return answers
	}
}

// outside is what is outside of projects and of what only grows: names and contents.
func (m *machine) outside() string {
	return m.run(`find /etc /usr/local /opt -xdev \( -type f -o -type l \) ! -name '*-' ! -name passwd ! -name group ! -name shadow ! -name gshadow \
 ! -name subuid ! -name subgid ! -path '/etc/systemd/system/corpus-git*' ! -name machine-id ! -path /etc/nginx/modules-enabled | sort | while read -r f; do echo "$f $(readlink "$f" || sha256sum < "$f")"; done
grep -hv '^#' /var/spool/cron/crontabs/* 2>/dev/null || true`)
}
