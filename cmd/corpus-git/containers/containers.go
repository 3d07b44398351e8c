// Package containers is the command container: containers and other machines that this one prepares as nodes.
//
// It owns the command's flags, what it prints and its exit codes; package container does the work. It needs no server, but root. A crash leaves what package
// container says.
package containers

import (
	"context"
	"fmt"
	"io"
	stdnet "net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/container"
	"corpus-git/container/bare"
	"corpus-git/container/lxc"
	"corpus-git/container/network"
	"corpus-git/container/nspawn"
	"corpus-git/container/rootfs"
	"corpus-git/container/system"
	"corpus-git/internal/diskfull"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/quantity"
	"corpus-git/internal/vfs"
	"corpus-git/project/status"
)

// Surroundings is what the command uses of the program.
type Surroundings struct {
	In       io.Reader
	Out, Err io.Writer
	// Env is the environment of the tools that make and run containers.
	Env []string
	// Dir is the folder of the containers where nobody names another one.
	Dir func() (string, error)
	// Document writes a --json document.
	Document func(w io.Writer, v any) error
	// Stop makes a context that ends when the process is to end.
	Stop func() (context.Context, context.CancelFunc)
	// Verb runs a command of the server's, and gives its exit status.
	Verb func(ctx context.Context, argv []string, out, errw io.Writer) (int, error)
	// Exit sets the exit status of the program, for one that a command in a container had.
	Exit func(int)
}

type containers struct {
	Surroundings
	dir    string
	asJSON bool
}

// Command returns the command container.
func Command(s Surroundings) *cobra.Command {
	m := &containers{Surroundings: s}
	cmd := &cobra.Command{
		Use: "container", Short: "Keep containers on this machine, to deploy in",
		Long: "Makes Debian containers with an address in a network of this machine, and starts, copies and removes them. They run on when the command ends.\n" +
			"It needs root, debootstrap and systemd-container, and no server (docs/guide/containers.md).",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cmd.PersistentFlags().StringVar(&m.dir, "dir", "", "folder of the containers (default: containers in state_dir)")
	cmd.AddCommand(m.create(), m.list(), m.show(), m.start(), m.stop(), m.exec(), m.resize(), m.storage(), m.snapshot(), m.publish(), m.unpublish(), m.destroy())
	return cmd
}

// cgroups is where systemd and others mount the control groups.
const cgroups = "/sys/fs/cgroup"

// patience is how long a service may take to be started before the port of another container is switched to it.
const patience = 10 * time.Second

// open returns what does the work. Only root may change anything.
func (m *containers) open(change bool) (container.Manager, error) {
	var none container.Manager
	if change && os.Geteuid() != 0 {
		return none, fault.New(fault.Refused, "", "containers need root").WithHint("run the command with sudo")
	}
	dir := m.dir
	var err error
	if dir == "" {
		dir, err = m.Dir()
	}
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return none, err
	}
	store := container.Store{Dir: dir, FS: vfs.OS{}}
	net := network.Store{Path: filepath.Join(linked(dir), "network.json"), FS: vfs.OS{}}
	maker := rootfs.Maker{Exec: execx.OS{}, FS: vfs.OS{}, Env: m.Env, Bases: store.Bases()}
	host := system.Host{Run: execx.OS{}, Store: store, Env: m.Env, CGroups: cgroups}
	of := func(k system.Kind) container.Driver {
		return system.Driver{Kind: k, Run: execx.OS{}, Store: store, Maker: maker, Network: net.Get, Env: m.Env, Resolv: resolv}
	}
	return container.Manager{
		Store: store, Network: net, Up: network.Network.Up, Down: network.Network.Down, Dial: (&stdnet.Dialer{}).DialContext, Patience: patience,
		Drivers: map[string]container.Driver{
			nspawn.Name: of(nspawn.Kind{Host: host}),
			lxc.Name:    of(lxc.Kind{Host: host}),
			bare.Name:   bare.Driver{Run: execx.OS{}, Env: m.Env},
		},
		Say: func(what string) { fmt.Fprintln(m.Out, what) },
	}, nil
}

// linked returns where a folder is that may be a symbolic link to one on another disk. What is written directly into it is made durable there; containers are called by the folder's
// own name.
func linked(dir string) string {
	if at, err := filepath.EvalSymlinks(dir); err == nil {
		return at
	}
	return dir // it is made later
}

// resolv returns the text of this machine's resolv.conf(5); of systemd-resolved's, where that serves names on the loopback interface only.
func resolv() string {
	var all strings.Builder
	for _, path := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		text, _ := os.ReadFile(path) // a machine without one asks nobody
		all.Write(text)
		if len(rootfs.Nameservers(all.String())) > 0 {
			break
		}
	}
	return all.String()
}

