package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/bundle"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/hooks"
	"corpus-git/internal/event"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/remote"
)

// The parts of a remote deployment, for --skip and --only.
const (
	remoteInit   = "init"
	remoteSync   = "sync"
	remoteDeploy = "deploy"
)

// remoting is one run of remote deploy.
type remoting struct {
	*command
	host       remote.Host
	node       remote.Node
	ssh        nodes.SSHFlags
	program    string
	only, skip []string
	task       string
	verbose    bool
	reconnect  time.Duration

	name     project.Name
	id       project.ID
	settings []string
	// shown: the deployment has begun there.
	shown bool
}

func (c *command) remoteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "remote", Short: "Deploy to another machine over ssh"}
	cmd.AddCommand(c.remoteDeployCommand())
	return cmd
}

func (c *command) remoteDeployCommand() *cobra.Command {
	r := &remoting{command: c, reconnect: 5 * time.Minute}
	cmd := &cobra.Command{
		Use: "deploy HOST PROJECT [KEY=VALUE...]", Short: "Deploy the live release to another machine",
		Long: "Copies this program to HOST, once for each version, and deploys there the live commits of PROJECT on this machine, with the\n" +
			"same pipeline: archive, checks and rollback. The output and the exit status are those of that deployment.\n" +
			"HOST is an ssh destination: [user@]host, or a name in ssh_config. Its host key must be known, and the login must work without a password; the agent is not\n" +
			"forwarded. After a lost connection the command reconnects and continues to follow the deployment, which runs once.\n\n" +
			"The parts are init (the program, its agent, the signing key), sync (the commits) and deploy; --only and --skip select them.\n" +
			"Hooks in pre-remote.d and post-remote.d of this machine run before and after.",
		Example: "  corpus-git remote deploy root@web1 app\n  corpus-git remote deploy -J gate web1 app port=8080\n  corpus-git remote deploy web1 app --task backup",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fault.New(fault.Usage, "", "remote deploy needs HOST and PROJECT").WithHint("usage:  %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			ctx, stop := untilInterrupted()
			defer stop()
			return r.run(ctx, args[0], args[1], args[2:])
		},
	}
	f := cmd.Flags()
	r.ssh.Register(f)
	f.StringVar(&r.node.Root, "remote-root", "", "the root directory there (default: /srv for root, otherwise ~/srv)")
	f.StringVar(&r.program, "program", "", "the corpus-git to copy (default: this one)")
	f.StringSliceVar(&r.only, "only", nil, "run only these parts: init, sync, deploy")
	f.StringSliceVar(&r.skip, "skip", nil, "skip these parts")
	f.StringVar(&r.task, "task", "", "run this `TASK` of the live release there instead of deploying")
	f.DurationVar(&r.reconnect, "reconnect", r.reconnect, "how long to retry a lost connection")
	f.BoolVarP(&r.verbose, "verbose", "v", false, "show every state and all output of commands")
	return cmd
}

// parts returns the selected parts.
func (r *remoting) parts() (map[string]bool, error) {
	all := []string{remoteInit, remoteSync, remoteDeploy}
	for _, p := range slices.Concat(r.only, r.skip) {
		if !slices.Contains(all, p) {
			return nil, fault.New(fault.Usage, "remote deploy", "%q is not a part of a remote deployment", p).WithHint("the parts are: %s", strings.Join(all, ", "))
		}
	}
	do := map[string]bool{}
	for _, p := range all {
		do[p] = (len(r.only) == 0 || slices.Contains(r.only, p)) && !slices.Contains(r.skip, p)
	}
	switch {
	case !do[remoteInit] && !do[remoteSync] && !do[remoteDeploy]:
		return nil, fault.New(fault.Usage, "remote deploy", "nothing is left to do: every part is skipped").WithHint("the parts are: %s", strings.Join(all, ", "))
	case r.task != "" && !do[remoteDeploy]:
		return nil, fault.New(fault.Usage, "remote deploy", "--task needs the part %s, which is skipped", remoteDeploy)
	}
	return do, nil
}

