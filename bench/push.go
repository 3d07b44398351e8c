package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// pushSize is how large the project is and how often it is pushed: CORPUS_GIT_BENCH_PUSH=<files>x<pushes>.
const pushSize = "5000x15"

// benchPush pushes a project of 5,000 files and 3 steps for the first time, and then changes of one file of it: to corpus-git, and to OpenSSH sshd with git receive-pack and a post-receive script that does the same
// work by rsync, checkout, chown and the same commands.
func benchPush(l *lab) error {
	pushFiles, pushRuns, err := filesAndPushes("CORPUS_GIT_BENCH_PUSH", pushSize, 100, 1)
	if err != nil {
		return err
	}
	firstRuns := max(1, pushRuns/3)
	for _, p := range []string{"git", "ssh", "ssh-keygen", "sshd", "rsync"} {
		if _, err := lookup(p); err != nil {
			return fmt.Errorf("%w: install git, openssh-client, openssh-server and rsync", err)
		}
	}
	if err := l.buildWithKey(); err != nil {
		return err
	}
	work := l.path("work")
	if err := makeProject(work, pushFiles); err != nil {
		return err
	}
	if err := l.commitAll(work); err != nil {
		return err
	}
	ours, stop, err := l.serveCorpus()
	if err != nil {
		return err
	}
	defer stop()
	peer, stopPeer, err := l.servePeer()
	if err != nil {
		return err
	}
	defer stopPeer()
	push := func(url string) error { return l.sh(work, "git", "push", "-q", url, "HEAD:master") }
	change := func(i int) error {
		text := fmt.Sprintf("<h1>version %d of %s</h1>\n", i, time.Now())
		if err := os.WriteFile(filepath.Join(work, "index.html"), []byte(text), 0o644); err != nil {
			return err
		}
		return l.sh(work, "git", "commit", "-qam", "change")
	}
	fmt.Printf("-- first push of %d files, load %s\n", pushFiles, load())
	project, bare := "", ""
	fresh := func(i int) error {
		project, bare = fmt.Sprintf("first%d", i), fmt.Sprintf("first%d.git", i)
		if err := l.createProject(project); err != nil {
			return err
		}
		if err := l.createPeer(l.path("peer"), bare, l.path("peer/"+project)); err != nil {
			return err
		}
		return syncFS(l.dir)
	}
	if _, err := compare(firstRuns, fresh, "corpus-git", func() error { return push(strings.TrimSuffix(ours, "app/project.git") + project + "/project.git") },
		"sshd + git receive-pack + post-receive", func() error { return push(strings.TrimSuffix(peer, "app.git") + bare) }); err != nil {
		return err
	}
	if err := sameTrees(l.path("srv/projects/first1/project/static"), l.path("peer/first1/project/static")); err != nil {
		return err
	}
	fmt.Printf("-- one changed file of %d, load %s\n", pushFiles, load())
	if err := errors.Join(push(ours), push(peer)); err != nil {
		return err
	}
	_, err = compare(pushRuns, change, "corpus-git", func() error { return push(ours) },
		"sshd + git receive-pack + post-receive", func() error { return push(peer) })
	if err != nil {
		return err
	}
	for _, f := range []string{l.path("srv/projects/app/project/index.html"), l.path("peer/project/index.html")} {
		want, err := os.ReadFile(filepath.Join(work, "index.html"))
		if err != nil {
			return err
		}
		got, err := os.ReadFile(f)
		if err != nil || !bytes.Equal(want, got) {
			return fmt.Errorf("%s is not what was pushed (%v)", f, err)
		}
	}
	return nil
}

// filesAndPushes reads the size of a benchmark, <files>x<pushes>, from the environment.
func filesAndPushes(key, usual string, minFiles, minPushes int) (files, pushes int, err error) {
	size := cmp.Or(os.Getenv(key), usual)
	if n, err := fmt.Sscanf(size, "%dx%d", &files, &pushes); n != 2 || err != nil || files < minFiles || pushes < minPushes {
		return 0, 0, fmt.Errorf("%s=%s is not <files>x<pushes>, such as %s", key, size, usual)
	}
	return files, pushes, nil
}

