package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// nodesSize is how many nodes there are, how large the project is and how often it is pushed: CORPUS_GIT_BENCH_NODES=<nodes>x<files>x<pushes>.
const nodesSize = "10x5000x5"

// rolloutLab is one sshd, and on it the nodes of all three: each node is a folder of its own.
type rolloutLab struct {
	*lab
	nodes      int
	work, bare string
	user       string
	port       string
}

// benchNodes deploys changes of one file on several nodes: by one push to corpus-git, with an archive, 3 steps and a way back on each node; by a loop of ssh and rsync over all nodes at once; and, where
// ansible-playbook is installed, by a playbook with as many forks as there are nodes, pipelining, no facts. Each of the others archives by rsync, brings the files there, sets their owner
// and runs the same commands, and neither syncs anything nor goes back. Their ssh connections are kept from one round to the next (ControlPersist).
func benchNodes(l *lab) error {
	r := &rolloutLab{lab: l, work: l.path("work"), bare: l.path("hub.git")}
	size := os.Getenv("CORPUS_GIT_BENCH_NODES")
	if size == "" {
		size = nodesSize
	}
	var files, pushes int
	if n, err := fmt.Sscanf(size, "%dx%dx%d", &r.nodes, &files, &pushes); n != 3 || err != nil || r.nodes < 1 || files < 100 || pushes < 1 {
		return fmt.Errorf("CORPUS_GIT_BENCH_NODES=%s is not <nodes>x<files>x<pushes>, such as %s", size, nodesSize)
	}
	pushes = l.roundsOr(pushes)
	if err := l.buildWithKey(); err != nil {
		return err
	}
	if err := errors.Join(makeProject(r.work, files), os.MkdirAll(l.path("peer"), 0o755)); err != nil {
		return err
	}
	if err := errors.Join(l.commitAll(r.work), l.sh(l.dir, "git", "init", "-q", "--bare", "-b", "master", r.bare)); err != nil {
		return err
	}
	base, _, stopSSHD, err := l.serveSSHD(l.path("peer"))
	if err != nil {
		return err
	}
	defer stopSSHD()
	defer r.stopAgents()
	at, err := url.Parse(base)
	if err != nil {
		return err
	}
	r.user, r.port = at.User.Username(), at.Port()
	ours, stop, err := r.serveHub()
	if err != nil {
		return err
	}
	defer stop()
	peers := []rolloutPeer{{"corpus-git", func() error { return l.sh(r.work, "git", "push", "-q", ours, "HEAD:master") }, "srv-%d/projects/app/project", nil}}
	peers = append(peers, rolloutPeer{"ssh + rsync, all nodes at once", r.loop, "loop-%d/live", nil})
	if _, err := lookup("ansible-playbook"); err == nil {
		if err := r.writePlaybook(); err != nil {
			return err
		}
		peers = append(peers, rolloutPeer{"ansible-playbook", r.ansible, "ansible-%d/live", nil})
	} else {
		fmt.Println("ansible-playbook is not installed: left out")
	}
	for i := range pushes + 1 {
		if err := r.round(i, peers); err != nil {
			return err
		}
	}
	for _, p := range peers {
		slices.Sort(p.took)
	}
	fmt.Printf("-- one changed file of %d on %d nodes, median of %d, load %s\n", files, r.nodes, pushes, load())
	for i := range peers {
		p := &peers[i]
		slices.Sort(p.took)
		fmt.Printf("%-34s %9.1f ms   ratio %.3f\n", p.name, ms(median(p.took)), median(peers[0].took).Seconds()/median(p.took).Seconds())
	}
	return nil
}

type rolloutPeer struct {
	name   string
	deploy func() error
	live   string // of node %d
	took   []time.Duration
}

