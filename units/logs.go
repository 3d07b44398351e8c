package units

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// LogRequest selects what to read of the logs.
type LogRequest struct {
	// Only selects units, and entries of the key logs, by their names; none selects all.
	Only []string
	// Lines is how many of the last lines of each source come first; Follow continues with new ones.
	Lines  int
	Follow bool
	// Idle, if not nil, is called while a log is followed and nothing was written.
	Idle func() error
}

// Logs calls emit with the lines of the units' logs and of the log files. source names the file or program; "" is the journal, whose lines
// name the unit. emit is called by one goroutine at a time; its error ends Logs, as ctx's end does.
func (r *Runner) Logs(ctx context.Context, files Opener, entries []project.LogFiles, req LogRequest, emit func(source, line string) error) error {
	units, entries, err := r.logSources(ctx, entries, req.Only)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	single := func(source, line string) error {
		mu.Lock()
		defer mu.Unlock()
		err := emit(source, line)
		if err != nil {
			stop(err)
		}
		return err
	}
	if idle := req.Idle; idle != nil {
		req.Idle = func() error {
			mu.Lock()
			defer mu.Unlock()
			return idle()
		}
	}
	var sources []func() error
	if journal := journalOf(units, len(req.Only) == 0); len(journal) > 0 {
		sources = append(sources, func() error { return r.program(ctx, "", journalArgv(journal, req), req, single) })
	}
	for _, f := range units {
		if f.entry.Kind == project.UnitSupervisor && f.name != "" {
			sources = append(sources, func() error { return r.program(ctx, f.name, supervisorTail(f.name, req), req, single) })
		}
	}
	if len(entries) > 0 {
		sources = append(sources, func() error { return r.files(ctx, files, entries, req, single) })
	}
	if len(sources) == 0 {
		return fault.New(fault.Refused, "", "there is no log to show").WithHint("units of systemd and supervisord have logs; of other units the key  logs  of the project's configuration names the files")
	}
	if !req.Follow {
		for _, source := range sources {
			if err := source(); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, len(sources))
	var all sync.WaitGroup
	for i, source := range sources {
		all.Go(func() { errs[i] = source() })
	}
	all.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return errors.Join(errs...)
}

// logSources selects units and entries of the key logs.
func (r *Runner) logSources(ctx context.Context, entries []project.LogFiles, only []string) ([]found, []project.LogFiles, error) {
	if len(only) == 0 {
		all, err := r.find(ctx, nil)
		return all, entries, err
	}
	var named []project.LogFiles
	var rest []string
	for _, want := range only {
		i := slices.IndexFunc(entries, func(e project.LogFiles) bool { return e.Name == want })
		if i >= 0 {
			named = append(named, entries[i])
		}
		if i < 0 || slices.ContainsFunc(r.Units, func(u project.Unit) bool { return u.Name == want }) {
			rest = append(rest, want)
		}
	}
	if len(rest) == 0 {
		return nil, named, nil
	}
	units, err := r.find(ctx, rest)
	return units, named, err
}

// journalOf returns the units, or with whole the globs, whose journal is shown: a unit that is no longer loaded still has one.
func journalOf(units []found, whole bool) (out []string) {
	for _, f := range units {
		name := f.name
		if whole || name == "" {
			name = f.entry.Pattern
		}
		if f.entry.Kind == project.UnitSystemd && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func journalArgv(units []string, req LogRequest) []string {
	argv := []string{"journalctl", "--no-pager", "--quiet", "--output=short-iso", "--lines=" + strconv.Itoa(req.Lines)}
	if req.Follow {
		argv = append(argv, "--follow")
	}
	for _, u := range units {
		argv = append(argv, "--unit="+u)
	}
	return argv
}

// supervisorTail: supervisorctl counts bytes, not lines.
func supervisorTail(name string, req LogRequest) []string {
	if req.Follow {
		return []string{"supervisorctl", "tail", "-f", name}
	}
	return []string{"supervisorctl", "tail", "-" + strconv.Itoa(min(req.Lines*200, maxOutput)), name}
}

// program passes on what a program prints.
func (r *Runner) program(ctx context.Context, source string, argv []string, req LogRequest, emit func(source, line string) error) error {
	c, err := r.Command("", "", argv)
	if err != nil {
		return err
	}
	var last []string // of a supervisord program, whose lines nobody has counted
	lines := execx.NewLines(func(line string) {
		if source != "" && !req.Follow {
			if last = append(last, line); len(last) > req.Lines {
				last = last[1:]
			}
			return
		}
		_ = emit(source, line) // its error ends ctx
	})
	serr := &execx.Tail{Max: 16 << 10}
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(nil), lines, serr
	st, err := r.Exec.Run(ctx, c)
	_ = lines.Close()
	for _, l := range last {
		if err := emit(source, l); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fault.New(fault.Refused, argv[0], "it is not installed here")
	case err != nil:
		return err
	case st.Exit != 0 && strings.TrimSpace(serr.String()) != "":
		return fault.New(fault.Failed, argv[0], "%s", strings.TrimSpace(serr.String()))
	}
	return nil
}

// lastLines returns the last n lines of one unit's log, if the unit has its own log.
func (r *Runner) lastLines(ctx context.Context, u project.UnitState, n int) (out []string, err error) {
	req := LogRequest{Lines: n}
	var argv []string
	switch u.Kind {
	case project.UnitSystemd:
		argv = journalArgv([]string{u.Unit}, req)
	case project.UnitSupervisor:
		argv = supervisorTail(u.Unit, req)
	default:
		return nil, nil
	}
	err = r.program(ctx, "", argv, req, func(_, line string) error {
		if out = append(out, line); len(out) > n {
			out = out[1:]
		}
		return nil
	})
	return out, err
}

// WithLogs adds the last n lines of the log of each unit. A log that cannot be read is not an error: a line reports it.
func (r *Runner) WithLogs(ctx context.Context, all []project.UnitState, n int) error {
	for i := range all {
		if all[i].State == project.UnitUnknown {
			continue
		}
		lines, err := r.lastLines(ctx, all[i], n)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			lines = []string{"its log cannot be read: " + err.Error()}
		}
		all[i].Log = lines
	}
	return nil
}
