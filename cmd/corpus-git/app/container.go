package app

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/containers"
	"corpus-git/cmd/corpus-git/hubs"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/container/credentials"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/receive"
)

func (c *command) containerCommand() *cobra.Command { return containers.Command(c.containers()) }

func (c *command) dnsCommand() *cobra.Command { return containers.DNSCommand(c.containers()) }

// nodeInitCommand returns a subcommand of node that works on the machine, without the server.
func (c *command) nodeInitCommand() *cobra.Command { return containers.InitCommand(c.containers()) }

// hubJoinCommand returns a subcommand of hub that works on the machine, without the server.
func (c *command) hubJoinCommand() *cobra.Command {
	return hubs.JoinCommand(func() (layout.Root, layout.State, error) {
		cfg, err := c.stateSettings().load()
		if err != nil {
			return "", "", err
		}
		return layout.Root(cfg.Root), layout.State(cfg.StateDir), nil
	}, func() (context.Context, func()) { return untilInterrupted() }, c.Stdout)
}

// hubAloneCommand is likewise.
func (c *command) hubAloneCommand() *cobra.Command {
	return hubs.AloneCommand(func() (layout.Root, layout.State, func(project.Name, project.Repo) hubs.Repository, error) {
		cfg, err := c.stateSettings().load()
		if err != nil {
			return "", "", nil, err
		}
		repos := &receive.Repositories{Root: layout.Root(cfg.Root), Now: time.Now, MaxFiles: cfg.Limits.MaxFiles, Log: zerolog.New(c.Stderr)}
		return layout.Root(cfg.Root), layout.State(cfg.StateDir), func(n project.Name, r project.Repo) hubs.Repository { return repos.Open(n, r) }, nil
	}, func() (context.Context, func()) { return untilInterrupted() }, c.Stdout)
}

func (c *command) containers() containers.Surroundings {
	return containers.Surroundings{
		In: c.Stdin, Out: c.Stdout, Err: c.Stderr, Env: c.Environment.Env, Document: verbs.WriteDocument, Stop: untilInterrupted, Exit: func(status int) { c.exit = status },
		Dir: func() (string, error) {
			state, err := c.state()
			return state.Containers(), err
		},
		Verb: func(ctx context.Context, argv []string, out, errw io.Writer) (int, error) {
			cfg, err := c.stateSettings().load()
			if err != nil {
				return 0, err
			}
			cmd, _, err := verbs.Describe().Find(argv)
			if err != nil {
				return 0, err
			}
			return c.runWith(ctx, cmd, cfg, argv, &streams{in: strings.NewReader(""), out: out}, errw)
		},
	}
}

// nodeKeys signs for ssh(1) with the keys of the nodes that this machine prepared.
func nodeKeys(state layout.State) *credentials.Agent {
	return &credentials.Agent{Store: containers.Keys(state.Containers()), Socket: containers.AgentSocket(state.Containers())}
}
