package live

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/terminal"
	"corpus-git/project"
	"corpus-git/sls/host"
)

// Enter runs a command, or without one the shell of the project's user, in the live tree in the environment of Run. On a terminal its output is not redacted:
// whoever enters may read the configuration as the project's user. Without a terminal it is the same as Run. begin is called with what runs, and as whom (""
// means the server's own user), and may still refuse.
func (u Units) Enter(ctx context.Context, name project.Name, argv []string, t *terminal.Terminal, begin func(what, user string) error, stdin io.Reader, stdout, stderr io.Writer) (exit int, err error) {
	l, err := u.Release(ctx, name)
	if err != nil {
		return 0, err
	}
	user, shell := u.cfg.Tools.ProjectUser(l.Prepared), "/bin/sh"
	if user != "" {
		account, err := u.cfg.Tools.Host.Users.User(user)
		if err != nil {
			return 0, err
		}
		switch base := filepath.Base(account.Shell); base {
		case "nologin", "false", ".":
		default:
			shell = account.Shell
		}
	}
	if _, err := os.Stat(shell); err != nil {
		return 0, fault.New(fault.Refused, "enter", "the shell of %s: %w", cmp.Or(user, "the server's user"), err)
	}
	if len(argv) == 0 {
		argv = []string{shell}
	}
	if t == nil {
		return u.Run(ctx, name, argv, begin, stdin, stdout, stderr)
	}
	if _, err := os.Stat(u.cfg.Tools.Root.Project(name.String()).Live()); err != nil {
		return 0, fault.New(fault.Refused, "enter", "%s has no live release yet", name)
	}
	c, err := u.cfg.Tools.Command(l.Prepared, l.Deployment, "enter", host.Shell{Argv: argv, RunAs: user, KeepLocale: true})
	if err != nil {
		return 0, err
	}
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = printable.Word(w)
	}
	if err := begin(l.Hide.String(strings.Join(words, " ")), user); err != nil {
		return 0, err
	}
	st, err := t.Run(ctx, u.cfg.Tools.Exec, c)
	if err != nil {
		return 0, l.Hide.Error(err)
	}
	return st.Exit, nil
}
