package containers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/container"
	"corpus-git/container/prepare"
	"corpus-git/internal/fault"
)

func (m *containers) start() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "start [NAME]", Short: "Start a container, or all that ran when the machine was shut down",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return fault.New(fault.Usage, "", "container start needs NAME or --all")
			}
			return m.with(func(ctx context.Context, mgr container.Manager) error {
				names, err := m.names(mgr, args, func(c container.Container) bool { return c.Started })
				if err != nil {
					return err
				}
				var errs []error
				for _, name := range names {
					err := mgr.Start(ctx, name)
					if errs = append(errs, err); err == nil {
						fmt.Fprintf(m.Out, "%s runs\n", name)
					}
				}
				return errors.Join(errs...)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all that were started and not stopped since")
	return cmd
}

// names returns those that were typed, or of all containers that want is true for.
func (m *containers) names(mgr container.Manager, args []string, want func(container.Container) bool) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	list, err := mgr.Store.List()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range list {
		if c.Ready && want(c) {
			names = append(names, c.Name)
		}
	}
	return names, nil
}

func (m *containers) stop() *cobra.Command {
	return &cobra.Command{
		Use: "stop NAME", Short: "Shut a container down", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return m.with(func(ctx context.Context, mgr container.Manager) error {
				err := mgr.Stop(ctx, args[0])
				if err == nil {
					fmt.Fprintf(m.Out, "%s is stopped\n", args[0])
				}
				return err
			})
		},
	}
}

func (m *containers) exec() *cobra.Command {
	cmd := &cobra.Command{
		Use: "exec NAME -- COMMAND [ARG...]", Short: "Run a command in a container, as root",
		Long:    "Its input, output and exit status are this command's.",
		Example: "  corpus-git container exec web1 -- journalctl -u corpus-git-agent",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			// What follows NAME is the command's; the dashes before it are nobody's.
			if args[1] == "--" {
				args = append(args[:1:1], args[2:]...)
			}
			if len(args) < 2 {
				return fault.New(fault.Usage, "", "a command is missing").WithHint("usage:  %s", cmd.UseLine())
			}
			return m.with(func(ctx context.Context, mgr container.Manager) error {
				c, d, err := mgr.Get(args[0])
				if err != nil {
					return err
				}
				exit, err := d.Exec(ctx, c, container.Command{Argv: args[1:], Stdin: m.In, Stdout: m.Out, Stderr: m.Err})
				m.Exit(exit)
				return err
			})
		},
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func (m *containers) resize() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "resize NAME", Short: "Change what a container may use; of one that runs at once", Args: cobra.ExactArgs(1),
		Example: "  corpus-git container resize web1 --memory 2G --cpus 1.5",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("memory") && !cmd.Flags().Changed("cpus") {
				return fault.New(fault.Usage, "", "container resize needs --memory or --cpus")
			}
			limit, err := s.limits(cmd)
			if err != nil {
				return err
			}
			return m.with(func(ctx context.Context, mgr container.Manager) error {
				c, err := mgr.Resize(ctx, args[0], limit)
				if err == nil {
					fmt.Fprintf(m.Out, "limits of %s: %s\n", c.Name, limits(c.Limits))
				}
				return err
			})
		},
	}
	s.register(cmd)
	return cmd
}

func (m *containers) snapshot() *cobra.Command {
	cmd := &cobra.Command{
		Use: "snapshot", Short: "Keep the files of a container, and bring them back",
		Long: "A snapshot is a copy of all files of a container. One that runs is stopped while it is copied, and started again.",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, sub := range []struct {
		use, short, said string
		do               func(context.Context, container.Manager, string, string) error
	}{
		{"create", "Keep the files of a container under the name SNAPSHOT", "kept %[2]s of %[1]s", func(ctx context.Context, mgr container.Manager, name, id string) error {
			return mgr.Snapshot(ctx, name, id)
		}},
		{"restore", "Bring the files of a snapshot back; what was changed since is lost", "%[1]s has the files of %[2]s again", func(ctx context.Context, mgr container.Manager, name, id string) error {
			return mgr.Restore(ctx, name, id)
		}},
		{"remove", "Remove a snapshot", "removed %[2]s of %[1]s", func(ctx context.Context, mgr container.Manager, name, id string) error {
			return mgr.Forget(ctx, name, id)
		}},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: sub.use + " NAME SNAPSHOT", Short: sub.short, Args: cobra.ExactArgs(2),
			RunE: func(_ *cobra.Command, args []string) error {
				return m.with(func(ctx context.Context, mgr container.Manager) error {
					err := sub.do(ctx, mgr, args[0], args[1])
					if err == nil {
						fmt.Fprintf(m.Out, sub.said+"\n", args[0], args[1])
					}
					return err
				})
			},
		})
	}
	return cmd
}