// with runs what changes something.
func (m *containers) with(do func(context.Context, container.Manager) error) error {
	mgr, err := m.open(true)
	if err != nil {
		return err
	}
	ctx, end := m.Stop()
	defer end()
	return diskfull.Explain(do(ctx, mgr))
}

// settings are the flags of what may be set of a container.
type settings struct {
	memory string
	cpus   float64
}

func (s *settings) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.memory, "memory", "", "how much memory it may use, such as 512M; 0 for no limit")
	cmd.Flags().Float64Var(&s.cpus, "cpus", 0, "how many processors it may use, such as 0.5; 0 for no limit")
}

// limits returns what changes the limits as the flags say.
func (s *settings) limits(cmd *cobra.Command) (func(*container.Limits), error) {
	var bytes int64
	if s.memory != "" && s.memory != "0" {
		var err error
		if bytes, err = quantity.ParseSize(s.memory); err != nil {
			return nil, fault.New(fault.Usage, "", "--memory %q: %w", s.memory, err)
		}
	}
	return func(l *container.Limits) {
		if cmd.Flags().Changed("memory") {
			l.Memory = bytes
		}
		if cmd.Flags().Changed("cpus") {
			l.CPUs = s.cpus
		}
	}, nil
}

func (m *containers) create() *cobra.Command {
	c := container.Container{Driver: nspawn.Name}
	var s settings
	var address, net, bridge string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a container, and start it",
		Long: "The base system is made by debootstrap once for each list of packages, which takes minutes, and copied after that. The container is called NAME, and has an\n" +
			"address in the network of the containers; other machines reach no port of it before it is published. A creation that was interrupted is continued by the same command.",
		Example: "  corpus-git container create web1\n  corpus-git container create db1 --package postgresql --memory 1G --cpus 2",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			limit, err := s.limits(cmd)
			if err == nil {
				err = checkDriver(c.Driver)
			}
			if err != nil {
				return err
			}
			c.Name, c.Created = args[0], time.Now().UTC()
			limit(&c.Limits)
			if address != "" {
				a, err := netip.ParseAddr(address)
				if err != nil {
					return fault.New(fault.Usage, "", "--address %q: %w", address, err)
				}
				c.Address = netip.PrefixFrom(a, a.BitLen())
			}
			if err := (rootfs.System{Suite: c.Suite, Mirror: c.Mirror, Packages: c.Packages}).Check(); err != nil {
				return err
			}
			return m.with(func(ctx context.Context, mgr container.Manager) error {
				if err := chooseNetwork(mgr, net, bridge); err != nil {
					return err
				}
				made, err := mgr.Create(ctx, c)
				if err != nil {
					return err
				}
				fmt.Fprintf(m.Out, "%s runs, at %s\n", made.Name, made.Address.Addr())
				if !network.Routes() {
					fmt.Fprintf(m.Out, "  it reaches this machine and other containers only: this machine forwards nothing\n  hint: to let it reach others:  sysctl net.ipv4.ip_forward=1\n")
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	driverFlag(cmd, &c)
	f.StringVar(&c.Suite, "suite", rootfs.DefaultSuite, "release of Debian")
	f.StringVar(&c.Mirror, "mirror", "", "`URL` of the mirror that packages come from (default: debootstrap's)")
	f.StringSliceVar(&c.Packages, "package", nil, "a package to install beside the base system; may be repeated")
	f.StringVar(&address, "address", "", "its `ADDRESS` in the network (default: the first that is free)")
	f.StringVar(&net, "network", "", "this machine's address in the network of the containers, with its length; with the first container only (default: "+network.Default().Prefix.String()+")")
	f.StringVar(&bridge, "bridge", "", "name of the network's interface; with the first container only (default: "+network.Default().Bridge+")")
	s.register(cmd)
	return cmd
}

// driverFlag adds the flag with the driver of a new container.
func driverFlag(cmd *cobra.Command, c *container.Container) {
	cmd.Flags().StringVar(&c.Driver, "driver", nspawn.Name, "what runs a new container: "+nspawn.Name+" or "+lxc.Name)
}

// checkDriver refuses a driver that makes no containers.
func checkDriver(name string) error {
	if name != nspawn.Name && name != lxc.Name {
		return fault.New(fault.Usage, "", "--driver %q: it can be %s or %s", name, nspawn.Name, lxc.Name).WithHint("a machine that exists becomes a node with  corpus-git node init NAME --ssh root@HOST")
	}
	return nil
}

// chooseNetwork writes the network that was named, where no container is in another one.
func chooseNetwork(mgr container.Manager, prefix, bridge string) error {
	if prefix == "" && bridge == "" {
		return nil
	}
	n, err := mgr.Network.Get()
	if err != nil {
		return err
	}
	was := n
	if bridge != "" {
		n.Bridge = bridge
	}
	if prefix != "" {
		if n.Prefix, err = netip.ParsePrefix(prefix); err != nil {
			return fault.New(fault.Usage, "", "--network %q: %w", prefix, err)
		}
	}
	if err := n.Check(); err != nil {
		return err
	}
	if n.Bridge == was.Bridge && n.Prefix == was.Prefix {
		return nil
	}
	list, err := mgr.Store.List()
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.Target == "" {
			return fault.New(fault.Refused, "", "%s is in the network %s (%s)", c.Name, was.Prefix, was.Bridge).WithHint("choose the network with the first container, or another folder with --dir")
		}
	}
	return mgr.Network.Put(n)
}

// state is that of a container, for people and for documents.
type state struct {
	container.Container
	State     string         `json:"state"`
	Ports     []network.Port `json:"ports,omitempty"`
	Snapshots []string       `json:"snapshots,omitempty"`
}

// stateOf finds out how a container is.
func stateOf(ctx context.Context, mgr container.Manager, c container.Container) (state, error) {
	s := state{Container: c, State: "interrupted"}
	_, d, err := mgr.Get(c.Name)
	if err != nil || !c.Ready {
		return s, err
	}
	s.State = "stopped"
	if running, err := d.Running(ctx, c); err != nil {
		return s, err
	} else if running {
		s.State = "running"
	}
	n, err := mgr.Network.Get()
	if err != nil {
		return s, err
	}
	for _, p := range n.Ports {
		if p.Container == c.Name {
			s.Ports = append(s.Ports, p)
		}
	}
	s.Snapshots, err = d.Snapshots(ctx, c)
	return s, err
}

// document is what list and show print with --json.
type document struct {
	Version    int     `json:"version"`
	Containers []state `json:"containers"`
}

func (m *containers) jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&m.asJSON, "json", false, "print a JSON document")
	return cmd
}