// round changes a file and has each peer deploy it; the first is not counted: it installs.
func (r *rolloutLab) round(i int, peers []rolloutPeer) error {
	want := fmt.Sprintf("<h1>version %d</h1>\n", i)
	if err := writeFile(filepath.Join(r.work, "index.html"), want, 0o644); err != nil {
		return err
	}
	if err := errors.Join(r.sh(r.work, "git", "commit", "-qam", "change"), r.sh(r.work, "git", "push", "-q", r.bare, "HEAD:master")); err != nil {
		return err
	}
	for p := range peers {
		if err := syncFS(r.dir); err != nil {
			return err
		}
		took, err := timed(peers[p].deploy)
		if err != nil {
			return fmt.Errorf("%s: %w", peers[p].name, err)
		}
		if i > 0 {
			peers[p].took = append(peers[p].took, took)
		}
		fmt.Printf("round %d  %-34s %9.1f ms\n", i, peers[p].name, ms(took))
		for n := range r.nodes {
			file := r.path(fmt.Sprintf(peers[p].live, n) + "/index.html")
			if got, err := os.ReadFile(file); err != nil || string(got) != want {
				return fmt.Errorf("%s is not what was deployed: %q (%w)", file, got, err)
			}
		}
	}
	return nil
}

// serveHub starts a server whose project app is deployed on all nodes.
func (r *rolloutLab) serveHub() (push string, stop func(), err error) {
	push, stop, err = r.serveCorpus()
	if err != nil {
		return "", nil, err
	}
	fail := func(err error) (string, func(), error) { stop(); return "", nil, err }
	for n := range r.nodes {
		if err := r.sh(r.dir, r.bin, "node", "add", fmt.Sprintf("n%d", n), "-p", r.port, "-i", r.path("key"), "--ssh-option", "StrictHostKeyChecking=no", "--ssh-option", "UserKnownHostsFile="+r.path("known_hosts"),
			"--ssh-option", "IdentitiesOnly=yes", "--ssh", r.user+"@127.0.0.1", "--remote-root", r.path(fmt.Sprintf("srv-%d", n))); err != nil {
			return fail(err)
		}
	}
	pillar := r.path("pillar")
	if err := errors.Join(
		r.sh(r.dir, r.bin, "access", "grant", "app", "bench", "configure"),
		writeFile(filepath.Join(pillar, "nodes.yaml"), fmt.Sprintf("nodes:\n  \"n[0-%d]\": {roles: [web]}\n", r.nodes-1), 0o644),
		writeFile(filepath.Join(pillar, "init.sls"), "makina-projects.app: {data: {}}\n", 0o644),
		// Known before anybody asks it for its key: the options of a node come first.
		r.sh(r.dir, "ssh", "-p", r.port, "-i", r.path("key"), "-oIdentitiesOnly=yes", "-oStrictHostKeyChecking=no", "-oUserKnownHostsFile="+r.path("known_hosts"), r.user+"@127.0.0.1", "true"),
	); err != nil {
		return fail(err)
	}
	if err := r.commitAll(pillar); err != nil {
		return fail(err)
	}
	if err := r.sh(pillar, "git", "push", "-q", strings.TrimSuffix(push, "project.git")+"pillar.git", "HEAD:master"); err != nil {
		return fail(err)
	}
	return push, stop, nil
}

// sshWords are ssh(1) with a connection that stays.
func (r *rolloutLab) sshWords(control string) string {
	return fmt.Sprintf("ssh -F none -p %s -i %s -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR -o UserKnownHostsFile=%s -o ControlMaster=auto -o ControlPersist=300 -o ControlPath=/tmp/%s",
		r.port, r.path("key"), r.path("known_hosts"), control)
}

