// Package texts formats the first and the last line of a deployment's log, and what it says while it waits.
package texts

import (
	"fmt"
	"strings"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project"
	"corpus-git/project/demands"
)

// Headline returns the first line of a deployment; desc may be nil; hide redacts.
func Headline(d project.Deployment, desc *project.Description, hide func(string) string) event.Event {
	var b strings.Builder
	by := " by " + d.Pusher.Key
	switch {
	case d.Trigger == project.TriggerRollback:
		fmt.Fprintf(&b, "%s  back from %s to %s", d.Project, d.LiveCode.Short(), d.Code.Short())
		switch {
		case d.Pillar == d.LivePillar && d.Pillar != "":
			fmt.Fprintf(&b, ", pillar %s unchanged", d.Pillar.Short())
		case d.Pillar != d.LivePillar:
			fmt.Fprintf(&b, ", pillar from %s to %s", d.LivePillar.Short(), d.Pillar.Short())
		}
	case d.Trigger == project.TriggerRedeploy && d.Code == d.LiveCode:
		fmt.Fprintf(&b, "%s  %s again", d.Project, d.Code.Short())
		if d.Job != "" {
			fmt.Fprintf(&b, ", job %s", d.Job)
		}
	case d.Repo == project.PillarRepo:
		fmt.Fprintf(&b, "%s  pillar %s..%s", d.Project, d.LivePillar.Short(), d.Pillar.Short())
	case d.LiveCode == "":
		fmt.Fprintf(&b, "%s  first deployment, %s", d.Project, d.Code.Short())
	default:
		fmt.Fprintf(&b, "%s  %s..%s", d.Project, d.LiveCode.Short(), d.Code.Short())
	}
	if (d.Trigger == project.TriggerBundle || d.Promoted != nil) && d.Pillar != d.LivePillar {
		fmt.Fprintf(&b, ", pillar %s..%s", d.LivePillar.Short(), d.Pillar.Short())
	}
	if desc == nil {
		b.WriteString(" " + by)
		return event.Event{Kind: event.Head, Text: b.String()}
	}
	if desc.Subject != "" {
		s := []rune(hide(desc.Subject)) // before it is cut short
		if len(s) > 40 {
			s = append(s[:39], '…')
		}
		fmt.Fprintf(&b, "  %q ", string(s))
	}
	b.WriteString(by)
	if desc.Commits > 0 {
		more := ""
		if desc.CommitsMore {
			more = " or more"
		}
		fmt.Fprintf(&b, ", %s%s", humanize.Plural(desc.Commits, "commit"), more)
	}
	if desc.Files > 0 {
		fmt.Fprintf(&b, ", %s", humanize.Plural(desc.Files, "file"))
	}
	if desc.Forced {
		b.WriteString(", forced")
	}
	return event.Event{Kind: event.Head, Text: b.String()}
}

// Result appends the last line, with the hint before it.
func Result(log *event.Log, rec project.Record) {
	res := rec.Result
	took := res.Ended.Sub(res.Started)
	if res.Hint != "" {
		log.Append(event.Event{Kind: event.Hint, Text: res.Hint})
	}
	e := event.Event{Kind: event.Verdict, Status: event.Bad, Duration: took}
	is := fmt.Sprintf("%s is %s", rec.Project, res.Code.Short())
	if res.Pillar != "" {
		is += ", pillar " + res.Pillar.Short()
	}
	still := strings.Replace(is, " is ", " is still ", 1)
	if res.Code == "" {
		still = fmt.Sprintf("%s has no live release yet", rec.Project)
	}
	switch res.State {
	case project.Live:
		e.Status = event.OK
		e.Text = fmt.Sprintf("live in %s: %s", humanize.Rough(took), is)
		if res.Unhealthy != "" {
			e.Status = event.Bad
			e.Text = fmt.Sprintf("rolled back in %s, but %s: %s", humanize.Rough(took), res.Unhealthy, is)
		}
	case project.Done:
		e.Status = event.OK
		e.Text = fmt.Sprintf("done in %s: %s", humanize.Rough(took), res.Reason)
	case project.RolledBack:
		but := ""
		if res.Unhealthy != "" {
			but = ", but " + res.Unhealthy
		}
		e.Text = fmt.Sprintf("rolled back in %s%s: %s", humanize.Rough(took), but, still)
	case project.Refused:
		e.Text = "refused: nothing was changed, " + still
		if strings.HasPrefix(res.Reason, demands.Waiting) {
			e.Text = "waiting for approval: " + still
		}
	default:
		e.Text = fmt.Sprintf("failed after %s: %s", humanize.Rough(took), res.Reason)
	}
	e.Text += ", deployment " + rec.ID.Short()
	log.Append(e)
}

// Short returns an error in one line: its place and its cause.
func Short(err error) string {
	text, _, _ := strings.Cut(fault.Cause(err), "\n")
	if at, ok := fault.PosOf(err); ok {
		text = at.String() + ": " + text
	}
	return text
}

// Waiting tells that a deployment waits for one that is running, as one of ahead; left is the time until its turn, 0 if it is not known.
func Waiting(running project.Record, ahead int, left time.Duration, now time.Time) string {
	where := ""
	if running.Step != "" {
		where = ", in " + running.Step
	} else if running.Procedure != "" {
		where = ", in " + running.Procedure
	}
	text := fmt.Sprintf("waiting for deployment %s of %s (by %s, %s%s), %d ahead of you",
		running.ID.Short(), running.Project, running.Pusher.Key, humanize.Rough(now.Sub(running.At)), where, ahead)
	if left >= time.Second {
		text += ", your turn in about " + humanize.Rough(left)
	}
	return text
}

// Left is the result that followers of a deployment get when this process leaves it to the next one; what says where it is.
func Left(d project.Deployment, what string) project.Result {
	return project.Result{
		State: project.Running, Kind: fault.Busy.String(), Reason: what + ": the server stops, and goes on with deployment " + d.ID.Short() + " when it starts again",
		Hint: fmt.Sprintf("follow it then:  corpus-git logs %s %s -f", d.Project, d.ID.Short()),
	}
}
