package app

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

	"corpus-git/internal/event"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/redact"
	"corpus-git/procedures"
	"corpus-git/project"
	"corpus-git/sls/host"
	"corpus-git/units"
)

// processes is what projects run, as the verbs and the pages see it.
type processes struct{ c *core }

// settle is how long after a start a unit is looked at again; patience how long one may take to start that systemctl does not wait for.
const (
	unitSettle   = time.Second
	unitPatience = 30 * time.Second
)

// liveProject is a project as it runs: its configuration, and what hides its secrets.
type liveProject struct {
	prep *procedures.Prepared
	d    project.Deployment
	hide *redact.Redactor
}

func (a processes) live(ctx context.Context, name project.Name) (liveProject, error) {
	hide := a.c.pipeline.Redactor(ctx, name)
	prep, d, err := cfgs(a).prepared(ctx, name, hide)
	return liveProject{prep, d, hide}, err
}

// runner acts on the units of a project.
func (a processes) runner(l liveProject) *units.Runner {
	return &units.Runner{
		Exec: a.c.tools.Exec, Units: l.prep.Cfg.Units(), User: a.c.tools.ProjectUser(l.prep), Now: time.Now, Uptime: uptime, Settle: unitSettle, Patience: unitPatience,
		Command: func(user, line string, argv []string) (execx.Cmd, error) {
			s := host.Shell{Line: line, Argv: argv, RunAs: user, KeepLocale: argv == nil}
			if argv != nil {
				s.Dir = "/"
			}
			return a.c.tools.Command(l.prep, l.d, "units", s)
		},
	}
}

// uptime is the time since the machine started.
func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// hidden redacts what is known of units.
func (l liveProject) hidden(all []project.UnitState) []project.UnitState {
	for i := range all {
		all[i].Detail = l.hide.String(event.Scrub(all[i].Detail))
		for j, line := range all[i].Log {
			all[i].Log[j] = l.hide.String(event.Scrub(line))
		}
	}
	return all
}

// List implements verbs.Units.
func (a processes) List(ctx context.Context, name project.Name, only []string) ([]project.UnitState, error) {
	l, err := a.live(ctx, name)
	if err != nil {
		return nil, err
	}
	all, err := a.runner(l).List(ctx, only)
	return l.hidden(all), l.hide.Error(err)
}

// shownLines is how many log lines of each unit a page shows.
const shownLines = 10

// Shown is List with the last lines of the logs.
func (a processes) Shown(ctx context.Context, name project.Name) ([]project.UnitState, error) {
	l, err := a.live(ctx, name)
	if err != nil || len(l.prep.Cfg.Units()) == 0 {
		return nil, err
	}
	r := a.runner(l)
	all, err := r.List(ctx, nil)
	if err == nil {
		err = r.WithLogs(ctx, all, shownLines)
	}
	return l.hidden(all), l.hide.Error(err)
}

// Act implements verbs.Units.
func (a processes) Act(ctx context.Context, name project.Name, action project.UnitAction, only []string, by project.Pusher) ([]project.UnitState, error) {
	release, err := a.c.pipeline.Exclusive(ctx, name, string(action), by)
	if err != nil {
		return nil, err
	}
	defer release()
	return a.act(ctx, name, action, only)
}

// stop stops all units of a project, and names them. The caller keeps deployments out.
func (a processes) stop(ctx context.Context, name project.Name) ([]string, error) {
	l, err := a.live(ctx, name)
	if err != nil || len(l.prep.Cfg.Units()) == 0 {
		return nil, err
	}
	all, err := a.act(ctx, name, project.StopUnit, nil)
	var names []string
	for _, u := range all {
		names = append(names, u.Unit)
	}
	return names, err
}

func (a processes) act(ctx context.Context, name project.Name, action project.UnitAction, only []string) ([]project.UnitState, error) {
	l, err := a.live(ctx, name)
	if err != nil {
		return nil, err
	}
	all, err := a.runner(l).Act(ctx, action, only)
	var f *units.Failure
	if errors.As(err, &f) {
		f.Units = l.hidden(f.Units)
		for i, text := range f.Says {
			f.Says[i] = l.hide.String(event.Scrub(text))
		}
		return l.hidden(all), err
	}
	return l.hidden(all), l.hide.Error(err)
}

