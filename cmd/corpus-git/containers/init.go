package containers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/container"
	"corpus-git/container/bare"
	"corpus-git/container/credentials"
	"corpus-git/container/names"
	"corpus-git/container/nspawn"
	"corpus-git/container/prepare"
	"corpus-git/container/rootfs"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// initialising is one run of node init.
type initialising struct {
	*containers
	made        container.Container
	limits      settings
	net, bridge string
	target      string
	ssh         nodes.SSHFlags
	from, hosts string
	dns         nameServer
	open        []string
	env, deploy []string
	projects    []string
	program     string
}

// InitCommand is the command node init.
func InitCommand(s Surroundings) *cobra.Command {
	n := &initialising{containers: &containers{Surroundings: s}, made: container.Container{Driver: nspawn.Name}}
	cmd := &cobra.Command{
		Use: "init NAME", Short: "Make a node of a container of this machine, or of a machine that is reached by ssh",
		Long: "Makes the container NAME, unless there is one, and prepares it step by step: " + strings.Join(prepare.Names(), ", ") + ". With --ssh it prepares a machine\n" +
			"that exists; the login is root's, and stays the operator's. What was interrupted, at whichever step, goes on with the same command; --from does a step and those after it again.\n" +
			"The server logs in to the node with a key of its own, which is kept encrypted (docs/guide/containers.md).",
		Example: "  corpus-git node init web1 --open 80,443\n  corpus-git node init db1 --ssh root@db1.example.org --open 5432",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return n.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&n.target, "ssh", "", "destination of ssh for a machine that exists: root@HOST")
	n.ssh.Register(f)
	driverFlag(cmd, &n.made)
	f.StringVar(&n.made.Suite, "suite", rootfs.DefaultSuite, "release of Debian of a new container")
	f.StringVar(&n.made.Mirror, "mirror", "", "`URL` of the mirror that its packages come from (default: debootstrap's)")
	f.StringSliceVar(&n.made.Packages, "package", nil, "a package to install in it beside the base system; may be repeated")
	f.StringVar(&n.net, "network", "", "as of container create")
	f.StringVar(&n.bridge, "bridge", "", "as of container create")
	n.limits.register(cmd)
	f.StringVar(&n.from, "from", "", "do this step again, and those after it")
	f.StringVar(&n.hosts, "hosts", "/etc/hosts", "`FILE` of this machine in which the name is written; empty for none")
	n.dns.register(cmd)
	f.StringSliceVar(&n.open, "open", nil, "ports of the machine that others may reach, beside ssh")
	f.StringArrayVar(&n.env, "env", nil, "a variable KEY=VALUE of /etc/environment there; may be repeated")
	f.StringSliceVar(&n.projects, "project", nil, "projects that run on the node from their next deployment on, without a nodes.yaml")
	f.StringSliceVar(&n.deploy, "deploy", nil, "projects to deploy at the end: those of --project, or whose pillars name the node in nodes.yaml")
	f.StringVar(&n.program, "program", "", "the corpus-git that runs there (default: this one)")
	return cmd
}

// plan is what the flags say, but for the container.
func (n *initialising) plan() (*prepare.Plan, error) {
	p := &prepare.Plan{Hosts: n.hosts, Env: n.env, Program: n.program, Projects: n.projects, Deploy: n.deploy, Out: n.Out, Now: time.Now, Verb: n.Verb}
	for _, text := range n.open {
		number, err := port(text)
		if err != nil {
			return nil, err
		}
		p.Open = append(p.Open, number)
	}
	for _, e := range n.env {
		key, _, ok := strings.Cut(e, "=")
		if !ok || key == "" || strings.ContainsAny(e, "\n\x00") || strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return nil, fault.New(fault.Usage, "", "--env %q is not KEY=VALUE on one line", e)
		}
	}
	var err error
	if p.DNS, err = n.dns.open(); err != nil {
		return nil, err
	}
	if p.Program == "" {
		p.Program, err = os.Executable()
	}
	return p, err
}

func (n *initialising) run(cmd *cobra.Command, name string) error {
	p, err := n.plan()
	if err != nil {
		return err
	}
	limit, err := n.limits.limits(cmd)
	if err == nil {
		err = n.ssh.Absolute()
	}
	if err == nil {
		err = checkDriver(n.made.Driver)
	}
	if err != nil {
		return err
	}
	limit(&n.made.Limits)
	return n.with(func(ctx context.Context, mgr container.Manager) error {
		c, err := n.container(ctx, mgr, name, cmd.Flags().Changed, limit)
		if err != nil {
			return err
		}
		unlock, err := mgr.Store.Lock(name)
		if err != nil {
			return err
		}
		defer unlock()
		p.Container, p.Driver, err = mgr.Get(c.Name)
		if err != nil {
			return err
		}
		p.Store, p.Keys = mgr.Store, Keys(mgr.Store.Dir)
		p.Agent = (&credentials.Agent{Socket: AgentSocket(mgr.Store.Dir)}).Option()
		if err := p.Run(ctx, n.from); err != nil {
			return err
		}
		fmt.Fprintf(n.Out, "%s is a node\n", name)
		return nil
	})
}

