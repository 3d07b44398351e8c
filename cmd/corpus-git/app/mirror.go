package app

import (
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/limits"
	"corpus-git/cmd/corpus-git/mirrors"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/git/pack"
)

func (c *command) mirrorCommand() *cobra.Command {
	return mirrors.Command(mirrors.Surroundings{
		Out: c.Stdout, Home: c.Environment.get("HOME"), Env: c.Environment.Env, Agent: clientAgent(), Log: quietLog(c.Stderr), Document: verbs.WriteDocument, Stop: untilInterrupted,
		Limits: func() (pack.Limits, error) {
			cfg, err := c.stateSettings().load()
			if err != nil {
				return pack.Limits{}, err
			}
			return limits.Pack(cfg.Limits, pack.NewMemory(int64(cfg.Limits.DeltaMemory))), nil
		},
	})
}

// clientAgent returns the program's name and version in the format of git's agent capability.
func clientAgent() string { return "corpus-git/" + strings.ReplaceAll(Build().Release, " ", "-") }