func (r *remoting) run(ctx context.Context, host, name string, set []string) (err error) {
	do, err := r.parts()
	if err != nil {
		return err
	}
	if r.name, err = project.ParseName(name); err != nil {
		return err
	}
	cfg, err := r.stateSettings().load()
	if err != nil {
		return err
	}
	r.settings, r.id = set, project.NewID()
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	r.host = remote.Host{Target: host, Dir: dir, Options: r.ssh.Options(), Exec: execx.OS{}, Env: r.Environment.Env}
	r.node.Host = &r.host
	defer func() {
		if cerr := errors.Join(r.node.Close(), r.host.Close()); err == nil {
			err = cerr
		}
	}()
	if err := r.hooks(ctx, layout.State(cfg.StateDir), "pre-remote", ""); err != nil {
		return err
	}
	exit, err := r.deploy(ctx, do)
	state := "ok"
	if err != nil || exit != 0 {
		state = "failed"
	}
	r.exit = exit
	if herr := r.hooks(context.WithoutCancel(ctx), layout.State(cfg.StateDir), "post-remote", state); err == nil {
		err = herr
	}
	return err
}

// commandThere returns the command line for commands on the other machine.
func (r *remoting) commandThere() string {
	words := append([]string{"ssh"}, r.ssh.Options()...)
	words = append(words, r.host.Target, r.node.Program)
	if r.node.Root != "" {
		words = append(words, "--root="+r.node.Root)
	}
	return strings.Join(words, " ")
}

func (r *remoting) line(name string, begun time.Time, format string, args ...any) {
	took := humanize.Rough(time.Since(begun))
	fmt.Fprintf(r.Stdout, "-----> %-14s %5s  %s\n", name, took, fmt.Sprintf(format, args...))
}

// deploy runs the parts, and returns the exit status of the deployment.
func (r *remoting) deploy(ctx context.Context, do map[string]bool) (int, error) {
	begun := time.Now()
	program := r.program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return 0, err
		}
	}
	release, err := remote.ReadRelease(program)
	if err != nil {
		return 0, err
	}
	r.node.Release = release
	key := ""
	if do[remoteInit] {
		if key, err = r.verb(ctx, nil, "bundle", "key"); err != nil {
			return 0, err
		}
	}
	sent, err := r.node.Open(ctx, strings.TrimSpace(key))
	if err != nil {
		return 0, err
	}
	if do[remoteInit] {
		what := "corpus-git is installed"
		if sent > 0 {
			what = "copied corpus-git, " + humanize.Bytes(sent)
		}
		r.line(remoteInit, begun, "%s: %s", r.host.Target, what)
	}
	if !do[remoteSync] && !do[remoteDeploy] {
		return 0, nil
	}
	begun = time.Now()
	console := event.NewConsole(r.Stdout, event.Style{Colour: r.term.Colour, Verbose: r.verbose, Output: r.task != "", Commands: r.commandThere()})
	told := false
	f, err := r.node.Apply(ctx, remote.Apply{
		Project: r.name, StoreOnly: !do[remoteDeploy], ReconnectFor: r.reconnect,
		Send: func(ctx context.Context, there bundle.Tips, w io.Writer) error {
			var size remote.Counter
			size.W = w
			if !do[remoteSync] {
				own, err := r.tips(ctx) // what is here is taken to be there: nothing is sent, and what is lacking there is said there
				if err != nil {
					return err
				}
				there.Code, there.Pillar = append(there.Code, own.Code...), append(there.Pillar, own.Pillar...)
				there.Submodules, there.PillarSubmodules = own.Submodules, own.PillarSubmodules
				if there.Recipes != nil {
					there.Recipes = &bundle.Parts{All: true}
				}
			}
			m, err := r.send(ctx, there, &size)
			if err == nil && !told && do[remoteSync] && r.task == "" {
				told = true
				r.line(remoteSync, begun, "%s", fmt.Sprintf("%s, pillar %s: %s, %s", m.Release.Code.Short(), m.Release.Pillar.Short(), humanize.Plural(m.Objects(), "object"), humanize.Bytes(size.N)))
			}
			return err
		},
		Show: func(e event.Event) error {
			r.shown = true
			_, err := console.Show(e)
			return err
		},
		Lost: func(err error, again time.Duration) {
			fmt.Fprintf(r.Stderr, "note: %v; connecting again in %s\n", err, again)
		},
	})
	return f.Exit, r.explained(ctx, err, do)
}

