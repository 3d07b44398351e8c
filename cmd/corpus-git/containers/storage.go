package containers

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"corpus-git/container"
	"corpus-git/container/storage"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/quantity"
)

func (m *containers) storage() *cobra.Command {
	cmd := &cobra.Command{
		Use: "storage", Short: "Give a container a volume of a fixed size, or take it back",
		Long: "The volume is mounted at " + container.StoragePath + " of the container. Its room is reserved on this machine, and its files are in no snapshot.",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var yes bool
	grow := &cobra.Command{
		Use: "grow NAME SIZE", Short: "Make the volume of a container, or enlarge it to SIZE", Args: cobra.ExactArgs(2),
		Long:    "A volume is enlarged while it is in use; for its first one, a running container is stopped and started again.",
		Example: "  corpus-git container storage grow db1 20G",
		RunE: func(_ *cobra.Command, args []string) error {
			return m.setStorage(args[0], func(was int64) (int64, error) {
				size, err := volumeSize(args[1])
				if err == nil && size < was {
					err = fault.New(fault.Refused, "", "the volume has %s", humanize.Bytes(was)).WithHint("corpus-git container storage free %s %s  reduces it", args[0], args[1])
				}
				return size, err
			})
		},
	}
	free := &cobra.Command{
		Use: "free NAME [SIZE]", Short: "Reduce the volume of a container to SIZE; without SIZE, remove it with its files", Args: cobra.RangeArgs(1, 2),
		Long: "A running container is stopped and started again. A volume is not reduced below what its files take.",
		RunE: func(_ *cobra.Command, args []string) error {
			return m.setStorage(args[0], func(was int64) (int64, error) {
				switch {
				case was == 0:
					return 0, fault.New(fault.Refused, "", "%s has no volume", args[0]).WithHint("corpus-git container storage grow %s SIZE", args[0])
				case len(args) == 1 && !yes:
					return 0, fault.New(fault.Refused, "", "the volume of %s and all files in it would be removed", args[0]).WithHint("confirm with --yes")
				case len(args) == 1:
					return 0, nil
				}
				size, err := volumeSize(args[1])
				if err == nil && size > was {
					err = fault.New(fault.Refused, "", "the volume has %s", humanize.Bytes(was)).WithHint("corpus-git container storage grow %s %s  enlarges it", args[0], args[1])
				}
				return size, err
			})
		},
	}
	free.Flags().BoolVar(&yes, "yes", false, "do it")
	cmd.AddCommand(grow, free)
	return cmd
}

func volumeSize(text string) (int64, error) {
	size, err := quantity.ParseSize(text)
	if err != nil {
		return 0, fault.New(fault.Usage, "", "SIZE %q: %w", text, err)
	}
	return storage.Size(size)
}

func (m *containers) setStorage(name string, change func(was int64) (int64, error)) error {
	return m.with(func(ctx context.Context, mgr container.Manager) error {
		c, err := mgr.Storage(ctx, name, change)
		switch {
		case err != nil:
		case c.Storage == 0:
			fmt.Fprintf(m.Out, "%s has no volume\n", c.Name)
		default:
			fmt.Fprintf(m.Out, "%s has a volume of %s at %s\n", c.Name, humanize.Bytes(c.Storage), container.StoragePath)
		}
		return err
	})
}