// loop deploys on all nodes at once: archive, rsync, owner, commands.
func (r *rolloutLab) loop() error {
	errs := make([]error, r.nodes)
	var all sync.WaitGroup
	for n := range r.nodes {
		all.Go(func() {
			dir := r.path(fmt.Sprintf("loop-%d", n))
			ssh := r.sshWords(fmt.Sprintf("%s-l%d", filepath.Base(r.dir), n))
			to := r.user + "@127.0.0.1"
			archive := fmt.Sprintf("d=%s; a=$d/archives/$(date +%%s%%N); mkdir -p $d/live $a && rsync -Aa --delete $d/live/ $a/ && ls -dt $d/archives/* | tail -n +4 | xargs -r rm -rf", dir)
			run := fmt.Sprintf("cd %s/live && chown -R $(id -u):$(id -g) . && %s && chown -R $(id -u):$(id -g) .", dir, strings.Join(steps(), " && "))
			errs[n] = r.sh(r.work, "sh", "-ec", fmt.Sprintf("%[1]s %[2]s '%[3]s'\nrsync -a --delete --exclude .git --exclude build -e '%[1]s' ./ %[2]s:%[4]s/live/\n%[1]s %[2]s '%[5]s'", ssh, to, archive, dir, run))
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// writePlaybook writes the inventory and the playbook.
func (r *rolloutLab) writePlaybook() error {
	var hosts strings.Builder
	hosts.WriteString("[web]\n")
	for n := range r.nodes {
		fmt.Fprintf(&hosts, "n%d ansible_host=127.0.0.1 ansible_port=%s ansible_user=%s dir=%s ansible_ssh_common_args='-o ControlPath=/tmp/%s-a%d'\n",
			n, r.port, r.user, r.path(fmt.Sprintf("ansible-%d", n)), filepath.Base(r.dir), n)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "- hosts: web\n  gather_facts: false\n  tasks:\n")
	task := func(name, text string) { fmt.Fprintf(&b, "    - name: %s\n%s", name, text) }
	task("archive", "      ansible.builtin.shell: 'a={{ dir }}/archives/$(date +%s%N); mkdir -p {{ dir }}/live $a && rsync -Aa --delete {{ dir }}/live/ $a/ && ls -dt {{ dir }}/archives/* | tail -n +4 | xargs -r rm -rf'\n")
	task("sync", "      ansible.builtin.git: {repo: '"+r.bare+"', dest: '{{ dir }}/live', version: master, force: true}\n")
	owner := "      ansible.builtin.command: {cmd: \"chown -R {{ ansible_user }} {{ dir }}/live\"}\n"
	task("owner", owner)
	for _, s := range steps() {
		task("step", fmt.Sprintf("      ansible.builtin.shell: {cmd: %q, chdir: '{{ dir }}/live'}\n", s))
	}
	task("owner again", owner)
	config := fmt.Sprintf("[defaults]\nforks=%d\ninventory=%s\nhost_key_checking=False\nprivate_key_file=%s\nretry_files_enabled=False\ninterpreter_python=/usr/bin/python3\n[ssh_connection]\npipelining=True\nssh_args=-F none -o ControlMaster=auto -o ControlPersist=300 -o IdentitiesOnly=yes -o LogLevel=ERROR -o UserKnownHostsFile=%s\n",
		r.nodes, r.path("ansible/hosts"), r.path("key"), r.path("known_hosts"))
	return errors.Join(writeFile(r.path("ansible/hosts"), hosts.String(), 0o644), writeFile(r.path("ansible/deploy.yml"), b.String(), 0o644), writeFile(r.path("ansible/ansible.cfg"), config, 0o644))
}

func (r *rolloutLab) ansible() error {
	return r.sh(r.path("ansible"), "ansible-playbook", "deploy.yml")
}

// stopAgents ends what was started on the nodes.
func (r *rolloutLab) stopAgents() {
	for n := range r.nodes {
		text, err := os.ReadFile(r.path(fmt.Sprintf("srv-%d/.corpus-git/addr.json", n)))
		var a struct{ PID int }
		if err == nil && json.Unmarshal(text, &a) == nil && a.PID > 1 {
			_ = syscall.Kill(a.PID, syscall.SIGTERM)
		}
		for _, kind := range []string{"l", "a"} {
			control := fmt.Sprintf("%s-%s%d", filepath.Base(r.dir), kind, n)
			_ = r.sh(r.dir, "sh", "-c", r.sshWords(control)+" -O exit "+r.user+"@127.0.0.1")
		}
	}
}