// container gives the container that is to be a node, running; it is made where there is none, or was half made.
// typed reports whether a flag was given, and limit sets the limits that were.
func (n *initialising) container(ctx context.Context, mgr container.Manager, name string, typed func(string) bool, limit func(*container.Limits)) (container.Container, error) {
	c, err := mgr.Store.Get(name)
	if err == nil && c.Ready {
		if other := c.Differences(n.wanted(c, typed, limit)); len(other) > 0 {
			return c, fault.New(fault.Refused, "", "there is a container %s already, with other settings: %s", name, strings.Join(other, ", ")).
				WithHint("corpus-git container show %s  shows them; corpus-git container resize %s  changes limits", name, name)
		}
		if n.target != "" && n.target != c.Target {
			return c, fault.New(fault.Refused, "", "there is another container %s", name).WithHint("corpus-git container show %s", name)
		}
		if err := n.reach(mgr, c); err != nil {
			return c, err
		}
		return c, mgr.Start(ctx, name)
	}
	if err != nil && fault.KindOf(err) != fault.Refused {
		return c, err
	}
	var document bytes.Buffer
	// Without a server nothing is known of its nodes; the step that adds the node says so.
	if exit, err := n.Verb(ctx, []string{"node", "show", name, "--json"}, &document, io.Discard); err == nil && exit == 0 && !prepare.Ours(mgr.Store, name, document.Bytes()) {
		return c, prepare.Another(name)
	}
	n.made.Name, n.made.Created = name, time.Now().UTC()
	if n.target != "" {
		n.made.Driver, n.made.Target, n.made.Options, n.made.Suite = bare.Name, n.target, n.ssh.Options(), ""
		if strings.HasPrefix(n.target, "-") {
			return c, fault.New(fault.Usage, "", "%q is not a host", n.target)
		}
	} else if err := errors.Join(chooseNetwork(mgr, n.net, n.bridge), (rootfs.System{Suite: n.made.Suite, Mirror: n.made.Mirror, Packages: n.made.Packages}).Check()); err != nil {
		return c, err
	}
	return mgr.Create(ctx, n.made)
}

// wanted returns a container with the settings that were typed, and otherwise its own.
func (n *initialising) wanted(c container.Container, typed func(string) bool, limit func(*container.Limits)) container.Container {
	for _, f := range []struct {
		flag string
		set  func()
	}{
		{"driver", func() { c.Driver = n.made.Driver }}, {"suite", func() { c.Suite = n.made.Suite }}, {"mirror", func() { c.Mirror = n.made.Mirror }},
		{"package", func() { c.Packages = n.made.Packages }},
	} {
		if typed(f.flag) {
			f.set()
		}
	}
	limit(&c.Limits)
	return c
}

// reach records the options of ssh that were typed, in place of those of an earlier run.
func (n *initialising) reach(mgr container.Manager, c container.Container) error {
	options := n.ssh.Options()
	if n.target == "" || len(options) == 0 || slices.Equal(options, c.Options) {
		return nil
	}
	unlock, err := mgr.Store.Lock(c.Name)
	if err != nil {
		return err
	}
	defer unlock()
	c.Options = options
	return mgr.Store.Put(c)
}

// Keys are the keys of the nodes that were prepared from a folder of containers.
func Keys(dir string) credentials.Store {
	return credentials.Store{KeyFile: filepath.Join(linked(dir), "credentials.key"), Machines: filepath.Join(dir, "machines"), FS: vfs.OS{}}
}

// AgentSocket is where the server signs with them.
func AgentSocket(dir string) string { return filepath.Join(dir, "agent.sock") }

// forget takes away what node init told others of a machine: its node, and its name in the hosts file and on a name server, nil for none.
func (m *containers) forget(ctx context.Context, mgr container.Manager, name, hosts string, server *names.DNS) error {
	if !prepare.Begun(mgr.Store, name) {
		return nil
	}
	var said strings.Builder
	var document bytes.Buffer
	exit, err := m.Verb(ctx, []string{"node", "show", name, "--json"}, &document, &said)
	if refused := fault.Refused.ExitCode(); err == nil && exit != 0 && exit != refused { // refused: there is no such node
		err = prepare.VerbError(exit, said.String())
	}
	if err != nil {
		return err
	}
	if exit == 0 && !prepare.Ours(mgr.Store, name, document.Bytes()) {
		fmt.Fprintf(m.Out, "the node %s of the server is another machine, and stays\n", name)
	} else if exit == 0 {
		exit, err := m.Verb(ctx, []string{"node", "remove", name, "--yes"}, io.Discard, &said)
		if err == nil && exit != 0 {
			err = prepare.VerbError(exit, said.String())
		}
		if err != nil {
			return err
		}
	}
	if server != nil {
		if err := server.Remove(ctx, name); err != nil {
			return err
		}
	}
	if hosts == "" {
		return nil
	}
	_, err = names.SetHost(vfs.OS{}, hosts, name, netip.Addr{})
	return err
}