func (m *containers) list() *cobra.Command {
	return m.jsonFlag(&cobra.Command{
		Use: "list", Short: "List the containers", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			mgr, err := m.open(false)
			if err != nil {
				return err
			}
			ctx, end := m.Stop()
			defer end()
			list, err := mgr.Store.List()
			if err != nil {
				return err
			}
			doc := document{status.Version, []state{}}
			for _, c := range list {
				s, err := stateOf(ctx, mgr, c)
				if err != nil {
					return err
				}
				doc.Containers = append(doc.Containers, s)
			}
			if m.asJSON {
				return m.Document(m.Out, doc)
			}
			if len(list) == 0 {
				fmt.Fprintln(m.Out, "no containers yet:  corpus-git container create NAME")
			}
			for _, s := range doc.Containers {
				fmt.Fprintf(m.Out, "%-20s %-8s %-12s %s\n", s.Name, s.Driver, s.State, place(s.Container))
			}
			return nil
		},
	})
}

// place is where a container is reached, for people.
func place(c container.Container) string {
	if c.Target != "" {
		return c.Target
	}
	return c.Address.Addr().String()
}

func (m *containers) show() *cobra.Command {
	return m.jsonFlag(&cobra.Command{
		Use: "show NAME", Short: "Show a container", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			mgr, err := m.open(false)
			if err != nil {
				return err
			}
			ctx, end := m.Stop()
			defer end()
			c, err := mgr.Store.Get(args[0])
			if err != nil {
				return err
			}
			s, err := stateOf(ctx, mgr, c)
			if err != nil {
				return err
			}
			if m.asJSON {
				return m.Document(m.Out, document{status.Version, []state{s}})
			}
			fmt.Fprintf(m.Out, "name      %s\ndriver    %s\nstate     %s\naddress   %s\n", s.Name, s.Driver, s.State, place(c))
			if c.Address6.IsValid() {
				fmt.Fprintf(m.Out, "address   %s\n", c.Address6.Addr())
			}
			if c.Suite != "" {
				fmt.Fprintf(m.Out, "system    %s\n", strings.Join(append([]string{c.Suite}, c.Packages...), " "))
			}
			fmt.Fprintf(m.Out, "limits    %s\ncreated   %s\n", limits(c.Limits), c.Created.Format("2006-01-02 15:04:05Z07:00"))
			if c.Storage > 0 {
				fmt.Fprintf(m.Out, "volume    %s at %s\n", humanize.Bytes(c.Storage), container.StoragePath)
			}
			for _, p := range s.Ports {
				only := ""
				if !p.To6.IsValid() {
					only = ", IPv4 only"
				}
				fmt.Fprintf(m.Out, "port      %d, published at %d%s\n", p.To.Port(), p.Listen, only)
			}
			for _, id := range s.Snapshots {
				fmt.Fprintf(m.Out, "snapshot  %s\n", id)
			}
			return nil
		},
	})
}

// limits describes limits for people.
func limits(l container.Limits) string {
	var parts []string
	if l.Memory > 0 {
		parts = append(parts, humanize.Bytes(l.Memory)+" of memory")
	}
	if l.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("%g CPUs", l.CPUs))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
