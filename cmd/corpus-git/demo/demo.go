// Package demo demonstrates a server with the real git and ssh: it pushes a sample project that goes live, a change of its pillar, and a release that fails and
// is rolled back.
package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/sample"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/project/status"
)

// Project is the name of the demo's project.
const Project project.Name = "sample"

// Server is the server that the demo pushes to.
type Server struct {
	Root     layout.Root
	State    layout.State
	Port     int64
	Access   *access.Store
	Registry *registry.Registry
	Remotes  func(project.Name) status.Remotes
	// Verb runs a verb, which prints to Out, and returns its exit status.
	Verb func(ctx context.Context, argv ...string) int
	// By is the identity that creates the project and the key.
	By access.Identity
	// Dir receives the keys and the clones; Env is the environment of git.
	Dir string
	Env []string
	Out io.Writer
}

// Missing returns an error if a program that the demo needs is not installed.
func Missing() error {
	for _, p := range []string{"git", "ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(p); err != nil {
			return fault.New(fault.Refused, "demo", "%s is not installed", p).WithHint("the demo needs git and the OpenSSH client")
		}
	}
	return nil
}

// Show returns the demo. clone is the working copy that it leaves to its user.
func (s Server) Show(ctx context.Context) (clone string, err error) {
	d := &demo{Server: s}
	return d.clone(), d.show(ctx)
}

// demo is one run of it.
type demo struct {
	Server
	git    string
	gitEnv []string
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.Out, format+"\n", args...) }

// clone returns the working copy that the demo leaves to its user. It is created once and then belongs to the user.
func (d *demo) clone() string { return filepath.Join(d.Dir, "sample") }

// shown returns the demo's own working copy, recreated each time.
func (d *demo) shown(name string) string { return filepath.Join(d.Dir, "shown", name) }

// title starts a part.
func (d *demo) title(text string) {
	d.say("")
	d.say("%s", strings.Repeat("=", 4)+" "+text)
}

// show is the demo itself.
func (d *demo) show(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	remotes := d.Remotes(Project)
	code := d.shown("sample")
	page := filepath.Join(d.Root.Project(string(Project)).Live(), "public", "index.html")

	d.title("a push that goes live")
	if err := d.repository(ctx, code, remotes.Project, ifNew(copyFS(sample.Files()))); err != nil {
		return err
	}
	if _, err := d.push(ctx, code, "HEAD:master", true); err != nil {
		return err
	}
	first, err := d.page(page)
	if err != nil {
		return err
	}

	d.title("a push to the pillar: the same code with other values")
	pillar := d.shown("pillar")
	// The text differs in each demo, as the page of an earlier one may still be live.
	greeting := "The pillar said this at " + time.Now().Format("15:04:05.000") + ", and nobody touched the code."
	init := fmt.Sprintf("makina-projects.%s:\n  data:\n    greeting: %s\n", Project, greeting)
	if err := d.repository(ctx, pillar, remotes.Pillar, writeFile(layout.PillarFile, init)); err != nil {
		return err
	}
	if _, err := d.push(ctx, pillar, "HEAD:master", true); err != nil {
		return err
	}
	second, err := d.page(page)
	if err != nil {
		return err
	}
	if second == first || !strings.Contains(second, greeting) {
		return fault.New(fault.Failed, "demo", "the page does not show the pillar's value").
			WithHint("your own pushes may have removed it; to start over:  corpus-git demo --root DIR  with a new DIR")
	}

	d.title("a push that fails, and is rolled back")
	broken := "sample-breaks:\n  cmd.run:\n    - name: echo 'no such service' >&2; exit 3\n"
	if err := d.commit(ctx, code, "Break the deployment", writeFile(".salt/050_break.sls", broken)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(code, "src", "30_never.css"), []byte("p { color: red; }\n"), 0o644); err != nil { //nolint:gosec // a page's style
		return err
	}
	out, err := d.push(ctx, code, "HEAD:master", false)
	if err != nil {
		return err
	}
	if !strings.Contains(out, "[remote rejected]") {
		return fault.New(fault.Failed, "demo", "git did not report that the push was rejected")
	}
	third, err := d.page(page)
	if err != nil {
		return err
	}
	if third != second {
		return fault.New(fault.Failed, "demo", "the page is not what it was before the failed push")
	}
	if err := os.Remove(filepath.Join(code, "src", "30_never.css")); err != nil {
		return err
	}
	if err := d.commit(ctx, code, "Take the break out again", removeFile(".salt/050_break.sls")); err != nil {
		return err
	}

	d.title("corpus-git deployments " + string(Project))
	if exit := d.Verb(ctx, "deployments", string(Project)); exit != 0 {
		return fault.New(fault.Failed, "demo", "deployments ended with status %d", exit)
	}
	return d.handOver(ctx)
}

