package app

import (
	"bytes"
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

// The parts of a remote deployment, as --skip and --only name them.
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
}

func (c *command) remoteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "remote", Short: "Deploy on another machine over ssh, with nothing installed there"}
	cmd.AddCommand(c.remoteDeployCommand())
	return cmd
}

func (c *command) remoteDeployCommand() *cobra.Command {
	r := &remoting{command: c, reconnect: 5 * time.Minute}
	cmd := &cobra.Command{
		Use: "deploy HOST PROJECT [KEY=VALUE...]", Short: "Deploy what is live here on another machine",
		Long: "Copies this program there, once for each version, and has it deploy exactly the commits that both branches of PROJECT hold here: the\n" +
			"same pipeline, with an archive, checks and a rollback of its own. The output and the exit status are that deployment's.\n" +
			"HOST is what ssh takes: [user@]host, or a name of ssh_config. Host keys must be known, and the login must need no password; the agent is not\n" +
			"forwarded. A connection that is lost is made again, and the deployment is followed on: it runs once.\n\n" +
			"The parts are init (the program, an agent that runs it, the key that signs), sync (the commits) and deploy; --only and --skip choose.\n" +
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
	f.StringVar(&r.node.Root, "remote-root", "", "the root there (default: /srv for root, srv in the home of others)")
	f.StringVar(&r.program, "program", "", "the corpus-git to copy (default: this one)")
	f.StringSliceVar(&r.only, "only", nil, "only these parts: init, sync, deploy")
	f.StringSliceVar(&r.skip, "skip", nil, "all parts but these")
	f.StringVar(&r.task, "task", "", "run this `TASK` of what is live there, in place of a deployment")
	f.DurationVar(&r.reconnect, "reconnect", r.reconnect, "how long a lost connection is tried again")
	f.BoolVarP(&r.verbose, "verbose", "v", false, "show every state and every line that a command prints")
	return cmd
}

// parts are those that are to be done.
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

// commandThere is the command line with which people run commands on the other machine.
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

// deploy does the parts, and gives the exit status of the deployment.
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
		what := "corpus-git is there"
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
		Project: r.name, StoreOnly: !do[remoteDeploy], Patience: r.reconnect,
		Send: func(ctx context.Context, have []project.Commit, w io.Writer) error {
			var size remote.Counter
			size.W = w
			if !do[remoteSync] {
				own, err := r.tips(ctx) // what is here is taken to be there: nothing is sent, and what is lacking there is said there
				if err != nil {
					return err
				}
				have = append(have, own...)
			}
			m, err := r.send(ctx, have, &size)
			if err == nil && !told && do[remoteSync] && r.task == "" {
				told = true
				r.line(remoteSync, begun, "%s", fmt.Sprintf("%s, pillar %s: %s, %s", m.Release.Code.Short(), m.Release.Pillar.Short(), humanize.Plural(m.Objects(), "object"), humanize.Bytes(size.N)))
			}
			return err
		},
		Show: func(e event.Event) error {
			_, err := console.Show(e)
			return err
		},
		Lost: func(err error, again time.Duration) {
			fmt.Fprintf(r.Stderr, "note: %v; connecting again in %s\n", err, again)
		},
	})
	return f.Exit, err
}

// tips are the commits that this machine has of the project.
func (r *remoting) tips(ctx context.Context) ([]project.Commit, error) {
	text, err := r.verb(ctx, nil, "bundle", "tips", "--", string(r.name))
	if err != nil {
		return nil, err
	}
	var t bundle.Tips
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return nil, err
	}
	return append(t.Code, t.Pillar...), nil
}

// send writes the bundle.
func (r *remoting) send(ctx context.Context, have []project.Commit, w io.Writer) (bundle.Manifest, error) {
	var m bundle.Manifest
	argv := []string{"bundle", "create", "--" + verbs.ExportFlag + "=-", "--id=" + string(r.id)}
	if r.task != "" {
		argv = append(argv, "--task="+r.task)
	}
	if len(have) > 0 {
		names := make([]string, len(have))
		for i, c := range have {
			names[i] = string(c)
		}
		argv = append(argv, "--have="+strings.Join(names, ","))
	}
	// What is written is read along, for its manifest.
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
	_, err := r.verb(ctx, io.MultiWriter(w, pw), append(append(argv, "--", string(r.name)), r.settings...)...)
	_ = pw.Close()
	m = <-got
	return m, err
}

// verb runs a verb on this machine: by the server that owns the state, or else here. Its output is the result where out is nil.
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

// hooks runs the executables of a folder of this machine's hooks, one behind the other; the first that fails ends it.
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
			return fault.New(fault.Failed, point, "the hook %s ended with status %d", path, st.Exit)
		}
	}
	return nil
}

// hookFiles are the executables of a folder, in the byte order of their names.
func hookFiles(dir string) ([]string, error) {
	names, err := hooks.Executables(vfs.Files(dir), ".")
	for i, n := range names {
		names[i] = filepath.Join(dir, n)
	}
	return names, err
}
