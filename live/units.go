package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/sls/host"
	"corpus-git/units"
)

// Units are the units of projects, for the verbs and the pages.
type Units struct {
	*Projects
	// Exclusive keeps deployments of a project out until release is called.
	Exclusive func(ctx context.Context, name project.Name, what string, by project.Pusher) (release func(), err error)
}

// unitSettle is how long after a start a unit is checked again; unitTimeout how long a unit may take to start where systemctl does not
// wait for it.
const (
	unitSettle  = time.Second
	unitTimeout = 30 * time.Second
)

// runner acts on the units of a project.
func (u Units) runner(l Release) *units.Runner {
	return &units.Runner{
		Exec: u.cfg.Tools.Exec, Units: l.Prepared.Cfg.Units(), User: u.cfg.Tools.ProjectUser(l.Prepared), Now: time.Now, Uptime: uptime, Settle: unitSettle, Timeout: unitTimeout,
		Command: func(user, line string, argv []string) (execx.Cmd, error) {
			s := host.Shell{Line: line, Argv: argv, RunAs: user, KeepLocale: argv == nil}
			if argv != nil {
				s.Dir = "/"
			}
			return u.cfg.Tools.Command(l.Prepared, l.Deployment, "units", s)
		},
	}
}

// uptime returns the time since the machine started.
func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// hiddenUnits redacts what is known of units.
func (l Release) hiddenUnits(all []project.UnitState) []project.UnitState {
	for i := range all {
		all[i].Detail = l.hidden(all[i].Detail)
		if len(all[i].Log) > 0 { // redacted as one text: a value may be split over lines
			all[i].Log = strings.Split(l.hidden(strings.Join(all[i].Log, "\n")), "\n")
		}
	}
	return all
}

// List implements verbs.Units.
func (u Units) List(ctx context.Context, name project.Name, only []string) ([]project.UnitState, error) {
	l, err := u.Release(ctx, name)
	if err != nil {
		return nil, err
	}
	all, err := u.runner(l).List(ctx, only)
	return l.hiddenUnits(all), l.Hide.Error(err)
}

// shownLines is how many log lines of each unit a page shows.
const shownLines = 10

// Shown is List with the last lines of the logs.
func (u Units) Shown(ctx context.Context, name project.Name) ([]project.UnitState, error) {
	l, err := u.Release(ctx, name)
	if err != nil || len(l.Prepared.Cfg.Units()) == 0 {
		return nil, err
	}
	r := u.runner(l)
	all, err := r.List(ctx, nil)
	if err == nil {
		err = r.WithLogs(ctx, all, shownLines)
	}
	return l.hiddenUnits(all), l.Hide.Error(err)
}

// Act implements verbs.Units.
func (u Units) Act(ctx context.Context, name project.Name, action project.UnitAction, only []string, by project.Pusher) ([]project.UnitState, error) {
	release, err := u.Exclusive(ctx, name, string(action), by)
	if err != nil {
		return nil, err
	}
	defer release()
	return u.act(ctx, name, action, only)
}

// Stop stops all units of a project, and returns their names. The caller keeps deployments out.
func (u Units) Stop(ctx context.Context, name project.Name) ([]string, error) {
	l, err := u.Release(ctx, name)
	if err != nil || len(l.Prepared.Cfg.Units()) == 0 {
		return nil, err
	}
	there, err := u.runner(l).List(ctx, nil)
	if err != nil {
		return nil, l.Hide.Error(err)
	}
	var only, names []string
	for _, x := range there {
		if x.State != project.UnitUnknown || x.Kind == project.UnitCommand {
			only = append(only, x.Unit)
		}
	}
	if len(only) == 0 { // removed by a task of the project, for example
		return nil, nil
	}
	all, err := u.act(ctx, name, project.StopUnit, only)
	for _, x := range all {
		names = append(names, x.Unit)
	}
	return names, err
}

func (u Units) act(ctx context.Context, name project.Name, action project.UnitAction, only []string) ([]project.UnitState, error) {
	l, err := u.Release(ctx, name)
	if err != nil {
		return nil, err
	}
	all, err := u.runner(l).Act(ctx, action, only)
	var f *units.Failure
	if errors.As(err, &f) {
		f.Units = l.hiddenUnits(f.Units)
		for i, text := range f.Messages {
			f.Messages[i] = l.hidden(text)
		}
		return l.hiddenUnits(all), err
	}
	return l.hiddenUnits(all), l.Hide.Error(err)
}

// Logs implements verbs.Units. Each source goes through the redactor as a whole, as the output of steps does.
func (u Units) Logs(ctx context.Context, name project.Name, req units.LogRequest, emit func(source, line string) error) error {
	l, err := u.Release(ctx, name)
	if err != nil {
		return err
	}
	files := units.Opener{Within: u.cfg.Tools.Root.Project(name.String()).Dir()}
	if user := u.cfg.Tools.ProjectUser(l.Prepared); user != "" {
		cred, err := u.cfg.Tools.Host.CredFor(user)
		if err != nil {
			return err
		}
		files.User = cred.Syscall()
	}
	out := &redactedLines{hide: l.Hide, emit: emit, open: map[string]*redactedLine{}, inTurn: !req.Follow}
	req.Idle = out.idle
	err = u.runner(l).Logs(ctx, files, l.Prepared.Cfg.Logs(), req, out.line)
	return errors.Join(l.Hide.Error(err), out.close())
}

// Run implements verbs.Units.
func (u Units) Run(ctx context.Context, name project.Name, argv []string, begin func(what, user string) error, stdin io.Reader, stdout, stderr io.Writer) (exit int, err error) {
	l, err := u.Release(ctx, name)
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(u.cfg.Tools.Root.Project(name.String()).Live()); err != nil {
		return 0, fault.New(fault.Refused, "run", "%s has no live release yet", name)
	}
	user := u.cfg.Tools.ProjectUser(l.Prepared)
	c, err := u.cfg.Tools.Command(l.Prepared, l.Deployment, "run", host.Shell{Argv: argv, RunAs: user, KeepLocale: true})
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
	out, serr := l.Hide.Writer(stdout), l.Hide.Writer(stderr)
	c.Stdout, c.Stderr = out, serr
	closeInput, err := passInput(&c, stdin)
	if err != nil {
		return 0, err
	}
	st, err := u.cfg.Tools.Exec.Run(ctx, c)
	closeInput()
	err = errors.Join(err, out.Flush(), serr.Flush())
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return 0, fault.New(fault.Refused, "run", "%w", l.Hide.Error(err))
	}
	return st.Exit, err
}

// passInput copies a command's input through a pipe. Otherwise Wait would block until the client sends something more, which it may never
// do.
func passInput(c *execx.Cmd, from io.Reader) (done func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	c.Stdin = r
	go func() {
		_, _ = io.Copy(w, from)
		_ = w.Close()
	}()
	return func() { _ = r.Close() }, nil
}