// prepare generates and adds the key, and creates the project.
func (d *demo) prepare(ctx context.Context) error {
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return err
	}
	key, known := filepath.Join(d.Dir, "id_ed25519"), filepath.Join(d.Dir, "known_hosts")
	if _, err := os.Stat(key); err != nil {
		if out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "demo", "-f", key).CombinedOutput(); err != nil { //nolint:gosec // our own path
			return fault.New(fault.Failed, "ssh-keygen", "%w: %s", err, out)
		}
	}
	pub, err := os.ReadFile(key + ".pub")
	if err != nil {
		return err
	}
	local := d.By
	parsed, _, err := access.ParsePublicKey(pub)
	if err != nil {
		return err
	}
	if _, ok, err := d.Access.FindByKey(ctx, parsed); err != nil {
		return err
	} else if !ok {
		if _, err := d.Access.AddKey(ctx, local, "demo", pub, false); err != nil {
			return err
		}
	}
	if _, err := d.Registry.Create(ctx, Project, registry.Settings{}); err != nil {
		return err
	}
	for _, r := range []project.Right{project.Deploy, project.Configure} {
		if err := d.Access.Grant(ctx, local, Project, "demo", r); err != nil {
			return err
		}
	}
	host, err := os.ReadFile(d.State.HostKey() + ".pub")
	if err != nil {
		return err
	}
	fields := strings.Fields(string(host))
	if len(fields) < 2 {
		return fault.New(fault.Internal, "demo", "the host key's public half cannot be read")
	}
	line := fmt.Sprintf("[127.0.0.1]:%d %s %s\n", d.Port, fields[0], fields[1])
	if err := os.WriteFile(known, []byte(line), 0o600); err != nil {
		return err
	}
	d.git = fmt.Sprintf("ssh -F /dev/null -i %s -o IdentitiesOnly=yes -o UserKnownHostsFile=%s -o StrictHostKeyChecking=yes -o BatchMode=yes", ShellQuote(key), ShellQuote(known))
	d.gitEnv = append(cleanEnv(d.Env), "GIT_SSH_COMMAND="+d.git, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=demo", "GIT_AUTHOR_EMAIL=demo@localhost", "GIT_COMMITTER_NAME=demo", "GIT_COMMITTER_EMAIL=demo@localhost")
	d.say("made a key, the project %s, and its two repositories", Project)
	return nil
}

// cleanEnv removes variables that would make git look elsewhere.
func cleanEnv(env []string) []string {
	var out []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "SSH_") {
			out = append(out, kv)
		}
	}
	return out
}

// ShellQuote quotes s for a shell.
func ShellQuote(s string) string {
	if !strings.ContainsAny(s, " '\"$`\\&;|<>()*?[]#~") {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(s) + `"`
}

// edit changes a working copy.
type edit func(dir string) error

func copyFS(from fs.FS) edit {
	return func(dir string) error {
		return fs.WalkDir(from, ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			to := filepath.Join(dir, filepath.FromSlash(path))
			if e.IsDir() {
				return os.MkdirAll(to, 0o755)
			}
			data, err := fs.ReadFile(from, path)
			if err != nil {
				return err
			}
			mode := os.FileMode(0o644)
			if strings.HasPrefix(path, "bin/") {
				mode = 0o755
			}
			return os.WriteFile(to, data, mode)
		})
	}
}

func writeFile(name, text string) edit {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) } //nolint:gosec // sources
}

func removeFile(name string) edit {
	return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
}

// ifNew is change, but where a demo was run before: what was pushed since stays.
func ifNew(change edit) edit {
	return func(dir string) error {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) > 1 { // .git is one
			return err
		}
		return change(dir)
	}
}

