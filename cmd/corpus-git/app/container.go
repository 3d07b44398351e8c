package app

import (
	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/containers"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/layout"
)

func (c *command) containerCommand() *cobra.Command { return containers.Command(c.containers()) }

func (c *command) dnsCommand() *cobra.Command { return containers.DNSCommand(c.containers()) }

func (c *command) containers() containers.Surroundings {
	return containers.Surroundings{
		In: c.Stdin, Out: c.Stdout, Err: c.Stderr, Env: c.Environment.Env, Document: verbs.WriteDocument, Stop: untilInterrupted, Exit: func(status int) { c.exit = status },
		Dir: func() (string, error) {
			cfg, err := c.stateSettings().load()
			if err != nil {
				return "", err
			}
			return layout.State(cfg.StateDir).Containers(), nil
		},
	}
}
