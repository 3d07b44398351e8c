//go:build containers

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The package is installed on a Debian 12 that has booted, deployed to, rebooted, backed up, upgraded while a deployment runs, removed, restored and purged.
func TestContainerPackage(t *testing.T) {
	m := boot(t)
	// Without what the other tests have.
	m.run("systemctl disable --now corpus-git; rm -rf /etc/systemd/system/corpus-git.service /usr/local/bin/corpus-git /srv/* /srv/.corpus-git; systemctl daemon-reload")
	old, next := m.deb("0.9.0"), m.deb("0.9.1")

	out := m.run("dpkg -i " + old)
	if !strings.Contains(out, "corpus-git listens on port 2222") {
		t.Errorf("an installation does not say what is next:\n%s", out)
	}
	m.run("systemctl is-active corpus-git && corpus-git version | grep 0.9.0 && man -w corpus-git 2>/dev/null || ls /usr/share/man/man1/corpus-git.1.gz")
	m.run("test $(stat -c %a /var/lib/corpus-git) = 700 && corpus-git doctor")
	m.documentedExposure()
	m.run(`corpus-git key add dev --admin --file ~/.ssh/id_ed25519.pub; corpus-git host-key | sed "s/^[^ ]*/[127.0.0.1]:2222/" >~/.ssh/known_hosts`)
	m.deploy("shell")
	proof := "grep 'Hello from shell' /srv/projects/shell/project/build/hello.txt"
	m.run(proof)

	// The configuration again; the log again.
	m.run("systemctl reload corpus-git && systemctl is-active corpus-git")
	m.run("logrotate -f /etc/logrotate.d/corpus-git && ls /var/lib/corpus-git/server.log.1")
	m.soon("grep 'nothing changed' /var/lib/corpus-git/server.log")

	// A server that hangs is started again.
	m.run("mkdir -p /run/systemd/system/corpus-git.service.d; printf '[Service]\\nWatchdogSec=2s\\n' >/run/systemd/system/corpus-git.service.d/watchdog.conf; systemctl daemon-reload; systemctl restart corpus-git")
	pid := strings.TrimSpace(m.run("systemctl show -P MainPID corpus-git"))
	m.run("kill -STOP " + pid)
	m.soon("systemctl is-active corpus-git && test $(systemctl show -P MainPID corpus-git) != " + pid)
	m.run("rm -r /run/systemd/system/corpus-git.service.d; systemctl daemon-reload; systemctl restart corpus-git")

	m.convergeAfterReboot()
	m.run("systemctl is-active corpus-git && " + proof)
	m.run("cd shell; git commit -q --allow-empty -m Two; git push prod master")

	// An upgrade waits for what runs.
	m.run(`cd shell; printf 'wait:\n  cmd.run:\n    - name: touch /run/begun; while [ ! -e /run/go ]; do sleep .1; done\n' >.salt/090_wait.sls; git add -A; git commit -qm Slow; nohup git push prod master >~/slow.out 2>&1 & for i in $(seq 100); do test -e /run/begun && break; sleep .1; done`)
	m.run("(sleep 1; touch /run/go) >/dev/null 2>&1 & dpkg -i " + next)
	m.run("systemctl is-active corpus-git && corpus-git version | grep 0.9.1")
	m.soon("grep 'live in' ~/slow.out")
	m.run("cd shell; git rm -q .salt/090_wait.sls; git commit -qm Three; git push prod master")
	m.run("cp -a ~/shell/.git /root/copy; corpus-git backup --with-archives --with-data /root/backup.tar.zst && corpus-git backup verify /root/backup.tar.zst")

	// systemd listens: a connection during a restart waits.
	m.run("systemctl stop corpus-git; systemctl enable --now corpus-git.socket; systemctl start corpus-git; corpus-git doctor | grep 'listens on'")
	m.run("cd shell; systemctl restart --no-block corpus-git; git commit -q --allow-empty -m Four; git push prod master")

	m.run("apt-get -qq remove -y corpus-git >/dev/null 2>&1; test ! -e /usr/bin/corpus-git; ! systemctl is-active corpus-git; test -e /var/lib/corpus-git/corpus-git.db; " + proof)
	m.run("apt-get -qq purge -y corpus-git >/dev/null 2>&1; test ! -e /var/lib/corpus-git; test ! -e /etc/corpus-git; " + proof)

	// Another machine, as far as corpus-git can tell.
	m.run("rm -rf /srv/*; dpkg -i " + next + "; systemctl stop corpus-git; rm -rf /var/lib/corpus-git/*; corpus-git restore /root/backup.tar.zst; systemctl start corpus-git")
	m.run(proof + "; cd shell; git fetch -q prod; git push -f prod HEAD~1:master; corpus-git report shell")
	m.run("apt-get -qq purge -y corpus-git >/dev/null 2>&1; ! systemctl --failed --plain --no-legend | grep .")
}