// repository makes a working copy with one more commit.
func (d *demo) repository(ctx context.Context, dir, remote string, first edit) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := d.quiet(ctx, dir, "init", "-q", "-b", "master"); err != nil {
		return err
	}
	if err := d.quiet(ctx, dir, "remote", "add", "prod", remote); err != nil {
		return err
	}
	// A demo that was run before has history there, and so may its user: go on from it, so that nothing is lost.
	if err := d.quiet(ctx, dir, "fetch", "-q", "prod"); err != nil {
		return err
	}
	if d.quiet(ctx, dir, "rev-parse", "-q", "--verify", "prod/master") == nil {
		if err := d.quiet(ctx, dir, "reset", "-q", "--hard", "prod/master"); err != nil {
			return err
		}
	}
	return d.commit(ctx, dir, "A page, and how it is deployed", first)
}

// handOver makes the working copies for the user, or brings those of an earlier demo up to date as far as that changes nothing of his.
func (d *demo) handOver(ctx context.Context) error {
	remotes := d.Remotes(Project)
	for _, c := range []struct{ dir, remote string }{{d.clone(), remotes.Project}, {filepath.Join(d.Dir, "pillar"), remotes.Pillar}} {
		if _, err := os.Lstat(c.dir); errors.Is(err, fs.ErrNotExist) {
			// The key and the known host of the demo, for a plain git push.
			if err := d.quiet(ctx, d.Dir, "clone", "-q", "-o", "prod", "-b", "master", "-c", "core.sshCommand="+d.git, c.remote, c.dir); err != nil {
				return err
			}
			continue
		}
		if _, err := os.Lstat(filepath.Join(c.dir, ".git")); err != nil {
			d.say("%s is left unchanged: it is not a working copy any more", c.dir)
			continue
		}
		// The port is another one each time.
		err := d.quiet(ctx, c.dir, "remote", "set-url", "prod", c.remote)
		if err == nil {
			err = d.quiet(ctx, c.dir, "config", "core.sshCommand", d.git)
		}
		if err == nil {
			err = d.quiet(ctx, c.dir, "fetch", "-q", "prod")
		}
		if err == nil {
			err = d.quiet(ctx, c.dir, "merge", "-q", "--ff-only", "prod/master")
		}
		if err != nil {
			d.say("%s is left unchanged, with your changes; to continue from the deployed commit:  git pull --rebase prod master", c.dir)
		}
	}
	return nil
}

func (d *demo) commit(ctx context.Context, dir, message string, change edit) error {
	if err := change(dir); err != nil {
		return err
	}
	if err := d.quiet(ctx, dir, "add", "-A"); err != nil {
		return err
	}
	return d.quiet(ctx, dir, "commit", "-q", "--allow-empty", "-m", message)
}

// quiet runs git, and says what it said only when it fails.
func (d *demo) quiet(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // our own words
	cmd.Dir, cmd.Env = dir, d.gitEnv
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fault.New(fault.Failed, "git "+args[0], "%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// push shows a push as its author sees it, and checks that it went as it should.
func (d *demo) push(ctx context.Context, dir, refspec string, good bool) (string, error) {
	d.say("$ git push prod %s", refspec)
	cmd := exec.CommandContext(ctx, "git", "push", "prod", refspec) //nolint:gosec // our own words
	var out bytes.Buffer
	both := io.MultiWriter(d.Out, &out)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, d.gitEnv, both, both
	err := cmd.Run()
	code := cmd.ProcessState.ExitCode()
	d.say("[exit status %d]", code)
	switch {
	case good && err != nil:
		return "", fault.New(fault.Failed, "demo", "the push should have gone live: %w", err)
	case !good && code != 1:
		return "", fault.New(fault.Failed, "demo", "the push should have ended with status 1, not %d", code)
	}
	return out.String(), nil
}

var tags = regexp.MustCompile(`(?s)<head>.*</head>|<[^>]*>`)

// page shows the text of the deployed page and returns it.
func (d *demo) page(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fault.New(fault.Failed, "demo", "the deployed page cannot be read: %w", err)
	}
	d.say("")
	d.say("the live page (%s):", path)
	for line := range strings.Lines(tags.ReplaceAllString(string(data), "")) {
		if line = strings.TrimSpace(line); line != "" {
			d.say("  | %s", line)
		}
	}
	return string(data), nil
}