// port reads the number of a port.
func port(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fault.New(fault.Usage, "", "%q is not the number of a port", text)
	}
	return uint16(n), nil
}

func (m *containers) publish() *cobra.Command {
	return &cobra.Command{
		Use: "publish NAME PORT[:PORT]", Short: "Let a port of a container answer at a port of this machine",
		Long: "The first port is this machine's, the second the container's; one alone is both. Where another container answers at that port, the next connection meets this one:\n" +
			"none is refused in between, and connections that stand go on where they are. A container that does not answer takes no port of another one. Stop the other container when\n" +
			"they have ended.",
		Example: "  corpus-git container publish web1 80\n  corpus-git container publish web2 80:8080",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			first, second, both := strings.Cut(args[1], ":")
			if !both {
				second = first
			}
			listen, err := port(first)
			if err != nil {
				return err
			}
			to, err := port(second)
			if err != nil {
				return err
			}
			return m.with(func(ctx context.Context, mgr container.Manager) error {
				err := mgr.Publish(ctx, args[0], listen, to)
				if err == nil {
					fmt.Fprintf(m.Out, "port %d is answered by %s, port %d\n", listen, args[0], to)
				}
				return err
			})
		},
	}
}

func (m *containers) unpublish() *cobra.Command {
	return &cobra.Command{
		Use: "unpublish PORT", Short: "End that a port of this machine is answered by a container", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			listen, err := port(args[0])
			if err != nil {
				return err
			}
			return m.with(func(_ context.Context, mgr container.Manager) error {
				err := mgr.Unpublish(listen)
				if err == nil {
					fmt.Fprintf(m.Out, "port %d is not published any more\n", listen)
				}
				return err
			})
		},
	}
}

func (m *containers) destroy() *cobra.Command {
	var yes bool
	var hosts string
	var dns nameServer
	cmd := &cobra.Command{
		Use: "destroy NAME", Short: "Remove a container with all that it holds",
		Long: "A node that node init made of it is removed, too, and its name in the hosts file, and on the name server that is given.", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return m.with(func(ctx context.Context, mgr container.Manager) error {
				c, err := mgr.Store.Get(args[0])
				if yes && fault.KindOf(err) == fault.Refused { // an interrupted call may have removed its record
					if err = mgr.Destroy(ctx, args[0], nil); err == nil {
						fmt.Fprintf(m.Out, "removed the rest of %s\n", args[0])
					}
					return err
				}
				if err != nil {
					return err
				}
				if !yes {
					what := "all files of %s, and its snapshots, would be removed"
					if c.Target != "" {
						what = "%s would be forgotten; the machine stays as it is"
					}
					return fault.New(fault.Refused, "", what, c.Name).WithHint("confirm with --yes:  corpus-git container destroy %s --yes", c.Name)
				}
				server, err := dns.open()
				if err != nil {
					return err
				}
				left, err := prepare.ReadServed(mgr.Store, c.Name)
				if err != nil {
					return err
				}
				full, at, _ := strings.Cut(left.Server, " ")
				if server != nil && server.Full(c.Name) == full && server.Server == at {
					server.Reverse = slices.Compact(slices.Sorted(slices.Values(slices.Concat(server.Reverse, left.Reverse))))
				}
				if err := mgr.Destroy(ctx, c.Name, func() error { return m.forget(ctx, mgr, c.Name, hosts, server) }); err != nil {
					return err
				}
				fmt.Fprintf(m.Out, "removed %s\n", c.Name)
				if full != "" && server == nil {
					zone, also, reverse := strings.TrimSuffix(strings.TrimPrefix(full, c.Name+"."), "."), "", ""
					for _, z := range left.Reverse {
						reverse += " --dns-reverse " + strings.TrimSuffix(z, ".")
						also = ", and what leads to it from its addresses,"
					}
					fmt.Fprintf(m.Out, "its name %s%s stays at the name server %s; to remove it:  corpus-git dns remove %s --dns-server %s --dns-zone %s --dns-key FILE%s\n", full, also, at, c.Name, at, zone, reverse)
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	cmd.Flags().StringVar(&hosts, "hosts", "/etc/hosts", "`FILE` of this machine in which node init wrote the name; empty for none")
	dns.register(cmd)
	return cmd
}
