package notify

import (
	"fmt"
	"strings"

	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// title returns a notification in one line.
func title(n project.Notification) string {
	where := string(n.Project)
	if n.Environment != "" {
		where += " (" + n.Environment + ")"
	}
	what := ""
	switch n.Event {
	case project.EventCreated:
		what = "the project was created"
	case project.EventQueuedTooLong:
		what = "a deployment waits for its turn"
	case project.EventLive:
		what = "live"
	case project.EventFailed:
		what = "failed"
	case project.EventRolledBack:
		what = "rolled back"
	case project.Incomplete:
		what = "rolled back, incomplete"
	case project.EventRefused:
		what = "refused"
	case project.EventRecovered:
		what = "the server stopped during a deployment, which is now " + strings.ReplaceAll(n.Verdict(), "-", " ")
	case project.EventLowSpace:
		what = "too little space on the disk for a deployment"
	case project.EventTest:
		what = "this is a test of notifications"
	case project.CheckFailed, project.CheckSucceeded:
		name := ""
		if n.Check != nil {
			name = n.Check.Check
		}
		what = "check " + name + " failed"
		if n.Event == project.CheckSucceeded {
			what = "check " + name + " succeeds again"
		}
	case project.EventDrifted:
		what = "differs from its live release"
		if n.Converge != nil {
			what = humanize.Plural(n.Converge.Changed, "difference") + " from its live release"
		}
	case project.EventConvergeFailed:
		what = "applying the live release again failed"
	case project.EventConverged:
		what = "as its live release makes it again"
	case project.EventAccessChanged:
		what = "access changed"
		if n.Access != nil {
			what += ": " + strings.TrimSpace(n.Access.Action+" "+n.Access.Object)
		}
	default:
		what = n.Event
	}
	if where == "" {
		return printable.Line(what)
	}
	return printable.Line(where + ": " + what)
}

// details returns the further details for people, one line each.
func details(n project.Notification) (out []string) {
	add := func(format string, args ...any) { out = append(out, printable.Line(fmt.Sprintf(format, args...))) }
	if d := n.Deployment; d != nil {
		change := d.Code.Short()
		if d.LiveCode != "" && d.LiveCode != d.Code {
			change = d.LiveCode.Short() + ".." + change
		}
		add("deployment %s: %s %s by %s", d.ID.Short(), d.Trigger, change, d.Pusher.Key)
	}
	if r := n.Result; r != nil {
		if r.Reason != "" {
			add("%s", r.Reason)
		}
		if r.Unhealthy != "" {
			add("%s", r.Unhealthy)
		}
		if r.Hint != "" {
			add("hint: %s", r.Hint)
		}
	}
	if c := n.Check; c != nil && c.Reason != "" {
		add("%s", c.Reason)
	}
	if c := n.Converge; c != nil {
		if c.Reason != "" {
			add("%s", c.Reason)
		}
		for _, line := range c.Drift {
			add("%s", line)
		}
	}
	if s := n.Space; s != nil {
		add("it takes %s; %s are free for it", humanize.Bytes(s.NeedBytes), humanize.Bytes(s.FreeBytes))
	}
	if n.By != nil && n.Deployment == nil {
		add("by %s", n.By.Key)
	}
	if d := n.Deployment; d != nil && n.Check == nil && (n.Converge == nil || n.Converge.Deployment != "") {
		add("full log: corpus-git logs %s %s", d.Project, d.ID.Short())
	}
	return out
}