// explained adds to an error what to do about a deployment that may continue there, or that lacks its commits.
func (r *remoting) explained(ctx context.Context, err error, do map[string]bool) error {
	if err == nil || !do[remoteDeploy] {
		return err
	}
	switch kind := fault.KindOf(err); {
	case errors.Is(err, remote.ErrNoResult), ctx.Err() != nil, r.shown && kind == fault.Busy:
		return fault.New(kind, "", "%w", err).WithHint("deployment %s may still run there; follow it:  %s logs -f %s %s", r.id.Short(), r.commandThere(), r.name, r.id.Short())
	case kind == fault.Refused && !do[remoteSync]:
		return fault.New(kind, "", "%w", err).WithHint("%s", cmp.Or(fault.HintOf(err), "the commits are sent by the part sync:  --only sync,deploy"))
	}
	return err
}

// tips returns the commits of the project that this machine has.
func (r *remoting) tips(ctx context.Context) (t bundle.Tips, err error) {
	text, err := r.verb(ctx, nil, "bundle", "tips", "--", string(r.name))
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal([]byte(text), &t)
}

// send writes the bundle.
func (r *remoting) send(ctx context.Context, there bundle.Tips, w io.Writer) (bundle.Manifest, error) {
	var m bundle.Manifest
	argv := []string{"bundle", "create", "--" + verbs.ExportFlag + "=-", "--id=" + string(r.id)}
	if r.task != "" {
		argv = append(argv, "--task="+r.task)
	}
	tips, err := json.Marshal(there)
	if err != nil {
		return m, err
	}
	argv = append(argv, "--tips="+string(tips))
	// The bundle is parsed while it is written, for its manifest.
	pr, pw := io.Pipe()
	got := make(chan bundle.Manifest, 1)
	go func() {
		b, err := bundle.Open(pr, bundle.Anybody)
		if err == nil {
			got <- b.Manifest
		}
		close(got)
		_, _ = io.Copy(io.Discard, pr)
	}()
	_, err = r.verb(ctx, io.MultiWriter(w, pw), append(append(argv, "--", string(r.name)), r.settings...)...)
	_ = pw.Close()
	m = <-got
	return m, err
}

// verb runs a verb on this machine: in the server that owns the state, or else here. If out is nil it returns the output.
func (r *remoting) verb(ctx context.Context, out io.Writer, argv ...string) (string, error) {
	cfg, err := r.stateSettings().load()
	if err != nil {
		return "", err
	}
	cmd, _, err := verbs.Describe().Find(argv)
	if err != nil {
		return "", err
	}
	var text, errw bytes.Buffer
	if out == nil {
		out = &text
	}
	quiet := *r.command
	code, err := quiet.runWith(ctx, cmd, cfg, argv, &streams{in: strings.NewReader(""), out: out}, &errw)
	if err == nil && code != 0 {
		err = remote.Reported("", code, errw.String())
	}
	return text.String(), err
}

// hooks runs the executables in a hook directory of this machine in sequence, until one fails.
func (r *remoting) hooks(ctx context.Context, state layout.State, point, result string) error {
	list, err := hookFiles(state.Hooks(point))
	if err != nil {
		return err
	}
	env := append(slices.Clone(r.Environment.Env), "CORPUS_POINT="+point, "CORPUS_HOST="+r.host.Target, "CORPUS_PROJECT="+string(r.name), "CORPUS_DEPLOYMENT="+string(r.id), "CORPUS_STATE="+result)
	for _, path := range list {
		st, err := execx.OS{}.Run(ctx, execx.Cmd{Argv: []string{path}, Dir: "/", Env: env, Stdout: r.Stdout, Stderr: r.Stderr})
		if err != nil {
			return err
		}
		if st.Exit != 0 {
			return fault.New(fault.Failed, point, "the hook %s exited with status %d", path, st.Exit)
		}
	}
	return nil
}

// hookFiles returns the executables in a directory, in byte order of their names.
func hookFiles(dir string) ([]string, error) {
	names, err := hooks.Executables(vfs.Files(dir), ".")
	for i, n := range names {
		names[i] = filepath.Join(dir, n)
	}
	return names, err
}