// commitAll makes a repository of a folder, with one commit in one pack.
func (l *lab) commitAll(work string) error {
	for _, args := range [][]string{{"init", "-q", "-b", "master"}, {"add", "-A"}, {"commit", "-qm", "first"}, {"repack", "-qad"}} {
		if err := l.sh(work, "git", args...); err != nil {
			return err
		}
	}
	return nil
}

func lookup(p string) (string, error) {
	if path, err := exec.LookPath(p); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + p)
}

// steps returns the commands that both sides run.
func steps() []string {
	return []string{"mkdir -p build", "cat index.html static/d1/*.txt | sha256sum > build/sum", "touch build/reload"}
}

func makeProject(dir string, files int) error {
	for i := range files {
		p := filepath.Join(dir, "static", fmt.Sprintf("d%d", i%max(50, files/20)), fmt.Sprintf("f%d.txt", i))
		if err := writeFile(p, fmt.Sprintf("file %d\n%s", i, strings.Repeat("some words of text\n", i%40)), 0o644); err != nil {
			return err
		}
	}
	for i, s := range steps() {
		text := fmt.Sprintf("step:\n  cmd.run:\n    - name: %s\n    - cwd: {{opts.ms_project.project_root}}\n", s)
		if err := writeFile(filepath.Join(dir, ".salt", fmt.Sprintf("%d00_step.sls", i+1)), text, 0o644); err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(dir, "index.html"), "<h1>first</h1>\n", 0o644)
}

func writeFile(path, text string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), mode)
}

func (l *lab) path(p string) string { return filepath.Join(l.dir, p) }

func (l *lab) env() []string {
	return append(os.Environ(), "HOME="+l.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=b", "GIT_AUTHOR_EMAIL=b@x", "GIT_COMMITTER_NAME=b", "GIT_COMMITTER_EMAIL=b@x",
		"CORPUS_GIT_ROOT="+l.path("srv"), "CORPUS_GIT_ACCOUNTS=off",
		"GIT_SSH_COMMAND=ssh -F none -i "+l.path("key")+" -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR -o UserKnownHostsFile="+l.path("known_hosts"))
}