// convergeAfterReboot reboots, and expects that a project with converge at boot is applied again, once: what /run held is gone, and a file in /etc was edited before.
func (m *machine) convergeAfterReboot() {
	m.t.Helper()
	m.run(`mkdir -p again/.salt; cd again
printf 'makina-projects.again:\n  converge: {boot: true, splay: 0s}\n' >.salt/PILLAR.sample
printf 'in-run:\n  file.managed:\n    - name: /run/again/state\n    - makedirs: True\n    - contents: applied\nin-etc:\n  file.managed:\n    - name: /etc/again.conf\n    - contents: applied\n' >.salt/010_state.sls
corpus-git project create again; git init -q; git add -A; git commit -qm One; git push ssh://deploy@127.0.0.1:2222/again/project.git master
grep applied /run/again/state; echo edited >/etc/again.conf`)
	m.reboot()
	m.soon("grep applied /run/again/state && grep applied /etc/again.conf && corpus-git project show again --json | grep '\"state\": \"in sync\"'")
	ran := "test $(corpus-git deployments again --json | grep -c '\"occasion\": \"boot\"') = 1"
	m.run(ran + " && corpus-git deployments again --json | grep '\"changed\": 2'")
	m.run("rm /run/again/state; systemctl restart corpus-git; sleep 2; " + ran + " && test ! -e /run/again/state")
	m.run("corpus-git project destroy again --yes --data; rm -f /etc/again.conf")
}

// documentedExposure holds what docs/operating.md says of the unit against what systemd says of it.
func (m *machine) documentedExposure() {
	m.t.Helper()
	doc, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		m.t.Fatal(err)
	}
	said := regexp.MustCompile("`systemd-analyze security corpus-git` reports ([0-9.]*[0-9])").FindSubmatch(doc)
	out := m.run("systemd-analyze security corpus-git.service --no-pager | tail -1")
	if said == nil || !strings.Contains(out, ": "+string(said[1])+" ") {
		m.t.Errorf("docs/operating.md says another figure than systemd: %s", out)
	}
}

// deb makes a package of this checkout and gives its path in the container.
func (m *machine) deb(version string) string {
	m.t.Helper()
	top, err := filepath.Abs("../..")
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.CommandContext(m.t.Context(), "make", "-C", top, "packages", "VERSION="+version)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("make packages: %v\n%s", err, out)
	}
	name := "corpus-git_" + version + "_amd64.deb"
	deb, err := os.ReadFile(filepath.Join(top, "dist", name))
	if err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.root, "root", name), deb, 0o644); err != nil {
		m.t.Fatal(err)
	}
	return "/root/" + name
}

// reboot starts the container again: with --keep-unit systemd-nspawn leaves that to whoever started it.
func (m *machine) reboot() {
	m.t.Helper()
	_, _ = m.try("systemctl reboot")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if _, err := os.Stat("/proc/" + m.leader); err != nil {
			break
		}
		if time.Now().After(deadline) {
			m.t.Fatal("the container does not stop for a reboot")
		}
	}
	nspawn := exec.Command("systemd-nspawn", "-q", "-D", m.root, "--register=no", "--keep-unit", "-b", "--private-network")
	if err := nspawn.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = nspawn.Process.Kill()
		_ = nspawn.Wait()
	})
	children := fmt.Sprintf("/proc/%d/task/%[1]d/children", nspawn.Process.Pid)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if data, err := os.ReadFile(children); err == nil && len(strings.Fields(string(data))) == 1 {
			m.leader = strings.TrimSpace(string(data))
			if out, _ := m.try("systemctl is-system-running --wait"); strings.Contains(out, "running") || strings.Contains(out, "degraded") {
				return
			}
		}
		if time.Now().After(deadline) {
			m.t.Fatal("the container does not come back after a reboot")
		}
	}
}
