package app

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"corpus-git/cmd/corpus-git/verbs"
	screens "corpus-git/internal/terminal"
)

// ownScreen is the terminal of this process.
type ownScreen struct {
	screens.Terminal
	sizes chan screens.Size
}

// screen puts the terminal into raw mode for an interactive command. It is nil for other commands, and if standard input and output are not both terminals.
// restore resets the terminal.
func (c *command) screen(cmd *cobra.Command) (s *ownScreen, restore func(), err error) {
	in, out := int(c.Stdin.Fd()), int(c.Stdout.Fd()) //nolint:gosec // a descriptor fits
	if cmd.Annotations[verbs.Interactive] == "" || !term.IsTerminal(in) || !term.IsTerminal(out) {
		return nil, func() {}, nil
	}
	size := func() (s screens.Size, err error) {
		s.Columns, s.Rows, err = term.GetSize(out)
		return s, err
	}
	now, err := size()
	if err != nil {
		return nil, nil, fmt.Errorf("size of the terminal: %w", err)
	}
	was, err := term.MakeRaw(in)
	if err != nil {
		return nil, nil, fmt.Errorf("raw mode of the terminal: %w", err)
	}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	sizes, over := make(chan screens.Size), make(chan struct{})
	go func() {
		for {
			select {
			case <-changed:
			case <-over:
				return
			}
			if s, err := size(); err == nil {
				select {
				case sizes <- s:
				case <-over:
					return
				}
			}
		}
	}()
	s = &ownScreen{screens.Terminal{Name: c.Environment.get("TERM"), Size: now, Sizes: sizes, In: c.Stdin, Out: c.Stdout}, sizes}
	return s, func() {
		signal.Stop(changed)
		close(over)
		_ = term.Restore(in, was)
	}, nil
}