func (l *lab) sh(dir, name string, args ...string) error {
	path, err := lookup(name)
	if err != nil {
		path = name
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = dir, l.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// serveCorpus starts the server with one project and gives its URL.
func (l *lab) serveCorpus() (url string, stop func(), err error) {
	if err := l.sh(l.dir, l.bin, "key", "add", "bench", "--file", l.path("key.pub")); err != nil {
		return "", nil, err
	}
	if err := l.createProject("app"); err != nil {
		return "", nil, err
	}
	base, _, stop, err := l.serveBin()
	return base + "app/project.git", stop, err
}

// createProject makes a project that the key may push to.
func (l *lab) createProject(name string) error {
	err := l.sh(l.dir, l.bin, "project", "create", name)
	if err == nil {
		err = l.sh(l.dir, l.bin, "access", "grant", name, "bench", "deploy")
	}
	return err
}

// serveBin starts the server and gives the beginning of its URLs, up to a project's name.
func (l *lab) serveBin(args ...string) (base string, pid int, stop func(), err error) {
	cmd := exec.Command(l.bin, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Dir, cmd.Env = l.dir, l.env()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", 0, nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	ready := regexp.MustCompile(`listening on (127\.0\.0\.1:\d+) \(ssh\)`)
	s := bufio.NewScanner(out)
	for s.Scan() {
		if m := ready.FindStringSubmatch(s.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return "ssh://deploy@" + m[1] + "/", cmd.Process.Pid, stop, nil
		}
	}
	stop()
	return "", 0, nil, fmt.Errorf("the server did not start")
}

// servePeer starts an sshd of its own and gives the URL of a repository whose post-receive script deploys.
func (l *lab) servePeer() (url string, stop func(), err error) {
	dir := l.path("peer")
	if err := l.createPeer(dir, "app.git", dir); err != nil {
		return "", nil, err
	}
	base, _, stop, err := l.serveSSHD(dir)
	return base + dir + "/app.git", stop, err
}

// createPeer makes a repository in dir that deploys to the folder to.
func (l *lab) createPeer(dir, name, to string) error {
	bare := filepath.Join(dir, name)
	if err := l.sh(l.dir, "git", "init", "-q", "--bare", "-b", "master", bare); err != nil {
		return err
	}
	return writeFile(bare+"/hooks/post-receive", deployScript(bare, to, steps()), 0o755)
}

// deployScript returns a post-receive script that deploys bare to dir/project.
func deployScript(bare, dir string, steps []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\nset -e\nunset GIT_DIR GIT_QUARANTINE_PATH\nlive=%s/project\narchive=%s/archives/$(date +%%Y-%%m-%%d_%%H_%%M-%%S)_$$\nmkdir -p $live $archive\n", dir, dir)
	fmt.Fprintf(&b, "rsync -Aa --delete $live/ $archive/\nls -dt %s/archives/* | tail -n +4 | xargs -r rm -rf\n", dir)
	fmt.Fprintf(&b, "git --git-dir=%s --work-tree=$live checkout -q -f master\n", bare)
	fmt.Fprintf(&b, "chown -R $(id -u):$(id -g) $live\ncd $live\n")
	for _, s := range steps {
		fmt.Fprintf(&b, "sh -c '%s'\n", s)
	}
	b.WriteString("chown -R $(id -u):$(id -g) $live\n")
	return b.String()
}

// serveSSHD starts an sshd of its own, with its files in dir, and gives the beginning of its URLs, up to a repository's path.
func (l *lab) serveSSHD(dir string) (base string, pid int, stop func(), err error) {
	if err := l.sh(l.dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", dir+"/host"); err != nil {
		return "", 0, nil, err
	}
	pub, err := os.ReadFile(l.path("key.pub"))
	if err != nil {
		return "", 0, nil, err
	}
	if err := writeFile(dir+"/authorized_keys", string(pub), 0o600); err != nil {
		return "", 0, nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", 0, nil, err
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	host, port, _ := strings.Cut(addr, ":")
	conf := fmt.Sprintf("ListenAddress %s:%s\nHostKey %s/host\nAuthorizedKeysFile %s/authorized_keys\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\nPrintMotd no\nSetEnv CORPUS_GIT_ACCOUNTS=off XDG_CACHE_HOME=%s/cache HOME=%s/home\nMaxStartups 1000\nPerSourceMaxStartups none\n", host, port, dir, dir, dir, dir)
	if err := errors.Join(writeFile(dir+"/sshd_config", conf, 0o600), os.MkdirAll(dir+"/home", 0o755)); err != nil {
		return "", 0, nil, err
	}
	madeRun := os.Geteuid() == 0 && os.Mkdir("/run/sshd", 0o755) == nil // sshd wants it when it is root
	sshd, err := lookup("sshd")
	if err != nil {
		return "", 0, nil, err
	}
	cmd := exec.Command(sshd, "-D", "-e", "-f", dir+"/sshd_config")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		return "", 0, nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if madeRun {
			_ = os.Remove("/run/sshd")
		}
	}
	for range 200 {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			me, err := user.Current()
			if err != nil {
				stop()
				return "", 0, nil, err
			}
			return fmt.Sprintf("ssh://%s@%s", me.Username, addr), cmd.Process.Pid, stop, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	return "", 0, nil, fmt.Errorf("sshd did not start: %s", log.String())
}
