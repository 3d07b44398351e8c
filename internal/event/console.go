package event

import (
	"fmt"
	"io"
	"strings"
	"time"

	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
)

// Style is how a Console writes.
type Style struct {
	// Colour uses SGR sequences; without it, SGR sequences in the events are removed.
	Colour bool
	// Verbose shows every state and every line that a command prints.
	Verbose bool
	// Output shows every line that a command prints; Verbose includes it.
	Output bool
	// Times begins each line with the time of its event, in UTC (RFC 3339, milliseconds).
	Times bool
	// Commands is the prefix with which the reader runs the server's commands, see WithCommands.
	Commands string
}

// slow is the duration from which a successful state gets its own line.
const slow = time.Second

// Console turns events into lines for people, of 80 columns if possible. Its output depends only on the events, except for Progress, which
// needs the time. Not safe for concurrent use.
type Console struct {
	w     io.Writer
	style Style

	stepWidth int
	slowOnes  []Event
	running   []Event // the open procedure, step and state
	printed   string  // the last line that a command printed in it, if Output events are not shown
}

// NewConsole returns a Console that writes to w, with one Write for each line.
func NewConsole(w io.Writer, style Style) *Console {
	return &Console{w: w, style: style, stepWidth: 12}
}

// Show writes the lines of e, if it has any, and returns how many it wrote.
func (c *Console) Show(e Event) (n int, err error) {
	e = e.clean() // a log cleans its events; not every event comes from one
	c.track(e)
	lines := c.lines(e)
	for _, l := range lines {
		if !c.style.Colour {
			l = StripColour(l)
		}
		if _, err := io.WriteString(c.w, c.at(e.Time)+strings.TrimRight(l, " ")+"\n"); err != nil {
			return 0, err
		}
	}
	return len(lines), nil
}

// at returns the prefix of a line.
func (c *Console) at(t time.Time) string {
	if !c.style.Times {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z") + "  "
}

const (
	arrow  = "-----> "
	last   = "=====> "
	indent = "       "
	deep   = "         "
)

func (c *Console) lines(e Event) []string {
	switch e.Kind {
	case Head:
		return under([]string{c.bold(arrow + e.Text)}, indent, e.Lines)
	case Waiting:
		return []string{arrow + e.Text}
	case Note:
		return under([]string{indent + e.Text}, deep, e.Lines)
	case Plan:
		return under([]string{indent + planMark(e.Status) + e.Text}, deep, e.Lines)
	case ProcedureStart:
		if e.Text == "" {
			return nil
		}
		return []string{fmt.Sprintf("%s%-15s%s", arrow, e.Procedure, e.Text)}
	case ProcedureDone:
		if e.Text == "" {
			return nil
		}
		return under([]string{fmt.Sprintf("%s%-14s%7s  %s", arrow, e.Procedure, humanize.Seconds(e.Duration), e.Text)}, deep, e.Lines)
	case StepDone:
		out := []string{fmt.Sprintf("%s%d/%d %-*s%7s  %s", indent, e.N, e.Of, c.stepWidth, e.Step, humanize.Seconds(e.Duration), e.Text)}
		for _, s := range c.slowOnes {
			out = append(out, stateLine(s))
		}
		c.slowOnes = nil
		return under(out, deep, e.Lines)
	case StateDone:
		if c.style.Verbose {
			return under([]string{stateLine(e)}, deep+"    ", e.Lines)
		}
		if e.Duration >= slow && e.Status != Bad {
			c.slowOnes = append(c.slowOnes, e)
		}
		return nil
	case Output:
		if !c.style.Verbose && !c.style.Output {
			return nil
		}
		return []string{deep + "| " + e.Text}
	case Failure:
		c.slowOnes = nil
		return under([]string{c.red(indent + "! " + e.Text)}, deep, e.Lines)
	case Verdict:
		text := last + e.Text
		if e.Status == Bad {
			text = c.red(text)
		} else {
			text = c.green(text)
		}
		return []string{text}
	case Hint:
		return under([]string{indent + "hint: " + WithCommands(e.Text, c.style.Commands)}, indent+"      ", e.Lines)
	}
	return nil
}

func under(out []string, prefix string, lines []string) []string {
	for _, l := range lines {
		out = append(out, prefix+l)
	}
	return out
}

func stateLine(e Event) string {
	return fmt.Sprintf("%s  %-12s%7s  %s", deep, e.State, humanize.Seconds(e.Duration), e.Text)
}

func planMark(s Status) string {
	switch s {
	case Changed:
		return "~ "
	case Bad:
		return "! "
	}
	return "  "
}

// track records which procedure, step and state run, for Progress.
func (c *Console) track(e Event) {
	switch e.Kind {
	case Output:
		if !c.style.Verbose && !c.style.Output && strings.TrimSpace(StripColour(e.Text)) != "" {
			c.printed = StripColour(e.Text)
		}
	case ProcedureStart, StepStart, ProcedureDone, StepDone, Verdict:
		c.printed = ""
	}
	switch e.Kind {
	case ProcedureStart:
		for _, s := range e.Lines {
			c.stepWidth = max(c.stepWidth, min(len(s)+2, 34))
		}
		c.running = append(c.running[:0], e)
	case StepStart:
		c.running = append(c.running[:min(1, len(c.running))], e)
	case StateStart:
		c.running = append(c.running[:min(2, len(c.running))], e)
	case StateDone:
		c.running = c.running[:min(2, len(c.running))]
	case StepDone:
		c.running = c.running[:min(1, len(c.running))]
	case ProcedureDone, Verdict:
		c.running = c.running[:0]
	}
}

// idleLeast is how long a state or step must run before Progress names it; before that Progress names what it belongs to.
const idleLeast = time.Second

// Progress writes a line that names what has been running without output, and since when; now is compared with the events' own times. Under it
// is the last line that a command of that step printed, unless it was shown before. It writes nothing while nothing runs.
func (c *Console) Progress(now time.Time) error {
	if len(c.running) == 0 {
		return nil
	}
	e := c.running[len(c.running)-1]
	for n := len(c.running) - 1; n > 0 && now.Sub(e.Time) < idleLeast; n-- {
		e = c.running[n-1]
	}
	where := e.Procedure
	if e.Step != "" {
		where = e.Step
	}
	if e.State != "" {
		where += " " + e.State
	}
	text := fmt.Sprintf("%sstill in %s, %s", indent, where, humanize.Rough(now.Sub(e.Time)))
	if e.Duration > 0 {
		text += fmt.Sprintf(" (usually %s)", humanize.Rough(e.Duration))
	}
	if c.printed != "" {
		text += "\n" + c.at(now) + deep + "| " + printable.Shorten(c.printed, lastPrinted)
	}
	_, err := io.WriteString(c.w, c.at(now)+text+"\n")
	return err
}

// lastPrinted is how many characters of the last printed line Progress shows.
const lastPrinted = 200

func (c *Console) sgr(code, s string) string {
	if !c.style.Colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
func (c *Console) bold(s string) string  { return c.sgr("1", s) }
func (c *Console) red(s string) string   { return c.sgr("31", s) }
func (c *Console) green(s string) string { return c.sgr("32", s) }
