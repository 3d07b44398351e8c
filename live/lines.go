package live

import (
	"errors"

	"corpus-git/internal/event"
	"corpus-git/internal/execx"
	"corpus-git/internal/redact"
)

// redactedLines passes on the lines of several sources, each redacted as one text. It may be used by one goroutine at
// a time.
type redactedLines struct {
	hide *redact.Redactor
	emit func(source, line string) error
	open map[string]*redactedLine
	err  error // of emit
	// inTurn means that sources follow one another, each ending when the next one begins.
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