// Logs implements verbs.Units. Each source goes through the redactor as a whole, as the output of steps does.
func (a processes) Logs(ctx context.Context, name project.Name, req units.LogRequest, emit func(source, line string) error) error {
	l, err := a.live(ctx, name)
	if err != nil {
		return err
	}
	files := units.Opener{Within: a.c.root.Project(name.String()).Dir()}
	if user := a.c.tools.ProjectUser(l.prep); user != "" {
		cred, err := a.c.tools.Host.CredFor(user)
		if err != nil {
			return err
		}
		files.User = cred.Syscall()
	}
	out := &redactedLines{hide: l.hide, emit: emit, open: map[string]*redactedLine{}, inTurn: !req.Follow}
	req.Idle = out.idle
	err = a.runner(l).Logs(ctx, files, l.prep.Cfg.Logs(), req, out.line)
	return errors.Join(l.hide.Error(err), out.close())
}

// redactedLines hands on the lines of several sources, each redacted as one text. It belongs to one goroutine at a time.
type redactedLines struct {
	hide *redact.Redactor
	emit func(source, line string) error
	open map[string]*redactedLine
	err  error // of emit
	// inTurn: sources come one after the other, and end when the next one begins.
	inTurn bool
	last   *redactedLine
}

type redactedLine struct {
	redact *redact.Writer
	lines  *execx.Lines
}

func (r *redactedLines) line(source, line string) error {
	s := r.open[source]
	if s == nil {
		s = &redactedLine{lines: execx.NewLines(func(l string) {
			if r.err == nil {
				r.err = r.emit(source, l)
			}
		})}
		s.redact = r.hide.Writer(s.lines)
		r.open[source] = s
	}
	if r.inTurn && r.last != nil && r.last != s {
		_, _ = r.last.redact.Flush(), r.last.lines.Close()
	}
	r.last = s
	_, err := s.redact.Write([]byte(event.Scrub(line) + "\n"))
	return errors.Join(err, r.err)
}

func (r *redactedLines) idle() error {
	for _, s := range r.open {
		if err := s.redact.Idle(); err != nil {
			return err
		}
	}
	return r.err
}

func (r *redactedLines) close() error {
	for _, s := range r.open {
		_, _ = s.redact.Flush(), s.lines.Close()
	}
	return r.err
}

// Run implements verbs.Units.
func (a processes) Run(ctx context.Context, name project.Name, argv []string, begin func(what, user string) error, stdin io.Reader, stdout, stderr io.Writer) (exit int, err error) {
	l, err := a.live(ctx, name)
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(a.c.root.Project(name.String()).Live()); err != nil {
		return 0, fault.New(fault.Refused, "run", "nothing of %s is live yet", name)
	}
	user := a.c.tools.ProjectUser(l.prep)
	c, err := a.c.tools.Command(l.prep, l.d, "run", host.Shell{Argv: argv, RunAs: user, KeepLocale: true})
	if err != nil {
		return 0, err
	}
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = printable.Word(w)
	}
	if err := begin(l.hide.String(strings.Join(words, " ")), user); err != nil {
		return 0, err
	}
	out, serr := l.hide.Writer(stdout), l.hide.Writer(stderr)
	c.Stdout, c.Stderr = out, serr
	closeInput, err := passInput(&c, stdin)
	if err != nil {
		return 0, err
	}
	st, err := a.c.tools.Exec.Run(ctx, c)
	closeInput()
	err = errors.Join(err, out.Flush(), serr.Flush())
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return 0, fault.New(fault.Refused, "run", "%w", l.hide.Error(err))
	}
	return st.Exit, err
}

// passInput gives a command a pipe of its own to read. Without that its end would be waited for until the client sends something more,
// which it may never do.
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
