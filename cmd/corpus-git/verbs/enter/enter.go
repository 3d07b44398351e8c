// Package enter is the verb that gives a shell as a project's user.
//
// It owns its words, who may have one, and what the audit log says of it. What runs, and where, is the room live's.
package enter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/terminal"
	"corpus-git/project"
)

// Projects runs commands in projects.
type Projects interface {
	// Enter runs a command, for none a shell, on the terminal if there is one. begin is told what runs and as whom before it does, and may refuse.
	Enter(ctx context.Context, name project.Name, argv []string, t *terminal.Terminal, begin func(what, user string) error, stdin io.Reader, stdout, stderr io.Writer) (exit int, err error)
}

// Session is one run of the verb.
type Session struct {
	nodes.Session
	Projects Projects
	// Terminal is the caller's, nil if there is none.
	Terminal *terminal.Terminal
	// Remote: the caller is not on the machine. Allowed: those may enter who hold the right to.
	Remote, Allowed bool
	Err             io.Writer
	// Guard is a context that ends when the caller loses a right on a project.
	Guard func(name project.Name, want project.Right) (ctx context.Context, stop func())
	// Exit is the error that ends the program with a command's exit status.
	Exit func(status int) error
}

// maxAudited is how many characters of a command line the audit log keeps.
const maxAudited = 1000

// Command returns the verb enter. annotations are those of the command.
func Command(s Session, annotations map[string]string) *cobra.Command {
	c := &cobra.Command{
		Use: "enter PROJECT [--] [COMMAND [ARG...]]", Short: "Open a shell as the project's user",
		Long: "Runs a shell, or a command, as the project's user in the live tree, with the environment of its steps and the key env\n" +
			"of its configuration, and exits with its status. If you have a terminal, it gets one too, and its output is not redacted.\n" +
			"Over SSH this requires the permission shell and the server's setting ssh_shell. Deployments can run at the same time.",
		Example: "  corpus-git enter app\n  ssh -t -p 2222 deploy@server enter app\n  ssh -t -p 2222 deploy@server enter app -- ./manage.py shell",
		Args: func(c *cobra.Command, args []string) error {
			return s.Exactly("PROJECT")(c, args[:min(len(args), 1)])
		},
		Annotations: annotations,
		RunE: func(_ *cobra.Command, args []string) error {
			argv := args[1:]
			if len(argv) > 0 && argv[0] == "--" { // what stands behind the first argument is not looked at for flags
				argv = argv[1:]
			}
			return s.run(args[0], argv)
		},
	}
	c.Flags().SetInterspersed(false)
	return c
}

func (s Session) run(arg string, argv []string) error {
	if s.Remote && !s.Allowed {
		return s.Audited(audit.Entry{Action: "enter"}, fault.New(fault.Refused, "enter", "shells over SSH are disabled on this server").
			WithHint("an administrator can set  ssh_shell: true  and grant the permission shell; to run a command without a terminal:  corpus-git run PROJECT COMMAND"))
	}
	name, err := s.Project("enter", arg, project.Shell)
	if err != nil {
		return err
	}
	ctx, stop := s.Guard(name, project.Shell)
	defer stop()
	began, what := time.Time{}, ""
	exit, err := s.Projects.Enter(ctx, name, argv, s.Terminal, func(command, user string) error {
		if user == "" {
			fmt.Fprintln(s.Err, "note: projects have no users on this server; this runs as the server's user")
		}
		began, what = s.Now(), printable.Shorten(command, maxAudited)
		return s.Audited(audit.Entry{Action: "enter", Project: string(name), Object: what}, nil)
	}, s.In, s.Out, s.Err)
	if began.IsZero() {
		return s.Audited(audit.Entry{Action: "enter", Project: string(name)}, err)
	}
	// What ended is recorded whatever becomes of the caller: its context may have ended with the connection.
	how := fmt.Sprintf("%s: exit status %d after %s", what, exit, s.Now().Sub(began).Round(time.Second))
	if cause := context.Cause(ctx); err != nil && cause != nil {
		how = fmt.Sprintf("%s: ended after %s: %v", what, s.Now().Sub(began).Round(time.Second), cause)
		var f *fault.Error
		if err = fault.New(fault.Failed, "", "interrupted"); errors.As(cause, &f) {
			err = f
		}
	}
	if aerr := s.Audited(audit.Entry{Action: "enter end", Project: string(name), Object: how}, nil); aerr != nil && err == nil {
		err = aerr
	}
	if err == nil && exit != 0 {
		err = s.Exit(exit)
	}
	return err
}
