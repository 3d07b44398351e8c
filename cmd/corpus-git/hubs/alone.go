package hubs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/cluster/member"
	"corpus-git/cmd/corpus-git/statedir"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
)

// AloneCommand returns the subcommand of hub that makes a server without others of this machine. where returns the configured folders and how repositories are opened, until a context that ends when the
// program is to stop.
func AloneCommand(where func() (layout.Root, layout.State, func(project.Name, project.Repo) Repository, error), until func() (context.Context, func()), out io.Writer) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use: "alone", Short: "Make this machine a server without others, after two hubs are lost",
		Long: "Two of the three hubs must run. If two are lost and do not come back, run this on the third one, with its server and the NATS server beside it stopped: it becomes a server without others, with the state that it has. What the others\n" +
			"had acknowledged and this hub had not received is lost. The others must never start again: two servers would deploy to the same nodes. Add other hubs again with  hub add .",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			root, state, open, err := where()
			if err != nil {
				return err
			}
			ctx, stop := until()
			defer stop()
			lock, err := statedir.Take(state, "corpus-git hub alone", lockWait)
			if err != nil {
				return err
			}
			err = alone(ctx, root, state, open, out, yes)
			return errors.Join(err, lock.Release())
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm that the other hubs never start again")
	return cmd
}

func alone(ctx context.Context, root layout.Root, state layout.State, open func(project.Name, project.Repo) Repository, out io.Writer, yes bool) error {
	m, err := load(state)
	if err != nil {
		return err
	}
	if m.Active && !yes {
		return fault.New(fault.Refused, "hub alone", "this machine would be a server without others; %s must never start again", others(m)).WithHint("confirm with --yes:  corpus-git hub alone --yes")
	}
	own, config, err := member.Alone(ctx, state, func() error { return checkOutAll(ctx, root, open) })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s has no others now\nif agents connect over NATS:  set  nats_url: %s , and start the NATS server:  nats-server -c %s\nthen:  corpus-git serve\n", own.Name, own.NATS, config)
	return err
}

// checkOutAll checks out the deployed commits of all projects.
func checkOutAll(ctx context.Context, root layout.Root, open func(project.Name, project.Repo) Repository) error {
	entries, err := os.ReadDir(root.Projects())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var names []project.Name
	for _, e := range entries {
		if name, err := project.ParseName(e.Name()); err == nil && e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, name)
		}
	}
	return checkOutEach(ctx, root, names, open)
}
